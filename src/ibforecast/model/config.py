"""The configuration of IB-Forecast: frozen, and checked when it is built. A recipe writes what differs from it."""

from dataclasses import dataclass, field, replace
from math import ceil, inf
from typing import Literal, get_args

from ibforecast.core.budget import allowance, require_budget
from ibforecast.core.cycles import LARGEST_PERIOD, period
from ibforecast.core.errors import UsageError, require, require_choice
from ibforecast.core.sizes import LONGEST, Sizes

FrameKind = Literal["mean", "weighted", "seasonal", "none"]
LossKind = Literal["mse", "mae", "frequency"]
GateKind = Literal["exact", "capped", "threshold", "open", "newest"]
GateAttention = Literal["auto", "joint", "within", "mixing", "none"]
LevelSource = Literal["window", "reading"]
ReadoutKind = Literal["linear", "mlp", "phase", "additive"]
WIDEST, DEEPEST = 16_384, 1_000
"""The largest width and number of layers; a matrix of that width takes 1 GB."""


@dataclass(frozen=True)
class GateConfig:
    """Stages 2 and 3: how tokens are scored and gates opened.

    `kind` is the rule by which gates open:

    - "exact": the best tokens up to the budget, in training and in use
    - "threshold": the paper's gate, p > ½, capped by the budget in use
    - "capped": the same with the cap in training as well
    - "open": everything is read
    - "newest": always the newest patches of every channel

    `attention` is what a token's score depends on:

    - "joint": all tokens; "within": those of its channel; "auto": one of the two, by the number of channels
    - "mixing": its surroundings, by a small network without attention, whose cost is proportional to the tokens
    - "none": nothing. There is no gate network, only a learned bias, which gives a fixed mask

    That bias, one logit per (patch, channel), starts in favour of the `recent` newest patches and of every `every`-th
    one, counted back from the newest; there is no bias if both are 0. `spread` determines `every` from the budget: as
    small as it allows. `noise` is the size of the logistic noise in training, which falls to zero at `noise_until` of
    the epochs (1: it never falls). With `narrow_until` the budget begins at the whole window and narrows to its size by
    then (0: at once). `any_budget` trains on a random budget in every batch, so that the budget can be changed in use.
    """

    kind: GateKind = "exact"
    attention: GateAttention = "auto"
    width: int = 64
    layers: int = 1
    heads: int = 4
    dropout: float = 0.1
    recent: int = 2
    every: int = 0
    spread: bool = False
    first_logit: float = 0.0
    noise: float = 1.0
    noise_until: float = 0.6
    narrow_until: float = 0.0
    any_budget: bool = False

    def __post_init__(self) -> None:
        require_choice("kind", self.kind, get_args(GateKind))
        require_choice("attention", self.attention, get_args(GateAttention))
        require(
            self.attention != "none" or self.spread or self.recent > 0 or self.every > 0,
            'attention "none" leaves only the bias, so recent or every must be positive',
            f"recent={self.recent}, every={self.every}",
            "try recent=2",
        )
        require(
            not self.any_budget or self.kind in ("exact", "capped"),
            "any_budget needs a gate that counts",
            f"kind={self.kind!r}",
            'set kind = "exact" or "capped"',
        )
        require(0 < self.width <= WIDEST, f"width must be positive and at most {WIDEST}", str(self.width), "try 64")
        require(self.heads > 0, "heads must be positive", str(self.heads), "try 4")
        require(self.recent >= 0, "recent must not be negative", str(self.recent), "use 0 to favour none")
        require(
            not (self.spread and self.every),
            "spread determines every, so only one of them can be set",
            f"every={self.every}",
            "leave out every",
        )
        require(self.every >= 0, "every must not be negative", str(self.every), "use 0 to favour none")
        require(0 <= self.narrow_until < 1, "narrow_until must lie in [0, 1)", str(self.narrow_until), "try 0.5")
        require(self.width % self.heads == 0, "heads must divide width", f"{self.heads}, {self.width}", "try 4 and 64")
        require(0 < self.layers <= DEEPEST, f"layers must be positive, at most {DEEPEST}", str(self.layers), "try 1")
        require(0 <= self.dropout < 1, "dropout must lie in [0, 1)", str(self.dropout), "try 0.1")
        require(0 <= self.noise < inf, "noise must be finite and not negative", str(self.noise), "try 1")
        require(-inf < self.first_logit < inf, "first_logit must be finite", str(self.first_logit), "try 0")
        require(0 < self.noise_until <= 1, "noise_until must lie in (0, 1]", str(self.noise_until), "try 0.6")


