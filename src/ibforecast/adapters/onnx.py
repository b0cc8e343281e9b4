"""A model as one ONNX file: it predicts, explains and verifies with onnxruntime and numpy, without PyTorch.

`IBForecaster.to_onnx` writes the file (`onnx_export.py`), `OnnxForecaster` reads it. The graph takes `values`,
`observed`, `phase` and, for a model with covariates, `known`; it returns the forecast and every array of the field
table (`core.explanation.FIELDS`) that the model computes. Its other inputs have defaults and are needed for the checks:
`hold` replaces the window's own context and mask by the held ones, `replay` replaces the evidence too, and `through`
replaces only the mask. The readout comes after that, so the forecast is computed from the held arrays and the phase. A
model for any budget has the input `allowance`, the number of tokens that may be open. Names, units and calendar are in
the file as JSON.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64, Shaped

from ibforecast.adapters.onnx_file import CARD, Card, read
from ibforecast.core import running, verification
from ibforecast.core.errors import DataError, MissingExtraError, ModelFileError, UsageError, require, require_threads
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.explanation import FIELDS, Explanation, Field
from ibforecast.core.facts import ModelFacts
from ibforecast.core.files import sha256
from ibforecast.core.hours import filled
from ibforecast.core.reader import Reader
from ibforecast.core.running import Cell, Cells
from ibforecast.core.verdict import Verification
from ibforecast.core.verification import Original
from ibforecast.core.zones import to_utc, uncertain, utc_of

FORECAST = "forecast"

NOT_BOUND = (
    "weights: only the card of this file names them, and nothing shows that its graph has them; trust it only if {}, "
    "the SHA-256 of the file, is one that you got from a source you trust"
)


def computed(facts: ModelFacts) -> list[Field]:
    """Return the arrays that the graph of a model returns after the forecast, in the order of its outputs."""
    return [row for row in FIELDS if not row.given and (not row.needs or getattr(facts, row.needs))]


def held(facts: ModelFacts) -> list[Field]:
    """Return the arrays that can be held: the input of the readout."""
    return [row for row in computed(facts) if row.replayed]


class OnnxForecaster:
    """A model in an ONNX file: it forecasts arrays of numbers, explains every forecast, and checks explanations.

    `threads` is the number of threads that one run may use; one is fastest for a small window. `sha256` is the
    fingerprint of the file's bytes: compare it with one from a source that you trust.
    """

    def __init__(self, path: str | Path, threads: int = 1) -> None:
        require_threads(threads)
        content = read(Path(path))
        self.threads, self.sha256 = threads, sha256(content)
        self._session = _session(content, path, threads)
        try:
            self.card = Card.from_json(self._session.get_modelmeta().custom_metadata_map[CARD])
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(
                "the card of a model must be complete", f"{error} in {path}", "export again"
            ) from error
        self._check_shapes(path)
        self.cells = self._cells()

    @property
    def facts(self) -> ModelFacts:
        """Names, lengths, calendar, units and budget of the model."""
        return self.card.facts

    def at_budget(self, budget: float | None) -> "OnnxForecaster":
        """Return the same model with another budget, if it was trained for any budget; None changes nothing."""
        facts = self.facts.at_budget(budget)
        if facts is self.facts:
            return self
        other = copy(self)
        other.card = replace(self.card, facts=facts)
        other.cells = other._cells()
        return other

    def predict(
        self, history: Any, times: Any, *, known: Any = None, budget: float | None = None
    ) -> Float64[np.ndarray, "horizon channel"]:
        """Forecast the steps after `history`, in its units.

        `history` has a row per moment of `times`, at least look_back of them with the oldest first, and a column per
        channel; NaN is a missing value. `times` are datetimes, datetime64s or ISO texts; without an offset they are
        local times. `known` has the covariates known ahead: a row for each of these moments and of the steps to
        forecast, a column per covariate. `budget` needs a model that was fitted for any budget.
        """
        _, computed = self.at_budget(budget)._computed(self._original(history, times, known))
        return self.facts.limited(computed)

    def reads(self, at: Any = None) -> list[Cell]:
        """Return the values that a sealed model reads for a forecast made at a moment, oldest first.

        They are the rows of `IBForecaster.reads`. `predict` and `explain` give the same result on a history in which
        every other value is NaN. Without a moment their times are None.
        """
        return running.reads(self.facts, self.cells, at)

    def reader(self, at: Any, *, known: Any = None, budget: float | None = None) -> Reader:
        """Return a reader for a forecast of a sealed model made `at` a moment, from a source instead of a history.

        It lists the cells that it needs, takes their values, and then predicts and explains. `known` has the covariates
        known ahead: a row for each step of look-back and horizon, a column per covariate.
        """
        model = self.at_budget(budget)
        clock = running.window_at(model.facts, at)
        return Reader(model, model.cells, clock, _known(known, model.facts, model.facts.steps))

    def explain(self, history: Any, times: Any, *, known: Any = None, budget: float | None = None) -> ExplainedForecast:
        """Forecast the steps after `history` and explain it, in one run of the graph; arguments as for `predict`."""
        window, model = self._original(history, times, known), self.at_budget(budget)
        explanation, computed = model._computed(window)
        return ExplainedForecast.of(
            model.facts, explanation, computed, window.history, window.clock, known=window.known, host=None
        )

    def verify(
        self,
        explained: ExplainedForecast | str | bytes,
        history: Any = None,
        times: Any = None,
        *,
        known: Any = None,
        truth: Any = None,
        exact: bool = False,
        key: bytes | None = None,
    ) -> Verification:
        """Check that an explanation is true, without raising: the checks of `IBForecaster.verify`.

        With `history` and `times` (and `known`), as for `predict`, the explanation is also compared with these rows,
        and with the `truth` that followed. `explained` may be the text of a document.
        """
        claim = verification.read(explained)
        if isinstance(claim, Verification):
            return claim
        original = None if history is None else self._original(history, times, known)
        if original is not None and truth is not None:
            ahead = original.clock.wall[self.facts.look_back :]
            later = self._read(_numbers(truth, self.facts, self.facts.horizon)[: self.facts.horizon], ahead)
            original = replace(original, truth=later)
        verdict = verification.verify(self, claim, original, exact=exact, key=key)
        # The card names the weights, but whoever writes a file can put any card into it.
        return replace(verdict, notes=(*verdict.notes, NOT_BOUND.format(self.sha256)))

    def run_batch(
        self, values: Any, observed: Any, phase: Any, known: Any = None
    ) -> tuple[Explanation[np.ndarray], Float32[np.ndarray, "batch horizon channel"]]:
        """Run the graph on a batch of windows in standardised units; return explanation and forecast.

        `values` (batch, look_back, channel) are ignored where `observed` is false, and by a sealed model also where it
        does not read; all others must be finite. `phase` (batch, look_back + horizon) is the position of every step in
        the cycles, `known` (batch, look_back + horizon, covariate) the covariates known ahead.
        """
        facts, batch = self.facts, len(np.atleast_1d(values))
        window, steps = (batch, facts.look_back, len(facts.channels)), (batch, facts.steps)
        inputs = {
            "values": _shaped("values", values, np.float32, window),
            "observed": _shaped("observed", observed, np.bool_, window),
            "phase": _shaped("phase", phase, np.int64, steps),
        }
        if facts.covariates:
            inputs["known"] = _shaped("known", known, np.float32, (*steps, len(facts.covariates)))
        if not np.isfinite(inputs["values"][inputs["observed"] & self.cells]).all():
            raise DataError("observed values must be finite", "some that are not", "mark them as not observed")
        return self._run(inputs)

    # --- what a verification needs from an engine ---

    def variants(self) -> Sequence["OnnxForecaster"]:
        """Return only this model: a session has one way to compute."""
        return [self]

    def run(
        self,
        history: Float64[np.ndarray, "look_back channel"],
        phase: Int64[np.ndarray, " steps"],
        known: Float64[np.ndarray, "steps covariate"] | None,
    ) -> tuple[Explanation[np.ndarray], Float64[np.ndarray, "horizon channel"]]:
        """Run the whole model on values in the table's units; return its explanation and forecast."""
        explanation, forecast = self._run(self._window(history, phase, known))
        return explanation.window(0), self._in_units(forecast)

    def replay(self, explanation: Explanation[np.ndarray]) -> Float64[np.ndarray, "horizon channel"]:
        """Compute the forecast from an explanation only; the graph gets a window without a single observation."""
        empty = np.full(explanation.evidence.shape, np.nan)
        return self._held(empty, explanation, replay=True)

    def hold(
        self, history: Float64[np.ndarray, "look_back channel"], explanation: Explanation[np.ndarray]
    ) -> Float64[np.ndarray, "horizon channel"]:
        """Compute the forecast from `history`, with the context and the mask of an explanation."""
        return self._held(history, explanation, replay=False)

    def through(
        self,
        history: Float64[np.ndarray, "look_back channel"],
        phase: Int64[np.ndarray, " steps"],
        known: Float64[np.ndarray, "steps covariate"] | None,
        mask: Bool[np.ndarray, "patch channel"],
    ) -> tuple[Explanation[np.ndarray], Float64[np.ndarray, "horizon channel"]]:
        """Run the model on these values through a given mask; level and scale are computed again."""
        window = self._window(history, phase, known)
        explanation, forecast = self._run(window | {"held_mask": mask[None], "through": np.array(True)})
        return explanation.window(0), self._in_units(forecast)

    def _held(
        self, history: Float64[np.ndarray, "look_back channel"], explanation: Explanation[np.ndarray], replay: bool
    ) -> Float64[np.ndarray, "horizon channel"]:
        one = explanation.batch()
        arrays = {f"held_{field.name}": field.of(one) for field in held(self.facts)}
        window = self._window(history, explanation.context.phase, None)
        if one.context.known is not None:
            window["known"] = one.context.known
        _, forecast = self._run(window | arrays | {"hold": np.array(True), "replay": np.array(replay)})
        return self._in_units(forecast)

    def __repr__(self) -> str:
        facts = self.facts
        return (
            f"OnnxForecaster(horizon={facts.horizon}, look_back={facts.look_back}, budget={facts.budget:.4g}; "
            f"weights {facts.weights_sha256[:12]})"
        )

    def _run(
        self, inputs: dict[str, np.ndarray]
    ) -> tuple[Explanation[np.ndarray], Float32[np.ndarray, "batch horizon channel"]]:
        facts = self.facts
        rows = computed(facts)
        if facts.any_budget:
            inputs = inputs | {"allowance": np.array(facts.allowance)}
        try:
            forecast, *arrays = self._session.run([FORECAST, *(row.name for row in rows)], inputs)
        except Exception as error:  # as below
            raise ModelFileError(
                "the graph of a model must run on its window", str(error)[:300], "export the model again"
            ) from error
        results = {row.name: array for row, array in zip(rows, arrays, strict=True)}
        window = {row.name: inputs[row.name] for row in FIELDS if row.name in inputs}
        return Explanation.of(results | window, facts.cycles), forecast

    def _window(
        self,
        history: Float64[np.ndarray, "look_back channel"],
        phase: Int64[np.ndarray, " steps"],
        known: Float64[np.ndarray, "steps covariate"] | None,
    ) -> dict[str, np.ndarray]:
        """Return the graph's inputs for one window of values in the table's units."""
        facts = self.facts
        with np.errstate(over="ignore"):  # a value too large for single precision becomes infinite
            values = facts.units.standardise(history).astype(np.float32)
        observed: Bool[np.ndarray, "look_back channel"] = ~np.isnan(values)
        window = {"values": np.where(observed, values, np.float32(0)), "observed": observed, "phase": phase}
        if known is not None and facts.known_units is not None:
            window["known"] = facts.known_units.standardise(known).astype(np.float32)
        return {name: array[None] for name, array in window.items()}

    def _in_units(self, forecast: Float32[np.ndarray, "1 horizon channel"]) -> Float64[np.ndarray, "horizon channel"]:
        facts = self.facts
        values = facts.units.to_units(forecast[0].astype(np.float64))
        values[:, len(facts.channels) - len(facts.past) :] = np.nan  # channels that are read and not forecast
        return values + 0.0  # turns -0.0 into 0.0

    def _check_shapes(self, path: str | Path) -> None:
        """Refuse a graph whose windows are not of the lengths and channels that its card names."""
        facts, covariates = self.facts, len(self.facts.covariates)
        window = [facts.look_back, len(facts.channels)]
        needed = {"values": window, "observed": window, "phase": [facts.steps], FORECAST: [facts.horizon, window[1]]}
        needed |= {"mask": [facts.look_back // facts.patch_len, window[1]]}
        needed |= {"known": [facts.steps, covariates]} if covariates else {}
        ends = [*self._session.get_inputs(), *self._session.get_outputs()]
        try:
            there = {end.name: list(end.shape)[1:] for end in ends}
        except UnicodeDecodeError as error:
            raise ModelFileError("names of a graph must be UTF-8", f"{error} in {path}", "export it again") from error
        for name, shape in needed.items():
            if there.get(name) != shape:
                raise ModelFileError(
                    f"{name} of a graph must have the shape {shape} of its card",
                    f"{there.get(name)} in {path}",
                    "export it again",
                )

    def _cells(self) -> Cells:
        """Return which values of a window the graph may read: a sealed one opens the same in every complete window."""
        facts = self.facts
        shape = (facts.look_back, len(facts.channels))
        if not facts.sealed:
            return np.ones(shape, dtype=bool)
        known = np.zeros((facts.steps, len(facts.covariates))) if facts.covariates else None
        explanation, _ = self.run(np.zeros(shape), np.zeros(facts.steps, dtype=np.int64), known)
        return explanation.mask.repeat(facts.patch_len, axis=0)

    def _computed(self, rows: Original) -> tuple[Explanation[np.ndarray], Float64[np.ndarray, "horizon channel"]]:
        """Run the graph on the rows of a history; refuse those it cannot forecast from."""
        running.require_readable(self.facts, self.cells, rows.history, rows.clock)
        return running.computed(self, rows)

    def _original(self, history: Any, times: Any, known: Any) -> Original:
        """Read the last window of a history as the training table was read; refuse invalid input."""
        facts = self.facts
        values, clock = _numbers(history, facts, facts.look_back), facts.clock(_moments(times, facts.zone))
        if len(clock.stamps) != len(values):
            raise DataError(
                "every row of the history must have a time",
                f"{len(values)} rows, {len(clock.stamps)} times",
                "give one per row",
            )
        clock.check_steps()
        values = self._read(values, clock.wall)
        start = len(values) - facts.look_back
        return Original(
            clock.window(start, facts.steps), values[start:], None, _known(known, facts, len(values) + facts.horizon)
        )

    def _read(
        self, values: Float64[np.ndarray, "row channel"], wall: Shaped[np.ndarray, " row"]
    ) -> Float64[np.ndarray, "row channel"]:
        """Return values as a table of training was read: without marks of missing values, and 0 where it says so."""
        seen = np.where(np.isin(values, self.facts.missing_values), np.nan, values)
        return filled(seen, wall, self.facts.zero_at)


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtraError("onnxruntime", "onnx") from error
    return onnxruntime


def _session(content: bytes, path: str | Path, threads: int) -> Any:
    runtime = _onnxruntime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3  # errors only: otherwise it warns about every input with a default
    try:
        return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the errors of onnxruntime have no other common base
        raise ModelFileError(
            "onnxruntime must be able to run the file", f"{error} from {path}", "upgrade onnxruntime"
        ) from error


def _shaped(name: str, value: Any, kind: type[np.generic], shape: tuple[int, ...]) -> np.ndarray:
    array = np.asarray(value)
    if array.shape != shape or not np.can_cast(array.dtype, kind, "same_kind"):
        raise UsageError(
            f"{name} must be {kind.__name__} of shape {shape}", f"{array.dtype} of shape {array.shape}", "reshape it"
        )
    return array.astype(kind)


def _numbers(history: Any, facts: ModelFacts, rows: int) -> Float64[np.ndarray, "row channel"]:
    try:
        values = np.array(history, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError("a history must hold numbers", error, "write NaN for missing values") from error
    if values.ndim != 2 or values.shape[1] != len(facts.channels):
        raise DataError(
            f"a history must have a column for each of {', '.join(map(repr, facts.channels))}",
            f"shape {values.shape}",
            "give rows by channels, in this order",
        )
    if len(values) < rows:
        raise DataError(f"there must be {rows} rows or more", len(values), "give earlier rows")
    if (infinite := np.isinf(values)).any():
        row, column = np.argwhere(infinite)[0]
        raise DataError(
            "values must be finite",
            f"{values[row, column]} in row {row} of {facts.channels[column]!r}",
            "correct them, or write NaN for missing values",
        )
    return values


def _moments(times: Any, zone: str | None) -> Shaped[np.ndarray, " row"]:
    """Return times as a `Clock` has them: in UTC if there is a zone, otherwise local."""
    array = np.asarray(times)
    if not np.issubdtype(array.dtype, np.datetime64):
        return np.array([_moment(time, zone) for time in np.atleast_1d(array).tolist()], dtype="datetime64[us]")
    return _from_wall(array.astype("datetime64[us]"), zone)


def _moment(time: Any, zone: str | None) -> np.datetime64:
    try:
        moment = time if isinstance(time, datetime) else datetime.fromisoformat(time)
    except (TypeError, ValueError) as error:
        raise DataError("times must be datetimes or ISO texts", repr(time), "try '2024-01-31 18:00'") from error
    if moment.tzinfo is None:
        return np.datetime64(_from_wall(np.array([moment], dtype="datetime64[us]"), zone)[0])
    if zone is None:
        raise DataError("the model's times have no zone", time, "leave out the offset")
    return utc_of(moment)


def _from_wall(wall: Shaped[np.ndarray, " row"], zone: str | None) -> Shaped[np.ndarray, " row"]:
    if np.isnat(wall).any():
        raise DataError("every row must have a time", "one without", "drop it, or add its time")
    if zone is not None and (ambiguous := uncertain(wall, zone)).any():
        raise DataError(
            f"a local time must be one the clock of {zone} showed exactly once",
            wall[ambiguous][0],
            "give the times with their offsets",
        )
    return to_utc(wall, zone)


def _known(known: Any, facts: ModelFacts, rows: int) -> Float64[np.ndarray, "steps covariate"] | None:
    """Return the covariates known ahead over the last window and its horizon; None for a model without them."""
    names = ", ".join(map(repr, facts.covariates))
    if not facts.covariates:
        require(known is None, "only a model with covariates takes values known ahead", "known", "leave it out")
        return None
    shape = (rows, len(facts.covariates))
    array = np.array([] if known is None else known, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise DataError(
            f"known must have a row for every moment of the history and the horizon, and columns {names}",
            f"shape {array.shape} instead of {shape}, or a missing value",
            "give finite numbers for all of them",
        )
    return array[rows - facts.steps :]
