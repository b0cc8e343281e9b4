"""A fitted model checks an explanation: what `core.verification` asks of an engine, answered by PyTorch."""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from ibforecast.core import verification
from ibforecast.core.account import Account, Known
from ibforecast.core.calendar import Clock, Frequency
from ibforecast.core.context import Context
from ibforecast.core.errors import UsageError
from ibforecast.core.explanation import Explanation, Forecast
from ibforecast.core.verification import ModelFacts, Verification
from ibforecast.core.window import Window
from ibforecast.data.standardiser import Standardiser
from ibforecast.evaluate.verification import scrambled
from ibforecast.zoo.saved import FittedModel


def verify(fitted: FittedModel, account: Account) -> Verification:
    """Go through the checks; a model for any budget is held against the explanation's own."""
    with _threads_of(account):
        return verification.verify(Checker(_at_budget_of(fitted, account)), account)


def _at_budget_of(fitted: FittedModel, account: Account) -> FittedModel:
    """The model under the budget it is said to have kept, if it can; otherwise as it is, and the names will differ."""
    try:
        return fitted.at_budget(account.budget)
    except UsageError:
        return fitted


@contextmanager
def _threads_of(account: Account) -> Iterator[None]:
    """As many threads as the explanation was computed with: its last bits depend on them."""
    held, told = torch.get_num_threads(), str(account.computed_with.get("threads", ""))
    fits = told.isdecimal() and 0 < int(told) <= (os.cpu_count() or 1)
    torch.set_num_threads(int(told) if fits else held)
    try:
        yield
    finally:
        torch.set_num_threads(held)


@dataclass(frozen=True)
class Checker:
    """A fitted model as an engine of the checks."""

    fitted: FittedModel

    @property
    def facts(self) -> ModelFacts:
        """What the model says of itself."""
        return facts_of(self.fitted)

    def environment(self) -> dict[str, str]:
        """What the last bits of a forecast depend on besides weights and window."""
        return environment()

    @torch.no_grad()
    def replay(self, account: Account) -> Float64[np.ndarray, "horizon channel"]:
        """Compute the forecast from the explanation and its context alone."""
        return self._in_units(self.fitted.network.replay(explanation_of(account)))

    @torch.no_grad()
    def replay_scrambled(self, account: Account) -> Float64[np.ndarray, "horizon channel"]:
        """Compute it with noise in every closed token, context and mask held."""
        noise = torch.Generator().manual_seed(self.fitted.summary.seed)
        explanation = scrambled(self._window(account), explanation_of(account), noise)
        return self._in_units(self.fitted.network.replay(explanation))

    @torch.no_grad()
    def rerun(self, account: Account) -> Account:
        """Run the network on the same history again and say what it says now, with the phase its calendar gives."""
        again: Forecast = self.fitted.network(self._window(account))
        explanation = again.explanation
        assert explanation is not None
        context = explanation.context
        return replace(
            account,
            phase=phase_of(account, self.fitted),
            mask=explanation.mask[0].numpy(),
            missing=explanation.missing[0].numpy(),
            probability=explanation.probability[0].numpy(),
            level=context.level[0].numpy(),
            scale=context.scale[0].numpy(),
            profile=context.profile.detach().numpy(),
            evidence=explanation.evidence[0].numpy(),
            forecast=self._in_units(again.values),
            known=None if account.known is None else known_of(self.fitted, account.known.values, context),
        )

    def _window(self, account: Account) -> Window:
        known = None if account.known is None else account.known.standardised
        return window_of(account.history, account.phase, self.fitted.standardiser, known)

    def _in_units(self, values: Float[Tensor, "1 horizon channel"]) -> Float64[np.ndarray, "horizon channel"]:
        return in_units(values, self.fitted.standardiser, self.fitted.config.past)


def facts_of(fitted: FittedModel) -> ModelFacts:
    """What explanations are held against."""
    config, units = fitted.config, fitted.standardiser
    return ModelFacts(
        weights_sha256=fitted.weights_sha256,
        channels=fitted.channels,
        look_back=config.look_back,
        horizon=config.horizon,
        patch_len=config.patch_len,
        cycle=config.cycle,
        budget=config.budget,
        allowance=config.allowance,
        any_budget=config.gate.any_budget,
        prior=config.objective.prior,
        mean=units.mean,
        std=units.std,
        further_cycles=config.further_cycles,
        past=fitted.layout.past,
        covariates=fitted.layout.future,
        known_usual=None if fitted.known is None else fitted.known.mean,
        known_std=None if fitted.known is None else fitted.known.std,
    )


def environment() -> dict[str, str]:
    """What the last bits of a forecast depend on besides weights and window."""
    return {
        "torch": torch.__version__,
        "processor": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "threads": str(torch.get_num_threads()),
    }


def phase_of(account: Account, fitted: FittedModel) -> Int64[np.ndarray, " steps"]:
    """Where in the cycle the model's calendar puts the times; as told where rows are counted, or times are no dates."""
    layout = fitted.layout
    if layout.frequency is None or layout.irregular == "by_row" or any(time[4:5] != "-" for time in account.times):
        return account.phase
    try:
        wall = [datetime.fromisoformat(time).replace(tzinfo=None) for time in account.times]
    except ValueError:
        return account.phase
    clock = Clock(np.array(wall, dtype="datetime64[us]"), Frequency.parse(layout.frequency))
    return clock.phase(0, len(wall), fitted.config.period)


def window_of(
    history: Float64[np.ndarray, "look_back channel"],
    phase: Int64[np.ndarray, " steps"],
    standardiser: Standardiser,
    known: Float64[np.ndarray, "steps covariate"] | None = None,
) -> Window:
    """A batch of one window from values in the table's units, and from what is `known` ahead, standardised."""
    values = torch.from_numpy(standardiser.standardise(history)).float()
    ahead = None if known is None else torch.from_numpy(known).float()[None]
    return Window(values.nan_to_num(0.0)[None], ~values.isnan()[None], torch.from_numpy(phase)[None], known=ahead)


def known_of(fitted: FittedModel, values: Float64[np.ndarray, "steps covariate"], context: Context) -> Known:
    """What an account says of covariates known ahead, given their values in the table's units."""
    units = fitted.known
    assert units is not None
    assert context.response is not None
    return Known(fitted.layout.future, values, units.mean, units.std, context.response.detach().numpy().copy())


def explanation_of(account: Account) -> Explanation:
    """A batch of one explanation, as the readout saw it."""
    known = account.known
    context = Context(
        level=torch.from_numpy(account.level)[None],
        scale=torch.from_numpy(account.scale)[None],
        phase=torch.from_numpy(account.phase)[None],
        profile=torch.from_numpy(account.profile),
        cycles=account.cycles,
        known=None if known is None else torch.from_numpy(known.standardised).float()[None],
        response=None if known is None else torch.from_numpy(known.response),
    )
    return Explanation(
        mask=torch.from_numpy(account.mask)[None],
        evidence=torch.from_numpy(account.evidence)[None],
        probability=torch.from_numpy(account.probability)[None],
        missing=torch.from_numpy(account.missing)[None],
        context=context,
    )


def in_units(
    values: Float[Tensor, "1 horizon channel"], standardiser: Standardiser, past: int = 0
) -> Float64[np.ndarray, "horizon channel"]:
    """The one forecast of a batch in the table's units; the last `past` channels have none."""
    forecast = standardiser.to_units(values[0].double().numpy())
    forecast[:, forecast.shape[1] - past :] = np.nan
    return forecast
