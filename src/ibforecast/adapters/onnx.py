"""A model as one ONNX file, run without PyTorch: it predicts, explains and verifies with onnxruntime and numpy.

`IBForecaster.to_onnx` writes the file (`onnx_export.py`), `OnnxForecaster` reads it. The graph takes `values`,
`observed` and `phase` and gives forecast, mask, probability, missing, evidence, level, scale and profile. Its other
inputs have defaults. They serve the checks: `hold` puts `held_level`, `held_scale`, `held_profile` and `held_mask` in
the place of what the window would give, `replay` puts `held_evidence` there too; the readout comes after, so the
forecast is computed from what these five say and the phase. `allowance`, the number of tokens that may be open, is
there in a model for any budget. Names, units and calendar lie in the file as JSON.
"""

import platform
from copy import copy
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64, Shaped

from ibforecast.adapters.onnx_file import CARD, Card, read
from ibforecast.core import verification
from ibforecast.core.account import Account
from ibforecast.core.calendar import Clock, Frequency, month_day
from ibforecast.core.errors import DataError, MissingExtraError, ModelFileError, UsageError, require
from ibforecast.core.verification import ModelFacts, Verification
from ibforecast.core.zones import to_utc, to_wall, uncertain
from ibforecast.data.standardiser import Standardiser
from ibforecast.model.config import allowance


@dataclass(frozen=True)
class Outputs:
    """What the graph gives for a batch of windows, in standardised units; the fields are the graph's outputs."""

    forecast: Float32[np.ndarray, "batch horizon channel"]
    mask: Bool[np.ndarray, "batch patch channel"]
    probability: Float32[np.ndarray, "batch patch channel"]
    missing: Bool[np.ndarray, "batch patch channel"]
    evidence: Float32[np.ndarray, "batch look_back channel"]
    level: Float32[np.ndarray, "batch channel"]
    scale: Float32[np.ndarray, "batch channel"]
    profile: Float32[np.ndarray, "cycle channel"]


OUTPUTS = tuple(field.name for field in fields(Outputs))


