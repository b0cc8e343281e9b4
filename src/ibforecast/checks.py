"""The checks an explanation goes through: is it the truth about its forecast?"""

import platform
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from ibforecast.core.account import Account
from ibforecast.core.context import Context
from ibforecast.core.explanation import Explanation, Forecast
from ibforecast.core.window import Window
from ibforecast.data.windows import Standardiser
from ibforecast.evaluate.verification import scrambled
from ibforecast.explained import Check, Verification
from ibforecast.zoo.saved import FittedModel

ELSEWHERE_TOLERANCE = 1e-4
"""By how many scales a forecast may differ that was computed on another machine or version."""


def verify(fitted: FittedModel, account: Account) -> Verification:
    """Go through the checks; what needs a matching model is left out where the model does not match."""
    if fitted.config.gate.any_budget:
        fitted = fitted.at_budget(account.budget)
    before = [_document(account), _weights(fitted, account), _names(fitted, account)]
    if not all(check.passed for check in before[1:]):
        return Verification(tuple(before))
    network, explanation = fitted.network, explanation_of(account)
    window = window_of(account.history, account.phase, fitted.standardiser)
    noise = torch.Generator().manual_seed(fitted.summary.seed)
    with torch.no_grad():
        replayed = network.replay(explanation)
        unmoved = network.replay(scrambled(window, explanation, noise))
        again = network(window)
    return Verification(
        (
            *before,
            _budget(fitted, account),
            _forecast("replay", "the explanation and context alone", replayed, account),
            _forecast("scramble", "every closed token scrambled, mask held,", unmoved, account),
            _rerun(again, account),
        )
    )


def environment() -> dict[str, str]:
    """What the last bits of a forecast depend on besides weights and window."""
    return {
        "torch": torch.__version__,
        "processor": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "threads": str(torch.get_num_threads()),
    }


def window_of(
    history: Float64[np.ndarray, "look_back channel"], phase: Int64[np.ndarray, " steps"], standardiser: Standardiser
) -> Window:
    """A batch of one window from values in the table's units."""
    values = torch.from_numpy(standardiser.standardise(history)).float()
    return Window(values.nan_to_num(0.0)[None], ~values.isnan()[None], torch.from_numpy(phase)[None])


def explanation_of(account: Account) -> Explanation:
    """A batch of one explanation, as the readout saw it."""
    context = Context(
        level=torch.from_numpy(account.level)[None],
        scale=torch.from_numpy(account.scale)[None],
        phase=torch.from_numpy(account.phase)[None],
        profile=torch.from_numpy(account.profile),
    )
    return Explanation(
        mask=torch.from_numpy(account.mask)[None],
        evidence=torch.from_numpy(account.evidence)[None],
        probability=torch.from_numpy(account.probability)[None],
        missing=torch.from_numpy(account.missing)[None],
        context=context,
    )


def in_units(
    values: Float[Tensor, "1 horizon channel"], standardiser: Standardiser
) -> Float64[np.ndarray, "horizon channel"]:
    """The one forecast of a batch in the table's units."""
    return standardiser.to_units(values[0].double().numpy())


def _document(account: Account) -> Check:
    detail = "matches its fingerprint" if account.intact else "was changed after it was written"
    return Check("document", account.intact, f"names, times and everything else in it: it {detail}")


def _weights(fitted: FittedModel, account: Account) -> Check:
    told, held = account.weights_sha256, fitted.weights_sha256
    detail = f"{held[:12]} gave it" if told == held else f"it names {told[:12]}, this model is {held[:12]}"
    return Check("weights", told == held, detail)


def _names(fitted: FittedModel, account: Account) -> Check:
    config, units = fitted.config, fitted.standardiser
    told = (account.channels, account.look_back, account.horizon, account.patch_len, len(account.profile))
    held = (fitted.channels, config.look_back, config.horizon, config.patch_len, config.cycle)
    same = (
        told == held
        and np.array_equal(account.mean, units.mean)
        and np.array_equal(account.std, units.std)
        and account.budget == config.budget
        and account.prior in (config.objective.prior, None)  # None: from before it was disclosed
    )
    these = (
        "channels, lengths, units and budget" if account.prior is None else "channels, lengths, units, budget, prior"
    )
    return Check("names", same, f"{these} are the model's" if same else "they differ")


def _budget(fitted: FittedModel, account: Account) -> Check:
    allowed, unreadable = fitted.config.allowance, int((account.mask & account.missing).sum())
    detail = f"{account.open_count} tokens open, {allowed} allowed, {unreadable or 'none'} of them missing"
    return Check("budget", account.open_count <= allowed and not unreadable, detail)


def _forecast(name: str, given: str, values: Float[Tensor, "1 horizon channel"], account: Account) -> Check:
    forecast = in_units(values, Standardiser(account.mean, account.std))
    differ = int((forecast.view(np.int64) != account.forecast.view(np.int64)).sum())
    if not differ:
        return Check(name, True, f"{given} give the forecast, bit for bit ({forecast.size} values)")
    off = float((np.abs(forecast - account.forecast) / np.maximum(account.std * account.scale, 1e-30)).max())
    elsewhere = _elsewhere(account)
    note = "; it was computed on another machine or version" if elsewhere else ""
    detail = f"{given} differ in {differ} values, at most {off:.1e} scales{note}"
    return Check(name, elsewhere and off < ELSEWHERE_TOLERANCE, detail)


def _rerun(again: Forecast, account: Account) -> Check:
    explanation = again.explanation
    assert explanation is not None
    context = explanation.context
    pairs: dict[str, tuple[Any, Any]] = {
        "mask": (explanation.mask[0].numpy(), account.mask),
        "missing": (explanation.missing[0].numpy(), account.missing),
        "probability": (explanation.probability[0].numpy(), account.probability),
        "level": (context.level[0].numpy(), account.level),
        "scale": (context.scale[0].numpy(), account.scale),
        "profile": (context.profile.detach().numpy(), account.profile),
        "evidence": (explanation.evidence[0].numpy(), account.evidence),
        "forecast": (in_units(again.values, Standardiser(account.mean, account.std)), account.forecast),
    }
    tolerance = ELSEWHERE_TOLERANCE if _elsewhere(account) else 0.0
    apart = [name for name, (one, other) in pairs.items() if not np.allclose(one, other, tolerance, tolerance)]
    detail = f"differs in {', '.join(apart)}" if apart else "gives the same context, mask, evidence and forecast"
    return Check("rerun", not apart, f"the model, run on this history again, {detail}")


def _elsewhere(account: Account) -> bool:
    return dict(account.computed_with) != environment()
