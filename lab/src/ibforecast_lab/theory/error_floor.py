"""Relevance controls the error floor: closed forms for Gaussian models. Paper: thm:tradeoff.

E‖Y − Ŷ‖² ≥ n/(2πe) · exp(2/n · (h(Y|𝒞) − I(E;Y|𝒞))) for every forecaster that reads only E and 𝒞. Of two nested
selections of tokens, the larger has the smaller best error.
"""

from dataclasses import dataclass
from itertools import combinations, pairwise
from math import e, exp, log, pi
from statistics import NormalDist

import numpy as np
from jaxtyping import Float64, Int64

from ibforecast.core.errors import require


def error_floor(entropy: float, relevance: float, dimension: int) -> float:
    """Return the least squared error of n values of entropy h(Y|𝒞) at I(E;Y|𝒞), both in nats. Paper: thm:tradeoff."""
    return dimension / (2 * pi * e) * exp(2 / dimension * (entropy - relevance))


@dataclass(frozen=True)
class LinearGaussian:
    """A future that is linear in the remainder's tokens, Y = AΔ + ε. Given the context, all are Gaussian.

    A token is one number, and reading it means learning its value. `tokens` and `noise` are the covariances of Δ and ε,
    `weights` is A.
    """

    tokens: Float64[np.ndarray, "token token"]
    weights: Float64[np.ndarray, "horizon token"]
    noise: Float64[np.ndarray, "horizon horizon"]

    def __post_init__(self) -> None:
        smallest = min(float(np.linalg.eigvalsh(part).min()) for part in (self.tokens, self.noise))
        require(smallest > 0, "covariances must be positive definite", f"an eigenvalue of {smallest}", "add noise")

    @property
    def future(self) -> Float64[np.ndarray, "horizon horizon"]:
        """Covariance of Y given the context."""
        return np.asarray(self.weights @ self.tokens @ self.weights.T + self.noise)

    @property
    def entropy(self) -> float:
        """h(Y|𝒞) in nats."""
        return 0.5 * (len(self.noise) * log(2 * pi * e) + _log_volume(self.future))

    def left(self, opened: tuple[int, ...]) -> Float64[np.ndarray, "horizon horizon"]:
        """Return the covariance of Y given the context and these tokens."""
        read, cross = list(opened), self.weights @ self.tokens[:, list(opened)]
        return np.asarray(self.future - cross @ np.linalg.solve(self.tokens[np.ix_(read, read)], cross.T))

    def relevance(self, opened: tuple[int, ...]) -> float:
        """Return I(E;Y|𝒞) in nats if E discloses these tokens."""
        return 0.5 * (_log_volume(self.future) - _log_volume(self.left(opened)))

    def attained(self, opened: tuple[int, ...]) -> float:
        """Return the error of the best forecaster that reads these tokens: E‖Y − E[Y|E,𝒞]‖²."""
        return float(np.trace(self.left(opened)))

    def floor(self, opened: tuple[int, ...]) -> float:
        """Return the theorem's bound for a forecaster that reads these tokens."""
        return error_floor(self.entropy, self.relevance(opened), len(self.noise))


@dataclass(frozen=True)
class BudgetCurve:
    """Errors by budget: the floor and the best error of all selections within it, and the error of the newest tokens.

    `selections` contains the size of every selection, `errors` the error that each attains.
    """

    budget: Int64[np.ndarray, " budget"]
    floor: Float64[np.ndarray, " budget"]
    attained: Float64[np.ndarray, " budget"]
    newest: Float64[np.ndarray, " budget"]
    selections: Int64[np.ndarray, " selection"]
    errors: Float64[np.ndarray, " selection"]