class OnnxForecaster:
    """A model in an ONNX file: forecasts arrays of numbers, explains every forecast, and checks explanations.

    `threads` is how many threads one run may use; a small window is quickest with one.
    """

    def __init__(self, path: str | Path, threads: int = 1) -> None:
        require(threads >= 1, "threads must be at least 1", str(threads), "try 1")
        content = read(Path(path))
        self.threads = threads
        self._session = _session(content, path, threads)
        try:
            self.card = Card.from_json(self._session.get_modelmeta().custom_metadata_map[CARD])
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"a model's card must be complete (got {error} in {path}); export again") from error

    @property
    def facts(self) -> ModelFacts:
        """What the model says of itself: names, lengths, units, budget."""
        return self.card.facts

    def at_budget(self, budget: float | None) -> "OnnxForecaster":
        """The same model under another budget, where it was trained for any; None leaves it as it is."""
        facts = self.facts
        if budget is None or budget == facts.budget:
            return self
        require(
            facts.any_budget,
            "a budget can be turned only in a model trained for any",
            f"budget={budget}, trained for {facts.budget}",
            'fit with gate.any_budget = true, such as recipe "any-budget"',
        )
        require(0 < budget <= 1, "budget must lie in (0, 1]", f"budget={budget}", "try 0.2 for a fifth")
        tokens = facts.look_back // facts.patch_len * len(facts.channels)
        allowed = allowance(budget, tokens)
        require(allowed >= 1, "budget must allow at least one token", f"budget={budget} of {tokens}", "try 0.2")
        other = copy(self)
        other.card = replace(self.card, facts=replace(facts, budget=budget, allowance=allowed))
        return other

    def predict(
        self, history: Any, times: Any, *, budget: float | None = None
    ) -> Float64[np.ndarray, "horizon channel"]:
        """Forecast what follows `history`, in its units.

        `history` has a row per moment of `times`, oldest first and at least look_back of them, and a column per
        channel, NaN where a value is missing. `times` are datetimes, datetime64s or ISO texts; without an offset they
        are read as local time. `budget` turns the budget of a model that was fitted for any.
        """
        values, clock = self._table(history, times)
        start = len(values) - self.facts.look_back
        told = self.at_budget(budget)._run_one(values[start:], self._phase(clock, start))
        return self._in_units(told.forecast)

    def explain(self, history: Any, times: Any, *, budget: float | None = None) -> Account:
        """Forecast what follows `history` and say what was read: one run of the graph; arguments as for `predict`."""
        values, clock = self._table(history, times)
        turned, start = self.at_budget(budget), len(values) - self.facts.look_back
        facts, phase = turned.facts, self._phase(clock, start)
        return Account(
            weights_sha256=facts.weights_sha256,
            computed_with=self.environment(),
            budget=facts.budget,
            patch_len=facts.patch_len,
            frequency=self.card.frequency,
            channels=facts.channels,
            times=clock.labels(start, facts.look_back + facts.horizon),
            history=values[start:],
            truth=None,
            mean=facts.mean,
            std=facts.std,
            phase=phase,
            prior=facts.prior,
            **self._told(turned._run_one(values[start:], phase)),
        )

    def verify(self, account: Account) -> Verification:
        """Check that an explanation is the truth about its forecast, without raising: `IBForecaster.verify`'s checks.

        The noise of the scramble goes into the graph's own input, with context and mask held. What PyTorch computed
        may differ in the last bits: then it is allowed to, and the check says so.
        """
        try:
            model = self.at_budget(account.budget)
        except UsageError:  # it cannot have kept this budget: the names will differ
            model = self
        return verification.verify(model, account)

    def run(self, values: Any, observed: Any, phase: Any) -> Outputs:
        """Run the graph on a batch of windows that are standardised already, as many as there are.

        `values` (batch, look_back, channel) mean nothing where `observed` is false; `phase` (batch, look_back +
        horizon) is the place of every step in the cycle.
        """
        facts, batch = self.facts, len(np.atleast_1d(values))
        window = (batch, facts.look_back, len(facts.channels))
        given = {
            "values": _shaped("values", values, np.float32, window),
            "observed": _shaped("observed", observed, np.bool_, window),
            "phase": _shaped("phase", phase, np.int64, (batch, facts.look_back + facts.horizon)),
        }
        if not np.isfinite(given["values"][given["observed"]]).all():
            raise DataError("observed values must be finite (got some that are not); mark them as not observed")
        return self._run(given | {"values": np.where(given["observed"], given["values"], np.float32(0))})

    def environment(self) -> dict[str, str]:
        """What the last bits of a forecast depend on besides weights and window."""
        found: list[str] = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
        return {
            "onnxruntime": _onnxruntime().__version__,
            "processor": " ".join([platform.machine(), *found[-1:]]),
            "threads": str(self.threads),
        }

    def replay(self, account: Account) -> Float64[np.ndarray, "horizon channel"]:
        """Compute the forecast from the explanation and its context alone; the window is not shown."""
        nothing = np.zeros(account.history.shape, dtype=np.float32)
        window = {"values": nothing[None], "observed": np.ones_like(nothing, dtype=np.bool_)[None]}
        held = _held(account) | {"replay": np.array(True), "held_evidence": account.evidence[None]}
        return self._in_units(self._run(window | held).forecast)

    def replay_scrambled(self, account: Account) -> Float64[np.ndarray, "horizon channel"]:
        """Compute it from a window with noise in every closed token, context and mask held."""
        values, _ = self._standardised(account.history)
        noise = np.random.default_rng(0).standard_normal(values.shape) * 10 * (np.abs(values).max() + 1)
        read = account.mask.repeat(account.patch_len, axis=0)
        scrambled = np.where(read, values, noise.astype(np.float32))
        window = {"values": scrambled[None], "observed": np.ones_like(read)[None]}
        return self._in_units(self._run(window | _held(account)).forecast)

    def rerun(self, account: Account) -> Account:
        """Run the graph on the same history again and say what it says now."""
        return replace(account, **self._told(self._run_one(account.history, account.phase)))

    def __repr__(self) -> str:
        facts = self.facts
        return (
            f"OnnxForecaster(horizon={facts.horizon}, look_back={facts.look_back}, budget={facts.budget}; "
            f"weights {facts.weights_sha256[:12]})"
        )

    def _run(self, given: dict[str, np.ndarray]) -> Outputs:
        turned = {"allowance": np.array(self.facts.allowance)} if self.facts.any_budget else {}
        return Outputs(**dict(zip(OUTPUTS, self._session.run(list(OUTPUTS), given | turned), strict=True)))

    def _run_one(
        self, history: Float64[np.ndarray, "look_back channel"], phase: Int64[np.ndarray, " steps"]
    ) -> Outputs:
        values, observed = self._standardised(history)
        return self._run({"values": values[None], "observed": observed[None], "phase": phase[None]})

    def _standardised(
        self, history: Float64[np.ndarray, "look_back channel"]
    ) -> tuple[Float32[np.ndarray, "look_back channel"], Bool[np.ndarray, "look_back channel"]]:
        values = Standardiser(self.facts.mean, self.facts.std).standardise(history).astype(np.float32)
        observed = ~np.isnan(values)
        return np.where(observed, values, np.float32(0)), observed

    def _in_units(self, forecast: Float32[np.ndarray, "1 horizon channel"]) -> Float64[np.ndarray, "horizon channel"]:
        return Standardiser(self.facts.mean, self.facts.std).to_units(forecast[0].astype(np.float64))

    def _told(self, told: Outputs) -> dict[str, Any]:
        """What an account says of the one window of a run."""
        arrays = {name: getattr(told, name) for name in OUTPUTS}
        first = {name: array[0] for name, array in arrays.items() if name not in ("forecast", "profile")}
        return first | {"forecast": self._in_units(told.forecast), "profile": told.profile}

    def _phase(self, clock: Clock, start: int) -> Int64[np.ndarray, " steps"]:
        facts = self.facts
        return clock.phase(start, facts.look_back + facts.horizon, facts.cycle)

    def _table(self, history: Any, times: Any) -> tuple[Float64[np.ndarray, "row channel"], Clock]:
        """Numbers and time axis, both as the training table's were read; what cannot be is refused."""
        facts, card = self.facts, self.card
        values = _numbers(history, facts)
        frequency = Frequency.parse(card.frequency)
        clock = Clock(_moments(times, card.zone), frequency, card.zone, card.by_row, np.datetime64(card.origin))
        if len(clock.stamps) != len(values):
            raise DataError(
                f"every row of the history must have a time (got {len(values)} rows, {len(clock.stamps)} times); "
                "give one per row"
            )
        _check_steps(clock)
        values = np.where(np.isin(values, card.missing_values), np.nan, values)
        silent = np.isnan(values[-facts.look_back :]).all(axis=0)
        if silent.any():
            raise DataError(
                f"every channel must be observed at least once in the window (got nothing in "
                f"{facts.channels[int(silent.argmax())]!r} in the last {facts.look_back} rows); choose another moment"
            )
        return values, clock


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
    options.log_severity_level = 3  # errors only: it would say of each input with a default that it has one
    try:
        return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors share no other base
        raise ModelFileError(
            f"onnxruntime must be able to run the file (got {error} from {path}); upgrade onnxruntime"
        ) from error


