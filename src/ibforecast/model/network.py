"""IB-Forecast: the four stages in order, and back. Paper: Algorithm 1, Ŷ."""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ibforecast.core.context import Context
from ibforecast.core.contracts import Accountable, Loss, ParameterGroup, SelfExplaining
from ibforecast.core.errors import require
from ibforecast.core.explanation import Explanation, Forecast
from ibforecast.core.tokens import closed_to_zero, spread, to_tokens
from ibforecast.core.window import Target, Window
from ibforecast.model import objective
from ibforecast.model.config import ModelConfig
from ibforecast.model.stage1_decompose import Anchor, Decompose, Frame, MeanFrame, NoFrame, SeasonalFrame, WeightedFrame
from ibforecast.model.stage2_score import FixedScores, GateNetwork, MixingNetwork, Scorer, first_bias, spacing
from ibforecast.model.stage3_gate import (
    CappedGate,
    ExactGate,
    Gate,
    NewestGate,
    OpenGate,
    ThresholdGate,
)
from ibforecast.model.stage4_readout import (
    AdditiveReadout,
    CrossChannel,
    LinearReadout,
    MLPReadout,
    PhaseReadout,
    Readout,
    TargetsOnly,
)

JOINT_UP_TO = 64
"""Channels up to which "auto" gate attention spans all tokens of the window."""

GATES: dict[str, type[Gate]] = {
    "exact": ExactGate,
    "capped": CappedGate,
    "threshold": ThresholdGate,
    "open": OpenGate,
    "newest": NewestGate,
}


class IBForecast(Accountable, SelfExplaining):
    """The network: remove the context, score tokens, open gates, read the evidence, restore the context.

    Paper: Algorithm 1, Ŷ.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.stackable = not config.gate.any_budget  # otherwise models draw budgets that differ
        self.decompose = Decompose(
            _frame(config),
            config.cycle,
            config.channels,
            config.profile,
            config.cycles[1:],
            config.past,
            config.future,
            Anchor(config.look_back, config.cycles, config.channels, config.medians) if config.anchored else None,
        )
        self.score = _scorer(config)
        self.gate = GATES[config.gate.kind](config.allowance, config.patches * config.channels, config.gate)
        self.readout = _readout(config)

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        """Forecast and explain in one pass. Paper: Algorithm 1, Ŷ."""
        explanation = self.read(window, held)
        return Forecast(self.replay(explanation), explanation)

    def read(self, window: Window, held: Context | None = None) -> Explanation:
        """Read a window: stages 1 to 3. Paper: Algorithm 1, E."""
        # 1. The deviation, which the context does not explain: (batch, look_back, channel).
        context, deviation = self.decompose(window, held)
        # 2. One logit per token: (batch, patch, channel).
        logits = self.score(deviation)
        # 3. The gates, within the budget; a token with a missing step stays closed.
        missing = self.missing(window)
        mask, probability = self.gate(logits, missing)
        return Explanation(mask, closed_to_zero(mask, deviation), probability, missing, context)

    def through(self, window: Window, mask: Bool[Tensor, "batch patch channel"]) -> Forecast:
        """Forecast through a mask that is given instead of chosen; a token with a missing step stays closed."""
        explanation = self.read_through(window, mask)
        return Forecast(self.replay(explanation), explanation)

    def read_through(self, window: Window, mask: Bool[Tensor, "batch patch channel"]) -> Explanation:
        """Read a window through a given mask: level, scale and evidence of a channel depend only on that channel.

        Nothing is scored: the probability of an open token is 1, that of a closed one 0.
        """
        missing = self.missing(window)
        mask = mask & ~missing
        context, deviation = self.decompose(self.seen(window, mask))
        evidence = closed_to_zero(mask, deviation)
        return Explanation(mask, evidence, mask.to(evidence.dtype), missing, context)

    def seen(self, window: Window, mask: Bool[Tensor, "batch patch channel"]) -> Window:
        """Return the window that the context is taken from, given the mask: all of it."""
        return window

    def replay(self, explanation: Explanation) -> Float[Tensor, "batch horizon channel"]:
        """Compute the forecast from its explanation: Ŷ = g(E; 𝒞). Paper: Eq. 8, Ŷ."""
        context = explanation.context
        future = self.readout(explanation.evidence, explanation.mask.to(explanation.evidence.dtype), context)
        return context.restore(future)

    def context(self, window: Window) -> Context:
        """Return the disclosed context. Paper: Algorithm 1, C."""
        context: Context = self.decompose(window)[0]
        return context

    def relaxed(self, window: Window, held: Context | None = None) -> Float[Tensor, "batch horizon channel"]:
        """Forecast with gates as wide open as they are probable, so that gradients pass them."""
        context, deviation = self.decompose(window, held)
        _, probability = self.gate(self.score(deviation), self.missing(window))
        evidence = spread(probability, self.config.patch_len) * deviation
        forecast: Tensor = context.restore(self.readout(evidence, probability, context))
        return forecast

    def importance(self, window: Window) -> Float[Tensor, "batch look_back channel"]:
        """Return the probability of each token's gate at all its steps; open tokens rank above closed ones."""
        explanation: Explanation = self(window).explanation
        return spread(explanation.probability, self.config.patch_len)

    def loss(self, window: Window, target: Target, progress: Float[Tensor, ""], generator: torch.Generator) -> Loss:
        """Score a training batch with sampled gates. Paper: Eq. 9, L."""
        knobs, patch_len = self.config.objective, self.config.patch_len
        context, deviation = self.decompose(window)
        logits = self.score(deviation)
        missing = self.missing(window)
        count = self.gate.drawn_count(progress, generator)
        mask = self.gate.sample(logits, missing, progress, generator, count)
        evidence = spread(mask, patch_len) * deviation
        forecast = context.restore(self.readout(evidence, mask, context))
        terms = {"fit": objective.fit(forecast, target, knobs)}
        if knobs.rate_weight:
            terms["rate"] = knobs.rate_weight * objective.rate(logits, knobs.prior)
        if knobs.budget_weight:
            terms["budget"] = knobs.budget_weight * objective.budget(torch.sigmoid(logits), self.config.budget)
        if knobs.contiguity_weight:
            terms["contiguity"] = knobs.contiguity_weight * objective.contiguity(mask)
        if knobs.consistency_weight:
            _, margin = self.gate.margin(self.score(evidence.detach()), missing, count)
            terms["consistency"] = knobs.consistency_weight * objective.consistency(margin, mask.detach(), missing)
        if knobs.absence_weight:
            _, margin = self.gate.margin(self.score((deviation - evidence).detach()), missing, count)
            terms["absence"] = knobs.absence_weight * objective.absence(margin, mask.detach(), missing)
        if knobs.departure_weight:
            terms["departure"] = knobs.departure_weight * objective.departure(logits, self.score.unseen(), missing)
        return Loss(terms, mask.detach().mean())

    def with_budget(self, budget: float) -> "IBForecast":
        """Return the network under another budget, with the same weights; a larger one reads what a smaller does."""
        require(
            self.config.gate.any_budget or budget == self.config.budget,
            "a budget can be changed only in a model trained for any budget",
            f"budget={budget}, trained for {self.config.budget}",
            'fit with gate.any_budget = true, such as recipe "any-budget"',
        )
        if budget == self.config.budget:
            return self
        with torch.random.fork_rng([]):
            other = type(self)(replace(self.config, budget=budget))
        other.to(self.gate.allowance.device).load_state_dict(self.state_dict(keep_vars=True), assign=True)
        return other.train(self.training)

    def parameter_groups(self) -> list[ParameterGroup]:
        """Return two groups: the readout, and context and gates, which learn `context_rate` times as fast."""
        learned = [parameter for parameter in self.parameters() if parameter.requires_grad]
        readout = {id(parameter) for parameter in self.readout.parameters()}
        return [
            ParameterGroup([parameter for parameter in learned if id(parameter) in readout]),
            ParameterGroup([p for p in learned if id(p) not in readout], self.config.context_rate),
        ]

    def missing(self, window: Window) -> Bool[Tensor, "batch patch channel"]:
        """Mark the tokens with a missing step, which stay closed."""
        return ~to_tokens(window.observed, self.config.patch_len).all(dim=-1)