@dataclass(frozen=True)
class ReadoutConfig:
    """Stage 4: "linear" and "mlp" are the paper's; "phase" also reads the mask and the phase.

    With "phase", `cross_channel` lets channels read each other's evidence, and `by_channel` embeds the channel.
    "additive" always does both. It is a sum over what was read, so that what each value adds to a forecast is exact.
    """

    kind: ReadoutKind = "phase"
    width: int = 512
    dropout: float = 0.5
    cross_channel: bool = False
    by_channel: bool = False

    def __post_init__(self) -> None:
        require_choice("kind", self.kind, get_args(ReadoutKind))
        require(0 < self.width <= WIDEST, f"width must be positive and at most {WIDEST}", str(self.width), "try 512")
        require(0 <= self.dropout < 1, "dropout must lie in [0, 1)", str(self.dropout), "try 0.5")
        require(
            self.kind in ("phase", "additive") or not (self.cross_channel or self.by_channel),
            'cross_channel and by_channel need the "phase" or the "additive" readout',
            self.kind,
            'set kind = "phase"',
        )
        require(
            self.kind != "additive" or (self.cross_channel and self.by_channel),
            'in the "additive" readout channels are distinguished and read each other',
            f"cross_channel={self.cross_channel}, by_channel={self.by_channel}",
            "set both to true",
        )


@dataclass(frozen=True)
class ObjectiveConfig:
    """The error that is minimised, the knobs of Eq. 9, and the weights of four terms about the choice of the gates.

    `loss` is "mse", "mae", or "frequency": the mean absolute error mixed with that of the spectrum over the horizon,
    which has the weight `frequency_share`. A weight of zero leaves a term out.

    If it sees only the evidence, the gate network must return the same mask (`consistency_weight`). If it sees the
    window without the evidence, it must not open anything else instead (`absence_weight`). It pays for every departure
    from its bias, the mask it would use for all windows (`departure_weight`; without a bias, for logits far from 0).
    With `exchange_weight` it also learns from what exchanging an open token for a closed one does to the error,
    relative to the error. The readout is then trained on these masks as well.
    """

    rate_weight: float = 0.02
    prior: float = 0.2
    budget_weight: float = 0.0
    contiguity_weight: float = 0.0
    consistency_weight: float = 0.05
    absence_weight: float = 0.0
    departure_weight: float = 0.1
    exchange_weight: float = 0.0
    loss: LossKind = "mse"
    frequency_share: float = 0.5

    def __post_init__(self) -> None:
        require_choice("loss", self.loss, get_args(LossKind))
        require(
            0 <= self.frequency_share <= 1,
            "frequency_share must lie in [0, 1]",
            str(self.frequency_share),
            "try 0.5",
        )
        require(0 < self.prior < 1, "prior must lie in (0, 1)", str(self.prior), "try 0.2")
        weights = (
            self.rate_weight,
            self.budget_weight,
            self.contiguity_weight,
            self.consistency_weight,
            self.absence_weight,
            self.departure_weight,
            self.exchange_weight,
        )
        require(
            all(0 <= weight < inf for weight in weights),
            "weights must be finite and not negative",
            str(weights),
            "use 0 to leave a term out",
        )


