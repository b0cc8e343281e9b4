"""The factor decomposition: which part of the evidence drives which part of the future. Paper: appendix on factors.

The paper adds K maps to the base map. Each map pools what it reads into a state s_k, and loadings A carry the states
into the future: D̂^struct_{h,c} = Σ_k A_{h,k,c} s_k. The paper gives no further detail. Our choices, and why:

- *The mask is the union.* The gate opens the tokens that the factors' maps select, then those that the base map
  selects, and never more than the budget. Factor k reads the tokens that are open both in the mask and in its own map.
  So the mask shows everything that was read, and the budget means the same as in the base model.
- *Only the token itself decides whether it is in a factor's map*: its deviations, its patch, its channel. So the maps
  are a function of the evidence, and the forecast is still Ŷ = g(E; 𝒞), replayed from an explanation that does not
  mention factors. If the maps came from the gate's encoder, which sees the whole window, the explanation would have to
  include them, and a factor's state could depend on tokens outside its map.
- *Masked replacement*: a token that a map closes is replaced by a deviation of zero, which is what absence means
  everywhere in this library. Pooling is the sum over the window of each token's product with a learned weight, so a
  replaced token adds exactly zero.
- *Loadings start at zero*, so that at first the factors add nothing.
- *The gate reads the maps but does not train them*: no gradient reaches them through the mask. They are trained only by
  the forecasts made from what they read.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import gelu, normalize

from ibforecast.core.context import Context
from ibforecast.core.contracts import Loss, ParameterGroup
from ibforecast.core.errors import require
from ibforecast.core.explanation import Explanation
from ibforecast.core.tokens import closed_to_zero, spread, to_tokens
from ibforecast.core.window import Target, Window
from ibforecast.model import objective
from ibforecast.model.config import ModelConfig
from ibforecast.model.network import IBForecast
from ibforecast.model.stage2_score import Scorer
from ibforecast.model.stage3_gate import PerToken, logistic_noise, straight_through
from ibforecast.model.stage4_readout import Evidence, Future, Mask, Readout

Maps = Float[Tensor, "batch map patch channel"]
State = Float[Tensor, "batch map"]

WIDTH, NOISE, RATE = 16, 0.5, 10.0
"""Width of the network that scores the maps, logistic noise on the maps in training, learning rate of the factors."""


@dataclass(frozen=True)
class FactorConfig(ModelConfig):
    """IB-Forecast with K more maps, `factors`.

    `diversity_weight` keeps the maps different from each other; zero leaves the term out. The maps use the prior and
    the `rate_weight` of the gates.
    """

    factors: int = 3
    diversity_weight: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("factors")
        require(
            0 <= self.diversity_weight < inf,
            "diversity_weight must be finite and not negative",
            str(self.diversity_weight),
            "use 0 to leave the term out",
        )


@dataclass(frozen=True)
class Factors:
    """Maps, states and contributions of the factors for a batch of explanations.

    `maps` marks the tokens each factor read, all of them open in the explanation's mask, and `probability` grades
    them. `state` is s_k. `contribution` is A_{h,k,c} s_k, which factor k adds to the future deviation; multiply it by
    the scale of the context for the units of the forecast.
    """

    maps: Bool[Tensor, "batch map patch channel"]
    probability: Maps
    state: State
    contribution: Float[Tensor, "batch map horizon channel"]


class FactorMaps(nn.Module):
    """The logits of K maps, token by token: a small network for the deviations, a bias for patch and channel."""

    def __init__(self, config: FactorConfig) -> None:
        super().__init__()
        self.patch_len = config.patch_len
        self.enter = nn.Linear(config.patch_len, WIDTH)
        self.leave = nn.Linear(WIDTH, config.factors)
        self.patch = nn.Parameter(torch.zeros(config.factors, config.patches, 1))
        self.channel = nn.Parameter(torch.zeros(config.factors, 1, config.channels))

    def forward(self, deviation: Evidence) -> Maps:
        """Score every token for every map; the score of a token depends on no other token."""
        scores: Tensor = self.leave(gelu(self.enter(to_tokens(deviation, self.patch_len))))
        return scores.permute(0, 3, 1, 2) + self.patch + self.channel


class FactorScores(Scorer):
    """The logits of the union of K + 1 maps: a token selected by a factor ranks above all others."""

    def __init__(self, score: Scorer, maps: FactorMaps) -> None:
        super().__init__()
        self.score = score
        # In a tuple, so that PyTorch does not register the maps here too: safetensors rejects shared parameters.
        self.shared = (maps,)

    def forward(self, deviation: Evidence) -> PerToken:
        """Score every token; gradients pass only the base map."""
        base, (maps,) = self.score(deviation), self.shared
        return _union(base, base.detach(), maps(deviation).detach())

    def unseen(self) -> Float[Tensor, "*tokens"]:
        """Return the logits that the base map gives unseen tokens."""
        return self.score.unseen()

    def relaxed(self, deviation: Evidence) -> PerToken:
        """Score every token, with gradients that also pass the factors' maps."""
        base, (maps,) = self.score(deviation), self.shared
        return _union(base, base, maps(deviation))


def _union(base: PerToken, ranked: PerToken, maps: Maps) -> PerToken:
    """Raise every token that a map selects above zero and above the largest logit of `ranked`."""
    selected = maps.amax(dim=1)
    return torch.where(selected > 0, selected + ranked.amax(dim=(1, 2), keepdim=True).clamp(min=0), base)


