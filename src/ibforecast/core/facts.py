"""The facts about a model that its explanations must agree with, in any runtime."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from ibforecast.core import reading
from ibforecast.core.budget import allowance, require_budget, settled
from ibforecast.core.calendar import Clock, Frequency
from ibforecast.core.cycles import LARGEST_PERIOD, period
from ibforecast.core.errors import DataError, ModelFileError, require
from ibforecast.core.hours import SPAN
from ibforecast.core.limits import Limits
from ibforecast.core.standardiser import Standardiser
from ibforecast.core.zones import find_zone


@dataclass(frozen=True, eq=False)
class ModelFacts:
    """Names, lengths, calendar, budget, units and limits of a model.

    A `sealed` model computes mask, context and forecast only from what it reads. A model that `chooses` looks at the
    whole window for its mask, and computes context and forecast only from what it reads. An `anchored` model blends
    naive forecasts into its own.

    If rows are counted (`by_row`), `origin` is the moment of the first training row, and `even` is whether the training
    rows were evenly spaced. Only then does the number of a row follow from its time. `numbered` is whether rows are
    labelled by number instead of time. `zero_at` are the times of the day at which a missing value is read as 0.

    `weights_sha256` is the fingerprint of the weights and of what they mean, such as names, units and calendar.
    """

    weights_sha256: str
    channels: tuple[str, ...]
    past: tuple[str, ...]
    covariates: tuple[str, ...]
    look_back: int
    horizon: int
    patch_len: int
    cycles: tuple[int, ...]
    frequency: str
    zone: str | None
    by_row: bool
    even: bool
    origin: str
    numbered: bool
    missing_values: tuple[float, ...]
    budget: float
    any_budget: bool
    sealed: bool
    chooses: bool
    anchored: bool
    prior: float
    units: Standardiser
    known_units: Standardiser | None
    limits: Limits | None = None
    zero_at: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """Number of tokens of a window."""
        return self.look_back // self.patch_len * len(self.channels)

    @property
    def allowance(self) -> int:
        """Largest number of tokens a window may open."""
        return allowance(self.budget, self.tokens)

    @property
    def steps(self) -> int:
        """Number of steps of look-back and horizon."""
        return self.look_back + self.horizon

    @property
    def period(self) -> int:
        """Number of steps after which all cycles start again together."""
        return period(self.cycles)

    def at_budget(self, budget: float | None) -> "ModelFacts":
        """Return the facts under another budget, if the model was trained for any budget; None changes nothing."""
        if budget is None or budget == self.budget:
            return self
        require(
            self.any_budget,
            "a budget can be changed only in a model trained for any budget",
            f"budget={budget}, trained for {self.budget}",
            'fit with gate.any_budget = true, such as recipe "any-budget"',
        )
        require_budget(budget)
        kept = replace(self, budget=budget).settled()
        require(kept.budget > 0, "budget must allow at least one token", f"{budget} of {self.tokens} tokens", "try 0.2")
        return kept

    def settled(self) -> "ModelFacts":
        """Return the facts with the smallest budget that allows as many tokens, if the model takes any budget.

        Two budgets that allow the same masks then become the same number.
        """
        return replace(self, budget=settled(self.budget, self.tokens)) if self.any_budget else self

    def difference(self, weights_sha256: str, units: Standardiser) -> str:
        """Return how another model, with this fingerprint and these units, differs from this one; empty if it does not.

        The fingerprint covers the units, so only an explanation that was not made by a model can differ only in them.
        """
        if weights_sha256 != self.weights_sha256:
            return f"weights {weights_sha256[:12]}, where this model has {self.weights_sha256[:12]}"
        return "" if self.units.same_as(units) else "the same fingerprint with other units"

    def limited(self, computed: np.ndarray) -> np.ndarray:
        """Return the forecast from what the model computed: within the limits, if there are any."""
        return computed if self.limits is None else self.limits.apply(computed)

    def clock(self, stamps: np.ndarray) -> Clock:
        """Return the time axis of these moments as this model reads them."""
        origin = np.datetime64(self.origin)
        return Clock(
            stamps, Frequency.parse(self.frequency), self.zone, self.by_row, origin, self.numbered, countable=self.even
        )

    def document(self) -> dict[str, Any]:
        """Return the facts as plain data: the inverse of `of`."""
        plain = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: value.document() if isinstance(value, Standardiser | Limits) else value
            for name, value in plain.items()
        }

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "ModelFacts":
        """Read what `document` returned; refuse unknown or missing facts, and those of another type or shape."""
        names = {each.name for each in fields(cls)}
        known = {*plain, "limits", "zero_at"}  # files written before there were these have none
        if names != known:
            raise ModelFileError("the facts of a model must be complete", sorted(names ^ known), "export it again")
        try:
            facts = cls(**{name: READERS[name](value, name) for name, value in plain.items()})
        except DataError as error:
            raise ModelFileError(error.rule, error.got, "export it again") from error
        count, covariates = len(facts.channels), len(facts.covariates)
        rules = {
            "have lengths from 1 on": min(facts.look_back, facts.horizon, facts.patch_len, count) >= 1,
            "divide the look-back into patches": facts.look_back % max(facts.patch_len, 1) == 0,
            "have cycles": min(facts.cycles, default=0) >= 1 and facts.period <= LARGEST_PERIOD,
            "have units of every channel": len(facts.units.mean) == count and bool((facts.units.std > 0).all()),
            "have units of every covariate": (facts.known_units is None) == (not covariates)
            and (facts.known_units is None or len(facts.known_units.mean) == covariates),
            "have limits of every channel": facts.limits is None or not facts.limits.flaw(count),
            "have a first moment": not np.isnat(np.datetime64(facts.origin, "us")),
            "have a calendar": str(Frequency.parse(facts.frequency)) == facts.frequency
            and (facts.zone is None or find_zone(facts.zone) is not None)
            and all(map(SPAN.fullmatch, facts.zero_at)),
        }
        for rule, holds in rules.items():
            if not holds:
                raise ModelFileError(f"the facts of a model must {rule}", "others", "export it again")
        return facts


def _numbers(value: Any, where: str) -> tuple[float, ...]:
    return tuple(reading.array(value, 1, "float64", where).tolist())


def _whole_numbers(value: Any, where: str) -> tuple[int, ...]:
    return tuple(reading.whole_number(one, where) for one in reading.sequence(value, where))


READERS: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(("weights_sha256", "frequency", "origin"), reading.text),
    **dict.fromkeys(("channels", "past", "covariates", "zero_at"), reading.texts),
    **dict.fromkeys(("look_back", "horizon", "patch_len"), reading.whole_number),
    **dict.fromkeys(("by_row", "even", "numbered", "any_budget", "sealed", "chooses", "anchored"), reading.truth_value),
    **dict.fromkeys(("budget", "prior"), reading.number),
    "cycles": _whole_numbers,
    "missing_values": _numbers,
    "zone": partial(reading.maybe, reading.text),
    "units": reading.units,
    "known_units": partial(reading.maybe, reading.units),
    "limits": partial(reading.maybe, reading.limits),
}
"""How each fact is read from a document."""
