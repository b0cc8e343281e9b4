"""Exact rate saving from disclosing the context: enumeration of finite models. Paper: thm:rate.

I(X;E) = I(𝒞;E) + I(Δ;E|𝒞): an explanation pays I(𝒞;E) bits for the context, and none if the context is disclosed.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from itertools import product
from math import fsum, isclose, log2
from typing import TypeVar

from ibforecast.core.errors import require

Outcome = tuple[Hashable, ...]
Names = str | tuple[str, ...]
Kernel = Mapping[Hashable, float]
"""Probabilities of a variable's values, given the values of others."""

WindowT = TypeVar("WindowT", bound=Hashable)
ContextT = TypeVar("ContextT", bound=Hashable)
RemainderT = TypeVar("RemainderT", bound=Hashable)


@dataclass(frozen=True)
class Joint:
    """The joint distribution of named variables with finitely many values."""

    names: tuple[str, ...]
    outcomes: Mapping[Outcome, float]

    def __post_init__(self) -> None:
        total = fsum(self.outcomes.values())
        require(isclose(total, 1, abs_tol=1e-9), "probabilities must add up to 1", f"{total}", "divide by their sum")
        require(
            min(self.outcomes.values()) >= 0, "probabilities must not be negative", "one below 0", "check the kernels"
        )

    def marginal(self, names: Names) -> dict[Outcome, float]:
        """Return the probabilities of these variables, summed over all others."""
        places = [self.names.index(name) for name in _several(names)]
        collected: dict[Outcome, list[float]] = defaultdict(list)
        for outcome, probability in self.outcomes.items():
            collected[tuple(outcome[place] for place in places)].append(probability)
        return {outcome: fsum(parts) for outcome, parts in collected.items()}

    def entropy(self, names: Names) -> float:
        """Return the joint entropy of these variables, in bits."""
        return -fsum(p * log2(p) for p in self.marginal(names).values() if p > 0)

    def information(self, one: Names, other: Names, given: Names = ()) -> float:
        """Return I(one; other | given), in bits."""
        a, b, c = _several(one), _several(other), _several(given)
        return self.entropy(a + c) + self.entropy(b + c) - self.entropy(a + b + c) - self.entropy(c)


@dataclass(frozen=True)
class RateSaving:
    """The quantities of the theorem, in bits. Paper: thm:rate.

    `rate` I(X;E), `conditional_rate` I(Δ;E|𝒞), `context_rate` I(𝒞;E); `relevance` I(E;Y), `conditional_relevance`
    I(E;Y|𝒞), `context_relevance` I(𝒞;Y), `shortfall` ε = I(X;Y) − I(E;Y).
    """

    rate: float
    conditional_rate: float
    context_rate: float
    relevance: float
    conditional_relevance: float
    context_relevance: float
    shortfall: float

    @property
    def saved(self) -> float:
        """ΔR(E), which by the theorem equals the context rate."""
        return self.rate - self.conditional_rate

    @property
    def routed(self) -> float:
        """Predictive information that passes through the context, I(E;Y) − I(E;Y|𝒞): at most the context rate."""
        return self.relevance - self.conditional_relevance

    @property
    def least(self) -> float:
        """Least context rate of an explanation with this shortfall: I(𝒞;Y) − ε.

        The main text prints −I(𝒞;Y) − ε, which is never positive and so no bound; the appendix has the right sign.
        """
        return self.context_relevance - self.shortfall


def rate_saving(joint: Joint) -> RateSaving:
    """Compute both sides of the theorem for a joint distribution of X, C, D (the remainder Δ), E and Y."""
    return RateSaving(
        rate=joint.information("X", "E"),
        conditional_rate=joint.information("D", "E", given="C"),
        context_rate=joint.information("C", "E"),
        relevance=joint.information("E", "Y"),
        conditional_relevance=joint.information("E", "Y", given="C"),
        context_relevance=joint.information("C", "Y"),
        shortfall=joint.information("X", "Y") - joint.information("E", "Y"),
    )


def assembled(
    windows: Mapping[WindowT, float],
    context: Callable[[WindowT], ContextT],
    remainder: Callable[[WindowT], RemainderT],
    explain: Callable[[RemainderT, ContextT], Kernel],
    future: Callable[[WindowT], Kernel],
) -> Joint:
    """Build the joint distribution of X, C, D, E, Y under the paper's assumptions.

    The context is a function of the window (A1). The explanation is drawn only from remainder and context, with
    independent noise (A3). Whether remainder and context determine the window (A2) depends on `remainder`.
    """
    outcomes: dict[Outcome, float] = defaultdict(float)
    for window, weight in windows.items():
        known, left = context(window), remainder(window)
        for (explanation, drawn), (later, follows) in product(explain(left, known).items(), future(window).items()):
            outcomes[(window, known, left, explanation, later)] += weight * drawn * follows
    return Joint(("X", "C", "D", "E", "Y"), outcomes)


# The toy: a window of two values at a level of 0 or 3; each value is the level or the level plus 1.
Pair = tuple[int, int]
LEVELS = (0, 3)


def toy_windows() -> dict[Pair, float]:
    """Return the probability of each window: equally likely levels; the first value deviates more at the higher."""
    often = {0: 0.25, 3: 0.5}
    return {
        (level + first, level + second): 0.25 * (often[level] if first else 1 - often[level])
        for level, first, second in product(LEVELS, (0, 1), (0, 1))
    }


def toy_context(window: Pair) -> int:
    """Return the level, which either value determines."""
    return max(level for level in LEVELS if level <= window[0])


def toy_remainder(window: Pair) -> Pair:
    """Return the deviation of each value from the level."""
    level = toy_context(window)
    return window[0] - level, window[1] - level


def toy_future(window: Pair) -> Kernel:
    """Return the future: the level plus the first deviation with probability 3/4, plus the other one otherwise."""
    level, deviation = toy_context(window), toy_remainder(window)[0]
    return {level + deviation: 0.75, level + 1 - deviation: 0.25}


def _deviation(remainder: Pair, context: int) -> Kernel:
    return {remainder[0]: 1.0}


def _gated(remainder: Pair, context: int) -> Kernel:
    """Sample a gate: it opens the first token more often if that deviates, and more often still at the higher level."""
    opens = (0.875 if context else 0.5) if remainder[0] else 0.125
    return {("open", remainder[0]): opens, ("closed", 0): 1 - opens}


def _value(remainder: Pair, context: int) -> Kernel:
    return {context + remainder[0]: 1.0}


def _everything(remainder: Pair, context: int) -> Kernel:
    return {(context, remainder): 1.0}


TOY_EXPLANATIONS: Mapping[str, Callable[[Pair, int], Kernel]] = {
    "first deviation, gated": _gated,
    "first deviation": _deviation,
    "first value, no frame": _value,
    "whole window, no frame": _everything,
}
"""Explanations of a toy window, by what they disclose."""


def toy(explanation: str) -> Joint:
    """Return the toy with one of its explanations; all of the paper's assumptions hold."""
    return assembled(toy_windows(), toy_context, toy_remainder, TOY_EXPLANATIONS[explanation], toy_future)


def _several(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names