class FactorReadout(Readout):
    """The base readout plus the factors, D̂ = f_base(m̄ ⊙ D) + Σ_k A_{h,k,c} s_k. Paper: appendix on factors.

    `weight` contains the K weight vectors w_k that tokens are multiplied with, `loading` is A.
    """

    def __init__(self, readout: Readout, config: FactorConfig) -> None:
        super().__init__()
        self.readout, self.maps = readout, FactorMaps(config)
        self.weight = nn.Parameter(config.patch_len**-0.5 * torch.randn(config.factors, config.patch_len))
        self.loading = nn.Parameter(torch.zeros(config.horizon, config.factors, config.channels))
        self._generator: torch.Generator | None = None

    def forward(self, evidence: Evidence, mask: Mask, context: Context) -> Future:
        """Return the future deviation; each map is open or closed at each token."""
        logits = self.maps(evidence)
        rows = logits.flatten(0, 1)
        if self._generator is not None:
            rows = rows + NOISE * logistic_noise(rows, self._generator)
        maps = straight_through(rows > 0, torch.sigmoid(rows)).view_as(logits)
        return self._sum(self.readout(evidence, mask, context), maps, evidence)

    def relaxed(self, evidence: Evidence, mask: Mask, context: Context) -> Future:
        """Return the future deviation with maps replaced by their probabilities, so that gradients pass them."""
        return self._sum(self.readout(evidence, mask, context), torch.sigmoid(self.maps(evidence)), evidence)

    @contextmanager
    def sampled(self, generator: torch.Generator) -> Iterator[None]:
        """Add noise from this generator to the maps inside the block, so that training explores."""
        self._generator = generator
        try:
            yield
        finally:
            self._generator = None

    def state(self, maps: Maps, evidence: Evidence) -> State:
        """Pool the tokens of each map, all others replaced by zero: s_k = Σ_{p,c} m_{k,p,c} ⟨w_k, d_{p,c}⟩."""
        products = to_tokens(evidence, self.maps.patch_len) @ self.weight.T  # batch patch channel map
        return (maps * products.permute(0, 3, 1, 2)).sum(dim=(2, 3))

    def contribution(self, state: State) -> Float[Tensor, "batch map horizon channel"]:
        """Return the contribution of each factor to each step and channel of the future: A_{h,k,c} s_k."""
        return state[:, :, None, None] * self.loading.transpose(0, 1)

    def _sum(self, base: Future, maps: Maps, evidence: Evidence) -> Future:
        return base + self.contribution(self.state(maps, evidence)).sum(dim=1)


def diversity(probability: Maps) -> Float[Tensor, ""]:
    """Return the mean squared cosine of all pairs of maps; zero if there is only one. Paper: appendix on factors.

    The paper mentions a diversity penalty but gives no formula.
    """
    maps = normalize(probability.flatten(2), dim=2)
    pairs = max(1, maps.shape[1] * (maps.shape[1] - 1) // 2)
    return ((maps @ maps.transpose(1, 2)) ** 2).triu(1).sum(dim=(1, 2)).mean() / pairs


class FactorForecast(IBForecast):
    """IB-Forecast that also separates the drivers of the future. Paper: appendix on factors."""

    config: FactorConfig
    score: FactorScores
    readout: FactorReadout

    def __init__(self, config: FactorConfig) -> None:
        super().__init__(config)
        self.readout = FactorReadout(self.readout, config)
        self.score = FactorScores(self.score, self.readout.maps)

    def factors(self, explanation: Explanation) -> Factors:
        """Compute the maps and states behind a forecast; only its explanation is needed."""
        logits = self.readout.maps(explanation.evidence)
        maps = (logits > 0) & explanation.mask[:, None]
        state = self.readout.state(maps.to(logits.dtype), explanation.evidence)
        probability = torch.sigmoid(logits) * explanation.mask[:, None]
        return Factors(maps, probability, state, self.readout.contribution(state))

    def part(self, explanation: Explanation, factor: int) -> Explanation:
        """Return the explanation of one factor, counted from 0: its map and its evidence, which fix its state."""
        factors = self.factors(explanation)
        mask = factors.maps[:, factor]
        evidence = closed_to_zero(mask, explanation.evidence)
        return replace(explanation, mask=mask, evidence=evidence, probability=factors.probability[:, factor])

    def relaxed(self, window: Window, held: Context | None = None) -> Float[Tensor, "batch horizon channel"]:
        """Forecast with gates and maps replaced by their probabilities, so that gradients pass them."""
        context, deviation = self.decompose(window, held)
        _, probability = self.gate(self.score.relaxed(deviation), self.missing(window))
        evidence = spread(probability, self.config.patch_len) * deviation
        forecast: Tensor = context.restore(self.readout.relaxed(evidence, probability, context))
        return forecast

    def loss(self, window: Window, target: Target, progress: Float[Tensor, ""], generator: torch.Generator) -> Loss:
        """Score a training batch: the base objective with sampled maps, plus terms for sparse and different maps."""
        with self.readout.sampled(generator):
            base = super().loss(window, target, progress, generator)
        terms, knobs = dict(base.terms), self.config.objective
        logits = self.readout.maps(self.decompose(window)[1])
        if knobs.rate_weight:
            terms["map_rate"] = knobs.rate_weight * objective.rate(logits.flatten(0, 1), knobs.prior)
        if self.config.diversity_weight:
            readable = torch.sigmoid(logits) * ~self.missing(window)[:, None]
            terms["diversity"] = self.config.diversity_weight * diversity(readable)
        return Loss(terms, base.open_rate)

    def parameter_groups(self) -> list[ParameterGroup]:
        """Return three groups: the base readout, the factors at `RATE`, context and gates at `context_rate`."""
        readout, context_and_gates = super().parameter_groups()
        base = {id(parameter) for parameter in self.readout.readout.parameters()}
        return [
            ParameterGroup([parameter for parameter in readout.parameters if id(parameter) in base], readout.rate),
            ParameterGroup([p for p in readout.parameters if id(p) not in base], RATE),
            context_and_gates,
        ]
