"""Is an explanation the truth about its forecast? The checks it goes through, whatever runs the model."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64

from ibforecast.core.account import Account, Known

ELSEWHERE_TOLERANCE = 1e-4
"""By how many scales a forecast may differ that was computed on another machine or version."""

COMPARED = ("phase", "mask", "missing", "probability", "level", "scale", "profile", "evidence", "forecast")
"""What a rerun on the same history must give again."""


@dataclass(frozen=True)
class Check:
    """One thing that was checked, and what came out."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Verification:
    """The checks an explanation went through; true only if every one of them passed."""

    checks: tuple[Check, ...]

    def __bool__(self) -> bool:
        return all(check.passed for check in self.checks)

    def __str__(self) -> str:
        return "\n".join(
            f"{'ok    ' if check.passed else 'FAILED'} {check.name}: {check.detail}" for check in self.checks
        )


@dataclass(frozen=True, eq=False)
class ModelFacts:
    """What a model says of itself; an explanation that names the model must agree."""

    weights_sha256: str
    channels: tuple[str, ...]
    look_back: int
    horizon: int
    patch_len: int
    cycle: int
    budget: float
    allowance: int
    any_budget: bool
    prior: float
    mean: Float64[np.ndarray, " channel"]
    std: Float64[np.ndarray, " channel"]
    further_cycles: tuple[int, ...] = ()
    past: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()
    known_usual: Float64[np.ndarray, " covariate"] | None = None
    known_std: Float64[np.ndarray, " covariate"] | None = None


@runtime_checkable
class Engine(Protocol):
    """Whatever can run a model: PyTorch, or a runtime that has never heard of it."""

    @property
    def facts(self) -> ModelFacts:
        """What the model says of itself."""

    def environment(self) -> Mapping[str, str]:
        """What the last bits of a forecast depend on besides weights and window."""

    def replay(self, account: Account) -> Float64[np.ndarray, "horizon channel"]:
        """Compute the forecast from the explanation and its context alone."""

    def replay_scrambled(self, account: Account) -> Float64[np.ndarray, "horizon channel"]:
        """Compute it with noise in every closed token, context and mask held."""

    def rerun(self, account: Account) -> Account:
        """Run the model on the same history again and say what it says now, with the phase its calendar gives."""


def verify(engine: Engine, account: Account) -> Verification:
    """Go through the checks; what needs a matching model is left out where the model does not match."""
    facts = engine.facts
    before = [_document(account), _weights(facts, account), _names(facts, account)]
    if not all(check.passed for check in before[1:]):
        return Verification(tuple(before))
    elsewhere = dict(account.computed_with) != dict(engine.environment())
    engine.rerun(_noise(account))  # so that a model that remembers the last window it saw is found out
    replayed, unmoved = engine.replay(account), engine.replay_scrambled(account)
    return Verification(
        (
            *before,
            _budget(facts, account),
            _forecast("replay", "the explanation and context alone", replayed, account, elsewhere),
            _forecast("scramble", "every closed token scrambled, mask held,", unmoved, account, elsewhere),
            _rerun(engine.rerun(account), account, elsewhere),
        )
    )


def _noise(account: Account) -> Account:
    """The account with noise for its history, also where values are missing."""
    noise = np.random.default_rng(0).standard_normal(account.history.shape)
    return replace(account, history=account.mean + account.std * noise)


def _document(account: Account) -> Check:
    detail = "matches its fingerprint" if account.intact else "was changed after it was written"
    return Check("document", account.intact, f"names, times and everything else in it: it {detail}")


def _weights(facts: ModelFacts, account: Account) -> Check:
    told, held = account.weights_sha256, facts.weights_sha256
    detail = f"{held[:12]} gave it" if told == held else f"it names {told[:12]}, this model is {held[:12]}"
    return Check("weights", told == held, detail)


def _names(facts: ModelFacts, account: Account) -> Check:
    told = (account.channels, account.past, account.look_back, account.horizon, account.patch_len, account.cycles)
    cycles = (facts.cycle, *facts.further_cycles)
    held = (facts.channels, facts.past, facts.look_back, facts.horizon, facts.patch_len, cycles)
    same = (
        told == held
        and len(account.profile) == sum(cycles)
        and _same_covariates(facts, account.known)
        and np.array_equal(account.mean, facts.mean)
        and np.array_equal(account.std, facts.std)
        and account.budget == facts.budget
        and account.prior in (facts.prior, None)  # None: from before it was disclosed
    )
    these = (
        "channels, lengths, units and budget" if account.prior is None else "channels, lengths, units, budget, prior"
    )
    return Check("names", same, f"{these} are the model's" if same else "they differ")


def _same_covariates(facts: ModelFacts, known: Known | None) -> bool:
    if known is None or facts.known_usual is None or facts.known_std is None:
        return known is None and not facts.covariates
    return (
        known.names == facts.covariates
        and np.array_equal(known.usual, facts.known_usual)
        and np.array_equal(known.std, facts.known_std)
    )


def _budget(facts: ModelFacts, account: Account) -> Check:
    unreadable = int((account.mask & account.missing).sum())
    detail = f"{account.open_count} tokens open, {facts.allowance} allowed, {unreadable or 'none'} of them missing"
    return Check("budget", account.open_count <= facts.allowance and not unreadable, detail)


def _forecast(
    name: str, given: str, forecast: Float64[np.ndarray, "horizon channel"], account: Account, elsewhere: bool
) -> Check:
    differ = int((forecast.view(np.int64) != account.forecast.view(np.int64)).sum())
    if not differ:
        return Check(name, True, f"{given} give the forecast, bit for bit ({forecast.size} values)")
    said = [channel not in account.past for channel in account.channels]
    apart = np.abs(forecast - account.forecast) / np.maximum(account.std * account.scale, 1e-30)
    off = float(apart[:, said].max())
    note = "; it was computed on another machine or version" if elsewhere else ""
    detail = f"{given} differ in {differ} values, at most {off:.1e} scales{note}"
    return Check(name, elsewhere and off < ELSEWHERE_TOLERANCE, detail)


def _rerun(again: Account, account: Account, elsewhere: bool) -> Check:
    tolerance = ELSEWHERE_TOLERANCE if elsewhere else 0.0
    one, other = _compared(again), _compared(account)
    apart = [name for name in one if not np.allclose(one[name], other[name], tolerance, tolerance)]
    detail = f"differs in {', '.join(apart)}" if apart else "gives the same context, mask, evidence and forecast"
    return Check("rerun", not apart, f"the model, run on this history again, {detail}")


def _compared(account: Account) -> dict[str, Any]:
    """What is compared, by name; of the forecast the channels that have one."""
    said = [channel not in account.past for channel in account.channels]
    found = {name: getattr(account, name) for name in COMPARED} | {"forecast": account.forecast[:, said]}
    return found if account.known is None else found | {"response": account.known.response}
