"""IB-Forecast with a part removed: networks for comparison only. Paper: Table "ablations".

`SoftForecast` and `UngatedForecast` still report which tokens they open, but their forecasts depend on more than those
tokens. Such a forecast cannot be replayed from its explanation, so these networks are not `Accountable` and cannot be
verified.
"""

from abc import abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast.core.context import Context
from ibforecast.core.contracts import Forecaster, Loss, ParameterGroup, SelfExplaining
from ibforecast.core.explanation import Forecast
from ibforecast.core.window import Target, Window
from ibforecast.model import objective
from ibforecast.model.config import ModelConfig
from ibforecast.model.network import IBForecast
from ibforecast.model.reading import network_of
from ibforecast.model.stage3_gate import Count, Gate, Marks, PerToken
from ibforecast.model.stage4_readout import CrossChannel, PhaseReadout


class SoftGate(Gate):
    """A soft version of any gate: in training a token is multiplied by its probability, without noise."""

    def __init__(self, gate: Gate) -> None:
        super().__init__(int(gate.allowance), gate.tokens, gate.config)
        self.gate = gate

    def forward(self, logits: PerToken, missing: Marks) -> tuple[Marks, PerToken]:
        """Return (mask, probability) of the original gate."""
        mask, probability = self.gate(logits, missing)
        return mask, probability

    def margin(self, logits: PerToken, missing: Marks, count: Count) -> tuple[Marks, PerToken]:
        """Return the margin of the original gate."""
        return self.gate.margin(logits, missing, count)

    def sample(
        self,
        logits: PerToken,
        missing: Marks,
        progress: Float[Tensor, ""],
        generator: torch.Generator,
        count: Count | None = None,
    ) -> PerToken:
        """Return the probabilities themselves; nothing is drawn."""
        _, probability = self.gate(logits, missing)
        passing: Tensor = probability
        return passing


class Unaccountable(Forecaster, SelfExplaining):
    """A forecaster with the explanation of an IB-Forecast, but whose forecast depends on more than that."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.network = IBForecast(config)

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        """Forecast, and return the explanation that the gates give for the same window."""
        return Forecast(self.relaxed(window, held), self.network(window, held).explanation)

    @abstractmethod
    def relaxed(self, window: Window, held: Context | None = None) -> Float[Tensor, "batch horizon channel"]:
        """Forecast; there is no hard decision to soften."""

    def context(self, window: Window) -> Context:
        """Return the disclosed context."""
        return self.network.context(window)

    def importance(self, window: Window) -> Float[Tensor, "batch look_back channel"]:
        """Return the probability of every token's gate."""
        return self.network.importance(window)

    def parameter_groups(self) -> list[ParameterGroup]:
        """Return the groups of the intact network: context and gates learn faster than the readout."""
        return self.network.parameter_groups()


class SoftForecast(Unaccountable):
    """Without hard gates: a token is multiplied by its probability in training and in use, so all leak a little."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.network.gate = SoftGate(self.network.gate)

    def relaxed(self, window: Window, held: Context | None = None) -> Float[Tensor, "batch horizon channel"]:
        """Forecast with every token multiplied by its probability."""
        return self.network.relaxed(window, held)

    def loss(self, window: Window, target: Target, progress: Float[Tensor, ""], generator: torch.Generator) -> Loss:
        """Score a training batch by the unchanged objective."""
        return self.network.loss(window, target, progress, generator)


class UngatedForecast(Unaccountable):
    """Without the gated base: the readout sees every deviation, so only the other terms of Eq. 9 train the gates."""

    def relaxed(self, window: Window, held: Context | None = None) -> Float[Tensor, "batch horizon channel"]:
        """Forecast from the whole window."""
        context, deviation = self.network.decompose(window, held)
        everything = deviation.new_ones(len(deviation), self.network.config.patches, self.network.config.channels)
        forecast: Tensor = context.restore(self.network.readout(deviation, everything, context))
        return forecast

    def loss(self, window: Window, target: Target, progress: Float[Tensor, ""], generator: torch.Generator) -> Loss:
        """Score a training batch by the objective, with the fit of the ungated forecast."""
        gated = self.network.loss(window, target, progress, generator)
        return Loss(
            {**gated.terms, "fit": objective.fit(self.relaxed(window), target, self.network.config.objective)},
            gated.open_rate,
        )


def phaseless(config: ModelConfig) -> IBForecast:
    """Return a network without the phase in the readout: the parameters for each phase stay at zero."""
    network = network_of(config)
    for part in network.readout.modules():
        if isinstance(part, PhaseReadout):
            part.phase.requires_grad_(False)
        if isinstance(part, CrossChannel):
            part.query.requires_grad_(False)
    return network


def frozen(config: ModelConfig) -> IBForecast:
    """Return a network whose scores stay as they start: with a fixed mask, its mask is not learned."""
    network = network_of(config)
    network.score.requires_grad_(False)
    return network
