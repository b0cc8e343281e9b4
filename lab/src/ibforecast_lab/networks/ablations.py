"""IB-Forecast with a part taken out: networks to compare with, not to ship. Paper: Table "ablations".

The first two still say which tokens they open, but their forecasts go by more than that: they cannot be computed again
from their explanations, so they are not `Accountable`, and nothing verifies them.
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
from ibforecast.model.stage3_gate import Count, Gate, Marks, PerToken
from ibforecast.model.stage4_readout import CrossChannel, PhaseReadout


class SoftGate(Gate):
    """Any gate made soft: in training a token passes as far as it is probable, without noise."""

    def __init__(self, gate: Gate) -> None:
        super().__init__(int(gate.allowance), gate.tokens, gate.config)
        self.gate = gate

    def forward(self, logits: PerToken, missing: Marks) -> tuple[Marks, PerToken]:
        """Return (mask, probability) of the gate it was."""
        mask, probability = self.gate(logits, missing)
        return mask, probability

    def margin(self, logits: PerToken, missing: Marks, count: Count) -> tuple[Marks, PerToken]:
        """Measure as the gate it was."""
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
    """A forecaster with the explanation of an IB-Forecast, by which its forecast does not go alone."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.network = IBForecast(config)

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        """Forecast, and tell what the gates say of the same window."""
        return Forecast(self.relaxed(window, held), self.network(window, held).explanation)

    @abstractmethod
    def relaxed(self, window: Window, held: Context | None = None) -> Float[Tensor, "batch horizon channel"]:
        """Forecast; there is no hard decision to soften."""

    def context(self, window: Window) -> Context:
        """The disclosed context."""
        return self.network.context(window)

    def importance(self, window: Window) -> Float[Tensor, "batch look_back channel"]:
        """The probability of every token's gate."""
        return self.network.importance(window)

    def parameter_groups(self) -> list[ParameterGroup]:
        """Context and gates learn faster than the readout, as ever."""
        return self.network.parameter_groups()


class SoftForecast(Unaccountable):
    """Without hard gates: in training and in use a token passes as far as it is probable, so that all leak a little."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.network.gate = SoftGate(self.network.gate)

    def relaxed(self, window: Window, held: Context | None = None) -> Float[Tensor, "batch horizon channel"]:
        """Forecast with gates as wide open as they are probable."""
        return self.network.relaxed(window, held)

    def loss(self, window: Window, target: Target, progress: Float[Tensor, ""], generator: torch.Generator) -> Loss:
        """Score a training batch by the objective as it is."""
        return self.network.loss(window, target, progress, generator)


class UngatedForecast(Unaccountable):
    """Without the gated base: the readout sees every deviation, so that only the other terms of Eq. 9 move gates."""

    def relaxed(self, window: Window, held: Context | None = None) -> Float[Tensor, "batch horizon channel"]:
        """Forecast from the whole window."""
        context, deviation = self.network.decompose(window, held)
        everything = deviation.new_ones(len(deviation), self.network.config.patches, self.network.config.channels)
        forecast: Tensor = context.restore(self.network.readout(deviation, everything, context))
        return forecast

    def loss(self, window: Window, target: Target, progress: Float[Tensor, ""], generator: torch.Generator) -> Loss:
        """Score a training batch: the objective, its fit measured past the gates."""
        gated = self.network.loss(window, target, progress, generator)
        return Loss(
            {**gated.terms, "fit": objective.fit(self.relaxed(window), target, self.network.config.objective)},
            gated.open_rate,
        )


class PhaselessForecast(IBForecast):
    """Without the phase in the readout: what it would learn of each phase stays at zero."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        for part in self.readout.modules():
            if isinstance(part, PhaseReadout):
                part.phase.requires_grad_(False)
            if isinstance(part, CrossChannel):
                part.query.requires_grad_(False)
