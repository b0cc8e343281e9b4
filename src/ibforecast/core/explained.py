"""Explained forecasts: one window's forecast with its explanation, in the table's names, times and units.

An `ExplainedForecast` is valid once built: its arrays fit each other, its phases follow from its times, and its open,
closed and missing tokens agree with its history. Its document is self-contained, and has the fingerprint of its
content.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64

from ibforecast.core import document, reading, writing
from ibforecast.core.calendar import Clock
from ibforecast.core.context import effect
from ibforecast.core.errors import UsageError, VerificationError, names_of
from ibforecast.core.explanation import FIELDS, Explanation
from ibforecast.core.facts import ModelFacts
from ibforecast.core.host import Host, Itemiser
from ibforecast.core.information import token_bits
from ibforecast.core.limits import Limits
from ibforecast.core.standardiser import Standardiser, frozen
from ibforecast.core.verdict import Verification
from ibforecast.core.writing import STATEMENTS, nullable
from ibforecast.core.zones import without_offsets

FORMAT, VERSION = "ibforecast.explanation", 1
READABLE = {row.name: row.of for row in FIELDS} | {
    name: attrgetter(path) for name, path in (("context", "context"), ("cycles", "context.cycles"))
}
"""The attributes an explained forecast takes from its explanation, and how to get them."""

DIGITS = 6
"""Decimals of `rate_bits` in a document: the last digits of a logarithm depend on the processor."""


@dataclass(frozen=True)
class Token:
    """A patch of a channel: its time span, whether it was read, the bits of its gate, its deviation and its values.

    Values are in the table's units. Deviations are from the baseline μ + σQ, in units of this window's scale σ.
    """

    channel: str
    start: str
    end: str
    open: bool
    probability: float
    bits: float
    missing: bool
    mean_deviation: float
    largest_deviation: float
    values: list[float | None]


@dataclass(frozen=True)
class KnownStep:
    """The value of a covariate known ahead at a step, and by how much it moves a channel there, in their units."""

    time: str
    covariate: str
    value: float
    channel: str
    effect: float


@dataclass(frozen=True, eq=False, repr=False)
class ExplainedForecast:
    """One window's forecast, the explanation it was computed from, and their names, times and units.

    `history`, `forecast`, `truth` and `known` are in the table's units, NaN where missing; channels in `past` are
    read and have no forecast. The arrays of `explanation` are the numbers the readout read. They are not in the table's
    units: level, scale and what is known are standardised by `units` and `known_units`, and profile and evidence are in
    units of that scale. They are attributes too, such as `explained.mask` or `explained.level`. `clock` is the time
    axis of look-back and horizon, from which times and phases follow. If `sealed`, mask and context were also computed
    only from what was read. If the model has `limits`, `unlimited` is what it computed, and the forecast is that within
    the limits; otherwise both are None. At the times of the day in `zero_at`, a value that is missing in the table is 0
    in history and truth. `receipts` are those that were added to its document.
    """

    explanation: Explanation[np.ndarray]
    forecast: Float64[np.ndarray, "horizon channel"]
    history: Float64[np.ndarray, "look_back channel"]
    truth: Float64[np.ndarray, "horizon channel"] | None
    channels: tuple[str, ...]
    clock: Clock
    units: Standardiser
    budget: float
    prior: float
    weights_sha256: str
    sealed: bool = False
    past: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()
    known: Float64[np.ndarray, "steps covariate"] | None = None
    known_units: Standardiser | None = None
    limits: Limits | None = None
    unlimited: Float64[np.ndarray, "horizon channel"] | None = None
    zero_at: tuple[str, ...] = ()
    receipts: "tuple[Receipt, ...]" = ()
    signature: str | None = None
    host: Host | None = None

    @classmethod
    def of(
        cls,
        facts: ModelFacts,
        explanation: Explanation[np.ndarray],
        computed: Float64[np.ndarray, "horizon channel"],
        history: Float64[np.ndarray, "look_back channel"],
        clock: Clock,
        truth: Float64[np.ndarray, "horizon channel"] | None = None,
        known: Float64[np.ndarray, "steps covariate"] | None = None,
        host: Host | None = None,
    ) -> "ExplainedForecast":
        """Combine a model's result for one window with the facts about the model."""
        return cls(
            explanation=explanation,
            forecast=facts.limited(computed),
            history=history,
            truth=truth,
            channels=facts.channels,
            clock=clock,
            units=facts.units,
            budget=facts.budget,
            prior=facts.prior,
            weights_sha256=facts.weights_sha256,
            sealed=facts.sealed,
            past=facts.past,
            covariates=facts.covariates,
            known=known,
            known_units=facts.known_units,
            limits=facts.limits,
            unlimited=None if facts.limits is None else computed,
            zero_at=facts.zero_at,
            host=host,
        )

    def __post_init__(self) -> None:
        for name in ("forecast", "history", "truth", "known", "unlimited"):
            values = getattr(self, name)
            if values is not None:  # adding 0.0 turns -0.0 into 0.0: a document does not keep the sign of zero
                object.__setattr__(self, name, frozen(values + 0.0))
        # Copies: otherwise the caller could change an array after it was checked.
        object.__setattr__(self, "explanation", self.explanation.map(lambda _, array: frozen(array.copy())))
        validity.check(self)

    def __getattr__(self, name: str) -> Any:
        """Return an array of the explanation or its context, such as `explained.mask` or `explained.level`."""
        if name not in READABLE or "explanation" not in self.__dict__:
            raise AttributeError(f"an ExplainedForecast has no attribute {name!r}")
        return READABLE[name](self.explanation)

    @property
    def computed(self) -> Float64[np.ndarray, "horizon channel"]:
        """The forecast that the model computed, before any limits."""
        return self.forecast if self.unlimited is None else self.unlimited

    @property
    def look_back(self) -> int:
        """Number of steps of the window."""
        return len(self.history)

    @property
    def horizon(self) -> int:
        """Number of steps of the forecast."""
        return len(self.forecast)

    @cached_property
    def patch_len(self) -> int:
        """Number of steps of a patch."""
        return self.explanation.patch_len

    @cached_property
    def times(self) -> tuple[str, ...]:
        """The moment of every step of look-back and horizon, as text."""
        return self.clock.labels(0, self.look_back + self.horizon)

    @cached_property
    def moments(self) -> tuple[str, ...]:
        """The times in words: the zone once, and an offset only if the clock showed a time twice."""
        return self.times if self.clock.zone is None else without_offsets(self.times)

    @property
    def zone(self) -> str:
        """The time zone, in brackets after the first time in words; empty if times have none."""
        return "" if self.clock.zone is None else f" ({self.clock.zone})"

    @property
    def frequency(self) -> str:
        """The length of a step, such as "1h"."""
        return self.clock.step

    @property
    def at(self) -> str:
        """The moment the forecast was made: the last step of the look-back."""
        return self.times[self.look_back - 1]

    @property
    def open_count(self) -> int:
        """Number of open tokens."""
        return int(self.explanation.open_count)

    @property
    def open_rate(self) -> float:
        """Realised fraction of the window that was read."""
        return float(self.explanation.open_rate)

    @property
    def is_forecast(self) -> Bool[np.ndarray, " channel"]:
        """Which channels have a forecast."""
        return np.array([name not in self.past for name in self.channels])

    @property
    def bits(self) -> Float64[np.ndarray, "patch channel"]:
        """Bits of each gate beyond the prior, KL(Bern(p) ‖ Bern(π)); 0 where a missing step keeps the gate closed."""
        return np.where(self.explanation.missing, 0.0, token_bits(self.explanation.probability, self.prior))

    @property
    def rate_bits(self) -> float:
        """Sum of the bits of all gates of the window."""
        return round(float(self.bits.sum()), DIGITS)

    @cached_property
    def expected(self) -> Float64[np.ndarray, "steps channel"]:
        """The disclosed baseline over look-back and horizon, in the table's units: μ + σQ plus known covariates."""
        context = self.explanation.map(lambda row, array: array.astype(np.float64) if row.kind == "float32" else array)
        return self.units.to_units(context.context.reference(self.look_back + self.horizon))

    @cached_property
    def usual(self) -> Float64[np.ndarray, "look_back channel"]:
        """The learned profile of each step of the look-back, in the table's units, at the level of training.

        The effect of what is known ahead at that step is part of it.
        """
        own = self.explanation.context
        context = replace(own, level=np.zeros_like(own.level), scale=np.ones_like(own.scale))
        return self.units.to_units(context.reference(self.look_back).astype(np.float64))

    @property
    def deviation(self) -> Float64[np.ndarray, "look_back channel"]:
        """The history minus the disclosed baseline, in units of the scale; NaN where missing."""
        scale = self.units.std * self.explanation.context.scale
        return np.asarray((self.history - self.expected[: self.look_back]) / scale)

    @property
    def effects(self) -> Float64[np.ndarray, "steps covariate channel"] | None:
        """By how much each covariate known ahead moves each channel, in the table's units; None without covariates."""
        context = self.explanation.context
        if context.known is None or context.response is None:
            return None
        moved = effect(context.known.astype(np.float64), context.response.astype(np.float64), context.phase)
        return np.asarray(self.units.std * moved)

    def tokens(self) -> Iterator[Token]:
        """Yield one row per token, channel by channel, oldest patch first."""
        explanation, deviation, bits, times = self.explanation, self.deviation, self.bits, self.times
        for column, channel in enumerate(self.channels):
            for patch in range(len(explanation.mask)):
                steps = self.steps(patch)
                seen = deviation[steps, column]
                seen = seen[~np.isnan(seen)]
                yield Token(
                    channel=channel,
                    start=times[steps.start],
                    end=times[steps.stop - 1],
                    open=bool(explanation.mask[patch, column]),
                    probability=float(explanation.probability[patch, column]),
                    bits=float(bits[patch, column]),
                    missing=bool(explanation.missing[patch, column]),
                    mean_deviation=float(seen.mean()) if len(seen) else float("nan"),
                    largest_deviation=float(seen[np.abs(seen).argmax()]) if len(seen) else float("nan"),
                    values=nullable(self.history[steps, column]),
                )

    def known_steps(self) -> Iterator[KnownStep]:
        """Yield one row per step, covariate known ahead and forecast channel: its value and its effect."""
        effects = self.effects
        if self.known is None or effects is None:
            return
        for step, time in enumerate(self.times):
            for number, covariate in enumerate(self.covariates):
                for column in np.flatnonzero(self.is_forecast):
                    moved = float(effects[step, number, column]) + 0.0  # turns -0.0 into 0.0
                    yield KnownStep(time, covariate, float(self.known[step, number]), self.channels[column], moved)

    def steps(self, patch: int) -> slice:
        """Return the look-back steps of a patch."""
        length = self.patch_len
        return slice(patch * length, (patch + 1) * length)

    def in_words(self, channel: str | None = None, step: "Step" = "mean", *, full: bool = False) -> str:
        """Describe what the forecast of a channel is made of, in at most eight lines; by default of every channel.

        `full` describes what was read instead: every place of every channel, as a document does. An explanation that
        has neither its model nor the receipts of all channels describes that, too, in brief.
        """
        if full and (channel, step) != (None, "mean"):
            got = f"full=True, channel={channel!r}, step={step!r}"
            raise UsageError("full words describe every channel and step", got, "leave out full, or channel and step")
        forecast = {(name, step) for name in self.channels if name not in self.past}
        has_all = forecast <= {(own.channel, own.step) for own in self.receipts}
        if full or (channel is None and not has_all and not isinstance(self.host, Itemiser)):
            return words.in_words(self, full)
        return accounts.in_words(self, channel, step)

    def verify(self, table: Any = None, *, exact: bool = False) -> Verification:
        """Check this explanation with the model that computed it: `IBForecaster.verify`.

        Raises VerificationError unless every check passes.
        """
        verification = self._host("verifying", "use model.verify(explanation)").verify(self, table, exact=exact)
        if not verification:
            raise VerificationError(f"an explanation must be true:\n{verification}")
        return verification

    def to_table(self) -> Any:
        """Return a table with one row per token: its place, whether it was read, and its deviation, in scales."""
        return self._host("making a table", "use tokens()").tabulate(Token, self.tokens())

    def receipt(self, channel: str, step: "Step" = "mean") -> Any:
        """Return a table of what adds up to the forecast of a channel at one step ahead, or to its mean.

        Its columns are part, channel, start, end and amount. The amounts are in the units of the channel and add up to
        the forecast to the last digit.
        """
        entries = self.itemised(channel, step).parts(self)
        return self._host("making a table", "use itemised()").tabulate(receipt.Part, entries)

    def itemised(self, channel: str, step: "Step" = "mean") -> "Receipt":
        """Return the receipt of a channel's forecast at one step ahead, counted from 1, or of its mean.

        It is taken from the document, if it is there, and computed by the model otherwise.
        """
        for own in self.receipts:
            if (own.channel, own.step) == (channel, step):
                return own
        return receipt.receipt_of(self, self.amounts(channel), channel, step)

    def compare(self, other: "ExplainedForecast", channel: str, step: "Step" = "mean") -> Any:
        """Return a table of why a channel's forecast differs from that of another explanation of the same model.

        Its columns are kind, channel, start, end, before, after and change. The changes are in the units of the channel
        and add up to the difference of the two forecasts to the last digit.
        """
        changes = comparison.compare(self, other, channel, step).changes
        return self._host("making a table", "use core.comparison.compare()").tabulate(comparison.Change, changes)

    def amounts(self, channel: str) -> "Amounts":
        """Return what adds up to the forecast of a channel, at every step and not rounded."""
        return self.amounts_of([channel])[channel]

    def amounts_of(self, channels: Sequence[str]) -> "dict[str, Amounts]":
        """Return the amounts of several channels; computing them together takes little more time than those of one."""
        names = names_of("channels", channels)
        for name in names:
            receipt.column_of(self, name)
        self._compute(names)
        return {name: self._computed[name] for name in names}

    def _compute(self, channels: Sequence[str]) -> None:
        """Compute the amounts of these channels together, which takes little more time than those of one."""
        wanted = [name for name in channels if name not in self._computed]
        if wanted and not isinstance(self.host, Itemiser):
            some = [f"{own.channel!r}, {own.step!r}" for own in self.receipts[:5]]
            there = ", ".join([*some, *["…"] * (len(self.receipts) > len(some))])
            raise UsageError(
                "a receipt needs the model that gave the explanation",
                "an explanation without its model, or in a runtime that computes no receipts",
                f"use model.explain(table), or the receipts of its document ({there or 'it has none'})",
            )
        if wanted and isinstance(self.host, Itemiser):
            columns = [self.channels.index(name) for name in wanted]
            self._computed.update(zip(wanted, self.host.amounts(self, columns), strict=True))

    @cached_property
    def _computed(self) -> "dict[str, Amounts]":
        return {}

    def with_receipts(self, channels: "Sequence[str] | None" = None, step: "Step" = "mean") -> "ExplainedForecast":
        """Return the explanation with receipts of these channels (None: all that are forecast) in its document."""
        forecast = (name for name in self.channels if name not in self.past)
        names = names_of("channels", forecast if channels is None else channels)
        for name in names:
            receipt.column_of(self, name)
        self._compute(names)
        return replace(self, receipts=tuple(self.itemised(name, step) for name in names), signature=None)

    def known_to_table(self) -> Any:
        """Return a table with one row per step, covariate known ahead and channel: its value and its effect."""
        return self._host("making a table", "use known_steps()").tabulate(KnownStep, self.known_steps())

    def plot(self, path: str | Path, channel: str | None = None, step: "Step" = "mean") -> Path:
        """Write the explanation as a picture (.png, .svg) or a page (.html), with the receipt of a channel.

        By default it is the channel that the read values move most. `step` is a number of steps ahead, from 1, or the
        mean; a page starts with the mean and has all steps.
        """
        host = self._host("drawing", "use ibforecast.plots.explanation.draw(explanation, path)")
        host.draw(self, Path(path), channel, step)
        return Path(path)

    def to_spreadsheet(
        self, path: str | Path, channels: Sequence[str] | None = None, steps: Sequence[int] | None = None
    ) -> Path:
        """Write the forecast of an additive model as a workbook (.xlsx) of formulas that anyone can check.

        Its inputs are the values that were read: if one is changed there, the forecast changes as the model's would.
        `channels` and `steps` (numbers of steps ahead, from 1) choose what is in it; None: all of them.
        """
        self._host("a spreadsheet", "use model.explain(table)").spreadsheet(self, Path(path), channels, steps)
        return Path(path)

    def _host(self, what: str, otherwise: str) -> Host:
        if self.host is None:
            raise UsageError(
                f"{what} needs the model that gave the explanation", "an explanation without its model", otherwise
            )
        return self.host

    def _repr_html_(self) -> str | None:
        """Return the explanation as HTML for a notebook; None without its model."""
        return None if self.host is None else self.host.html(self)

    def __repr__(self) -> str:
        return (
            f"ExplainedForecast(at={self.at!r}, horizon={self.horizon}, channels={len(self.channels)}; "
            f"{words.rate_line(self)})"
        )

    # --- as a document ---

    @cached_property
    def sha256(self) -> str:
        """The fingerprint of the content, which identifies this explanation in any spelling."""
        return document.fingerprint({"format": FORMAT, "version": VERSION, **writing.content(self)})

    def to_json(self) -> str:
        """Return one self-contained document; `from_json` restores the same content to the last bit."""
        return document.write(FORMAT, VERSION, writing.written(self), self.sha256)

    @classmethod
    def from_json(cls, text: str | bytes) -> "ExplainedForecast":
        """Read a document that `to_json` wrote, even if another client rewrote it; refuse anything else.

        Raises DataError, with the name of the field, if the document cannot be read, and VerificationError if its
        content was changed.
        """
        content, sha256 = document.opened(text, FORMAT, VERSION)
        stated = {name: content.pop(name, None) for name in STATEMENTS}
        receipts = reading.sequence(content.pop("receipts", []), "receipts")
        explained = cls(**reading.explanation(content), receipts=tuple(map(receipt.read, receipts)))
        for name, own in writing.statements(explained).items():
            if stated[name] != own or isinstance(stated[name], bool):  # True == 1 in Python
                got = words.first_difference(stated[name], own)
                raise VerificationError(f"{name} must follow from the rest of an explanation", got, "write it again")
        if explained.sha256 != sha256:
            raise VerificationError(
                "an explanation must match its fingerprint", "content changed after it was written", "write it again"
            )
        return explained


# These modules import ExplainedForecast, so they can be imported only after it is defined.
from ibforecast.core import accounts, comparison, receipt, validity, words  # noqa: E402
from ibforecast.core.receipt import Amounts, Receipt, Step  # noqa: E402