@dataclass(frozen=True)
class ModelConfig(Sizes):
    """Everything that shapes the network: sizes, context, gate, readout, objective.

    `sealed` computes mask, level and scale from what is read and from nothing else: the mask is then a fixed one. With
    `level_from` "reading" the gate network looks at the window to choose what is read, and level and scale come from
    what was read; with "window" they come from the whole window. A sealed model has no use for it. The `frame` gives
    level and scale: "mean", "weighted" (a learned mean), "seasonal" (a learned mean without the profile, made for few
    values) or "none". An `anchored` model blends naive forecasts into its own, with shares that are chosen after
    training (`zoo.anchoring`); with `medians`, those of the training rows are among them. `further_cycles` have their
    own profiles, which add to that of the first. `added_cycles` were added after training, for such medians, and their
    profiles are 0. The last `past` channels are read and not forecast; `future` is the number of covariates known
    ahead.
    """

    patch_len: int = 12
    budget: float = 0.2
    sealed: bool = False
    level_from: LevelSource = "window"
    frame: FrameKind = "weighted"
    profile: bool = True
    anchored: bool = False
    medians: bool = False
    context_rate: float = 3.0
    gate: GateConfig = field(default_factory=GateConfig)
    readout: ReadoutConfig = field(default_factory=ReadoutConfig)
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    further_cycles: tuple[int, ...] = ()
    added_cycles: tuple[int, ...] = ()
    past: int = 0
    future: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("patch_len")
        require_choice("frame", self.frame, get_args(FrameKind))
        require_choice("level_from", self.level_from, get_args(LevelSource))
        require(0 < self.context_rate < inf, "context_rate must be positive", str(self.context_rate), "try 3")
        if self.look_back % self.patch_len:
            divisors = (n for n in range(1, self.look_back + 1) if self.look_back % n == 0)
            nearby = sorted(sorted(divisors, key=lambda n: abs(n - self.patch_len))[:3])
            raise UsageError(
                "patch_len must divide look_back",
                f"patch_len={self.patch_len}, look_back={self.look_back}",
                f"try {', '.join(map(str, nearby))}",
            )
        require_budget(self.budget)
        require(
            self.gate.kind != "open" or self.budget == 1,
            'the "open" gate reads everything, so its budget must be 1',
            f"budget={self.budget}",
            "set budget = 1, or another gate",
        )
        require(
            self.allowance >= 1,
            "budget must allow at least one token",
            f"budget={self.budget} of {self.patches * self.channels} tokens",
            f"try {ceil(1e6 / (self.patches * self.channels)) / 1e6:.6f} or more"
            + (f", or patches shorter than {self.patch_len} steps (fit --patch-len)" if self.patch_len > 1 else ""),
        )
        require(
            self.gate.kind != "newest" or self.allowance >= self.channels,
            'with the "newest" gate the budget must allow a patch of every channel',
            f"budget={self.budget} of {self.patches} patches",
            f"try {ceil(1e6 / self.patches) / 1e6:.6f} or more",
        )
        require(
            not self.sealed or (self.gate.kind, self.gate.attention) == ("exact", "none"),
            "a sealed model reads by a fixed mask, chosen without looking",
            f"kind={self.gate.kind!r}, attention={self.gate.attention!r}",
            'set kind = "exact" and attention = "none", or sealed = false',
        )
        objective = self.objective
        unknown = ("rate_weight", "budget_weight", "contiguity_weight", "consistency_weight", "absence_weight")
        require(
            not self.chooses or not any(getattr(objective, name) for name in unknown),
            'with level_from "reading" the gates learn only from fit, exchange and departure',
            ", ".join(f"{name}={getattr(objective, name)}" for name in unknown if getattr(objective, name)),
            "set these weights to 0",
        )
        require(
            self.chooses or not objective.exchange_weight,
            'exchange_weight needs level_from "reading"',
            f"exchange_weight={objective.exchange_weight}",
            'set level_from = "reading", or exchange_weight = 0',
        )
        require(
            min(self.cycles) >= 1 and len(set(self.cycles)) == len(self.cycles),
            "cycles must be different positive numbers of steps",
            f"cycles={self.cycles}",
            "try (24, 168) for the day and the week of hourly data",
        )
        require(
            sum(self.cycles) <= LONGEST and self.period <= LARGEST_PERIOD,
            f"cycles must have at most {LONGEST} steps in all, and begin again together within {LARGEST_PERIOD}",
            f"cycles={self.cycles}",
            "give fewer or shorter ones",
        )
        require(
            (self.anchored or not self.medians) and (self.medians or not self.added_cycles),
            "medians need an anchored model, and added cycles need medians",
            f"anchored={self.anchored}, medians={self.medians}, added_cycles={self.added_cycles}",
            "leave all three out: they are chosen after training",
        )
        require(self.future >= 0, "future must not be negative", f"future={self.future}", "use 0 for none")
        require(
            0 <= self.past < self.channels,
            "at least one channel must be forecast",
            f"past={self.past} of {self.channels} channels",
            "name fewer of them as past",
        )
        require(
            self.readout.kind != "additive" or self.frame == "seasonal",
            'the "additive" readout needs the "seasonal" frame',
            f"frame={self.frame!r}",
            'set frame = "seasonal", as recipe "additive" does',
        )
        require(
            not self.past or self.readout.cross_channel,
            "past covariates matter only where channels read each other's evidence",
            f"past={self.past}, cross_channel={self.readout.cross_channel}",
            'set cross_channel = true, with kind = "phase"',
        )

    @property
    def chooses(self) -> bool:
        """Whether the gates look at the window to choose what is read, and nothing else depends on the rest of it."""
        return self.level_from == "reading" and not self.sealed

    @property
    def cycles(self) -> tuple[int, ...]:
        """Lengths of all cycles, the first one first."""
        return (*self.learned_cycles, *self.added_cycles)

    @property
    def learned_cycles(self) -> tuple[int, ...]:
        """Lengths of the cycles with a learned profile."""
        return (self.cycle, *self.further_cycles)

    @property
    def trained(self) -> "ModelConfig":
        """The configuration without what is chosen after training."""
        return replace(self, anchored=False, medians=False, added_cycles=())

    @property
    def period(self) -> int:
        """Number of steps after which all cycles begin again together."""
        return period(self.cycles)

    @property
    def patches(self) -> int:
        """Number of patches per channel, P."""
        return self.look_back // self.patch_len

    @property
    def allowance(self) -> int:
        """Largest number of tokens a window may open, ⌊ρ·P·C⌋."""
        return allowance(self.budget, self.patches * self.channels)