def _held(account: Account) -> dict[str, np.ndarray]:
    """The inputs that hold context and mask as the account has them."""
    return {
        "phase": account.phase[None],
        "hold": np.array(True),
        "held_level": account.level[None],
        "held_scale": account.scale[None],
        "held_profile": account.profile,
        "held_mask": account.mask[None],
    }


def _shaped(name: str, given: Any, kind: type[np.generic], shape: tuple[int, ...]) -> np.ndarray:
    array = np.asarray(given)
    if array.shape != shape or not np.can_cast(array.dtype, kind, "same_kind"):
        raise UsageError(
            f"{name} must be {kind.__name__} of shape {shape} (got {array.dtype} of shape {array.shape}); reshape it"
        )
    return array.astype(kind)


def _numbers(history: Any, facts: ModelFacts) -> Float64[np.ndarray, "row channel"]:
    try:
        values = np.array(history, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"a history must hold numbers (got {error}); write NaN for what is missing") from error
    if values.ndim != 2 or values.shape[1] != len(facts.channels):
        raise DataError(
            f"a history must have a column for each of {', '.join(map(repr, facts.channels))} "
            f"(got shape {values.shape}); give rows by channels, in this order"
        )
    if len(values) < facts.look_back:
        raise DataError(
            f"a forecast must have look_back = {facts.look_back} rows before it (got {len(values)}); give earlier rows"
        )
    if (endless := np.isinf(values)).any():
        row, column = np.argwhere(endless)[0]
        raise DataError(
            f"values must be finite ({facts.channels[column]!r} has row {row}: {values[row, column]}); "
            "mend them, or write NaN for what is missing"
        )
    return values