def budget_curve(model: LinearGaussian) -> BudgetCurve:
    """Try every selection of tokens. Paper: thm:tradeoff, Part 2."""
    count = len(model.tokens)
    require(
        count <= 12,
        "there must be few tokens to try all selections",
        f"{count}, so {2**count} selections",
        "use up to 12",
    )
    selections = [opened for size in range(count + 1) for opened in combinations(range(count), size)]
    sizes = np.array([len(opened) for opened in selections])
    floors = np.array([model.floor(opened) for opened in selections])
    errors = np.array([model.attained(opened) for opened in selections])
    budget = np.arange(count + 1)
    return BudgetCurve(
        budget=budget,
        floor=np.array([floors[sizes <= allowed].min() for allowed in budget]),
        attained=np.array([errors[sizes <= allowed].min() for allowed in budget]),
        newest=np.array([model.attained(tuple(range(count - allowed, count))) for allowed in budget.tolist()]),
        selections=sizes,
        errors=errors,
    )


def echo_model(tokens: int = 8, horizon: int = 4) -> LinearGaussian:
    """Return an example: neighbouring tokens are similar, and the future depends on the newest and on one old token."""
    age = np.arange(tokens)[::-1]
    weights = 0.6 ** (age + np.arange(horizon)[:, None])
    weights[:, 1] += np.linspace(0.4, 0.9, horizon)
    return LinearGaussian(
        tokens=0.5 ** np.abs(age[:, None] - age), weights=weights, noise=np.diag(np.linspace(0.05, 0.3, horizon))
    )


def floor_at_rate(correlation: float, rate: float) -> float:
    """Return the least error of one standardised value from any description of one token at I(Δ;E|𝒞) = `rate` nats.

    Both are Gaussian. The token plus noise has the largest relevance: I(E;Y) = −½ log(1 − r²(1 − e^(−2R))).
    """
    relevance = -0.5 * log(1 - correlation**2 * (1 - exp(-2 * rate)))
    return error_floor(0.5 * log(2 * pi * e), relevance, 1)


def noisy_disclosure(correlation: float, noise: float) -> tuple[float, float]:
    """Return rate in nats and best error of disclosing a standard Gaussian token plus noise of this variance."""
    return 0.5 * log(1 + 1 / noise), 1 - correlation**2 / (1 + noise)


def quantised_disclosure(correlation: float, cells: int) -> tuple[float, float]:
    """Return rate in nats and best error of disclosing which of `cells` equally likely cells the token lies in."""
    normal = NormalDist()
    borders = [normal.inv_cdf(edge / cells) for edge in range(1, cells)]
    heights = [0.0, *(normal.pdf(border) for border in borders), 0.0]
    explained = sum(cells * (one - other) ** 2 for one, other in pairwise(heights))
    return log(cells), 1 - correlation**2 * explained


@dataclass(frozen=True)
class RateCurve:
    """The floor by rate in bits for one correlation of token and future, and the errors that two kinds of E attain."""

    correlation: float
    bits: Float64[np.ndarray, " point"]
    floor: Float64[np.ndarray, " point"]
    noisy: Float64[np.ndarray, "noise 2"]
    quantised: Float64[np.ndarray, "cells 2"]


def rate_curve(correlation: float, most_bits: float = 4.0) -> RateCurve:
    """Return the floor up to `most_bits`, and (bits, error) of disclosing a token by its cell or with noise."""
    bits = np.linspace(0, most_bits, 201)
    noisy = [noisy_disclosure(correlation, 1 / (4.0**rate - 1)) for rate in np.arange(0.5, most_bits, 0.5).tolist()]
    quantised = [quantised_disclosure(correlation, 2**power) for power in range(1, int(most_bits) + 1)]
    return RateCurve(
        correlation=correlation,
        bits=bits,
        floor=np.array([floor_at_rate(correlation, rate * log(2)) for rate in bits.tolist()]),
        noisy=np.array(noisy) / [log(2), 1],
        quantised=np.array(quantised) / [log(2), 1],
    )


def _log_volume(covariance: Float64[np.ndarray, "horizon horizon"]) -> float:
    return float(np.linalg.slogdet(covariance)[1])