def _frame(config: ModelConfig) -> Frame:
    if config.frame == "weighted":
        return WeightedFrame(config.look_back)
    if config.frame == "seasonal":
        return SeasonalFrame(config.look_back, config.channels)
    return MeanFrame() if config.frame == "mean" else NoFrame()


def _scorer(config: ModelConfig) -> Scorer:
    gate = config.gate
    every = spacing(config.patches, config.allowance // config.channels, gate.recent) if gate.spread else gate.every
    bias = first_bias(config.patches, config.channels, gate.recent, every)
    if gate.attention == "none" and bias is not None:
        return FixedScores(bias)
    if gate.attention == "mixing":
        return MixingNetwork(config.patch_len, config.patches, config.channels, gate.width, gate.layers, bias)
    joint = gate.attention == "joint" or (gate.attention == "auto" and config.channels <= JOINT_UP_TO)
    return GateNetwork(
        config.patch_len,
        config.patches,
        gate.width,
        gate.layers,
        gate.heads,
        gate.dropout,
        "joint" if joint else "within",
        gate.first_logit,
        bias,
    )


def _readout(config: ModelConfig) -> Readout:
    look_back, horizon, readout, phases = config.look_back, config.horizon, config.readout, sum(config.cycles)
    if readout.kind == "linear":
        return LinearReadout(look_back, horizon)
    if readout.kind == "mlp":
        return MLPReadout(look_back, horizon, readout.width)
    if readout.kind == "additive":
        added = AdditiveReadout(look_back, horizon, phases, config.channels, readout.width, readout.dropout)
        return TargetsOnly(added, config.past) if config.past else added
    channels = config.channels if readout.by_channel else 0
    plain = PhaseReadout(look_back, horizon, config.patches, phases, channels, readout.width, readout.dropout)
    if not readout.cross_channel:
        return plain
    crossed = CrossChannel(plain, look_back, phases, config.channels, readout.dropout)
    return TargetsOnly(crossed, config.past) if config.past else crossed