def _moments(times: Any, zone: str | None) -> Shaped[np.ndarray, " row"]:
    """Times as a clock has them: in UTC where there is a zone, else by the wall clock."""
    array = np.asarray(times)
    if not np.issubdtype(array.dtype, np.datetime64):
        return np.array([_moment(time, zone) for time in np.atleast_1d(array).tolist()], dtype="datetime64[us]")
    return _from_wall(array.astype("datetime64[us]"), zone)


def _moment(time: Any, zone: str | None) -> np.datetime64:
    try:
        moment = time if isinstance(time, datetime) else datetime.fromisoformat(time)
    except (TypeError, ValueError) as error:
        raise DataError(f"times must be datetimes or ISO texts (got {time!r}); try '2024-01-31 18:00'") from error
    if moment.tzinfo is None:
        return np.datetime64(_from_wall(np.array([moment], dtype="datetime64[us]"), zone)[0])
    if zone is None:
        raise DataError(f"the model's times have no zone (got {time}); leave out the offset")
    return np.datetime64(moment.astimezone(UTC).replace(tzinfo=None), "us")


def _from_wall(wall: Shaped[np.ndarray, " row"], zone: str | None) -> Shaped[np.ndarray, " row"]:
    if np.isnat(wall).any():
        raise DataError("every row must have a time (got one without); drop it, or give its time")
    if zone is not None and (unsure := uncertain(wall, zone)).any():
        raise DataError(
            f"a local time must be one the clock of {zone} showed exactly once (got {wall[unsure][0]}); "
            "give the times with their offsets"
        )
    return to_utc(wall, zone)


def _check_steps(clock: Clock) -> None:
    """Refuse times that do not follow each other as the training table's did."""
    stamps, frequency = clock.stamps, clock.frequency
    if len(back := np.flatnonzero(np.diff(stamps) < np.timedelta64(0))):
        raise DataError(f"times must increase (got a step back in row {int(back[0]) + 1}); sort the rows")
    even = to_wall(stamps, clock.zone) if frequency.by_date else stamps
    expected = frequency.after(even[0], np.arange(len(even)), month_day(even))
    if not clock.by_row and len(off := np.flatnonzero(expected != even)):
        row = int(off[0])
        raise DataError(
            f"times must follow each other in even steps, here of {frequency} (got {even[row]} in row {row} where "
            f"{expected[row]} belongs); give a missing moment a row of NaN"
        )
