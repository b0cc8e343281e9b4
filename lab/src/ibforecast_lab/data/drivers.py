"""The driver benchmark: a few planted drivers move the future of a window, and each shows as an event in its past.

The paper's appendix on the factor decomposition mentions a "planted multi-driver structure" but does not define it.
This definition is ours; levels, seasons, background and noise are those of the framed benchmark.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64

from ibforecast.core.errors import require
from ibforecast_lab.data.framed import MODES, FramedConstants, assemble, draw


@dataclass(frozen=True)
class DriverConstants:
    """The numbers of the benchmark; `source`, `effect` and `lead` have one entry for every driver.

    Everything except the events is as in the framed benchmark. A driver shows as an event in its `source` channel: a
    patch of `event_steps` steps with one swing for the first driver, two for the second, and so on. It moves channel c
    by `effect[c]` times the event's size. The effect peaks `lead` steps into the future and has width `lead_width`.
    Each driver also has bystanders: events of the same shape in another channel, which move nothing.
    """

    framed: FramedConstants = field(default_factory=FramedConstants)
    event_steps: int = 12
    event_rate: float = 0.5
    event_size: tuple[float, float] = (2.0, 5.0)
    source: tuple[int, ...] = (0, 1, 2)
    effect: tuple[tuple[float, ...], ...] = ((0.0, 0.6, 0.0, -0.6), (0.0, 0.0, 0.6, 0.6), (-0.6, 0.6, 0.0, 0.0))
    lead: tuple[float, ...] = (3.0, 11.0, 19.0)
    lead_width: float = 4.0

    def __post_init__(self) -> None:
        channels, look_back = self.framed.channels, self.framed.look_back
        counts = [len(each) for each in (self.source, self.effect, self.lead)]
        require(
            min(counts) == max(counts) >= 1,
            "source, effect and lead must have an entry for every driver",
            f"{counts} entries",
            "use the same number of each",
        )
        require(
            all(len(row) == channels for row in self.effect) and set(self.source) <= set(range(channels)),
            "source and effect must fit the channels",
            f"channels={channels}, source={self.source}, effect={self.effect}",
            "number channels from 0, and give every driver an effect on each of them",
        )
        require(channels >= 2, "there must be another channel for bystanders", f"channels={channels}", "use 2 or more")
        require(
            look_back % self.event_steps == 0 and self.patches >= 2 * self.drivers,
            "event_steps must divide look_back into a patch for every driver and every bystander",
            f"event_steps={self.event_steps}, look_back={look_back}, drivers={self.drivers}",
            "make events shorter, or the look-back longer",
        )
        require(
            self.event_steps > 2 * self.drivers,
            "event_steps must exceed twice the number of drivers, so that their swings differ",
            f"event_steps={self.event_steps}, drivers={self.drivers}",
            "make events longer",
        )

    @property
    def drivers(self) -> int:
        """Number of drivers."""
        return len(self.source)

    @property
    def patches(self) -> int:
        """Number of patches of a channel; an event fills one of them."""
        return self.framed.look_back // self.event_steps

    @property
    def shape(self) -> Float64[np.ndarray, "driver step"]:
        """An event of size 1 for each driver. It sums to zero, so it does not change the window's level."""
        swings = np.arange(1, self.drivers + 1)[:, None]
        return np.asarray(np.sin(2 * np.pi * swings * (np.arange(self.event_steps) + 0.5) / self.event_steps))

    @property
    def loading(self) -> Float64[np.ndarray, "horizon driver channel"]:
        """Effect of a driver of state 1 on each channel at each step of the future."""
        step = np.arange(self.framed.horizon)[:, None]
        course = np.exp(-(((step - np.array(self.lead)) / self.lead_width) ** 2) / 2)
        return np.asarray(course[:, :, None] * np.array(self.effect))


@dataclass(frozen=True)
class DriverWindows:
    """Windows, their targets, and the planted truth.

    `support` marks the steps of each driver's event and `bystander` those of the events that move nothing. `state` is
    the signed size of a driver's event, 0 if there is no event. A driver adds its state times its `loading` to the
    future, in units of each channel's `scale`.
    """

    window: Float32[np.ndarray, "window look_back channel"]
    target: Float32[np.ndarray, "window horizon channel"]
    phase: Int64[np.ndarray, " window"]
    support: Bool[np.ndarray, "window driver look_back channel"]
    bystander: Bool[np.ndarray, "window driver look_back channel"]
    state: Float32[np.ndarray, "window driver"]
    level: Float32[np.ndarray, "window channel"]
    scale: Float32[np.ndarray, "window channel"]
    loading: Float64[np.ndarray, "horizon driver channel"]

    def __len__(self) -> int:
        return len(self.window)

    def part(self, first: int, last: int) -> "DriverWindows":
        """Take the windows from `first` up to but not including `last`."""
        each = ("window", "target", "phase", "support", "bystander", "state", "level", "scale")
        return replace(self, **{name: getattr(self, name)[first:last] for name in each})

    def tokens(self, patch_len: int) -> Bool[np.ndarray, "window driver patch channel"]:
        """Mark the tokens that contain a step of a driver's event."""
        windows, drivers, look_back, channels = self.support.shape
        patched = self.support.reshape(windows, drivers, look_back // patch_len, patch_len, channels)
        return np.asarray(patched.any(axis=3))


def splits(seed: int = 2024) -> tuple[DriverWindows, DriverWindows, DriverWindows]:
    """Make 4000 training, 1000 validation and 1000 test windows, as in the framed benchmark."""
    every = generate(6000, seed)
    return every.part(0, 4000), every.part(4000, 5000), every.part(5000, 6000)


def generate(windows: int, seed: int, constants: DriverConstants | None = None) -> DriverWindows:
    """Draw windows of the framed benchmark whose events move other channels instead of their own.

    X[t,c] = μ_c + s_c (φ_c((t+τ) mod W) + β_c(t) + events[t,c] + ε[t,c])
    Y[h,c] = μ_c + s_c (φ_c((h+L+τ) mod W) + Σ_k A[h,k,c] s_k + ε[h,c])
    """
    k = constants or DriverConstants()
    random = np.random.default_rng([seed, 1 + len(MODES)])  # a stream that no mode of the framed benchmark uses
    driving = _sizes(windows, k, random)
    standing_by = _sizes(windows, k, random)
    # A permutation of the patches, so that no two events of a window share one.
    dealt = random.permuted(np.tile(np.arange(k.patches), (windows, 1)), axis=1)
    channel = np.tile(k.source, (windows, 1))
    other = (channel + random.integers(1, k.framed.channels, channel.shape)) % k.framed.channels
    support = _steps(dealt[:, : k.drivers], channel, k) & (driving != 0)[:, :, None, None]
    bystander = _steps(dealt[:, k.drivers : 2 * k.drivers], other, k) & (standing_by != 0)[:, :, None, None]
    shape = np.tile(k.shape, k.patches)
    parts = draw("pulse", windows, seed, k.framed)
    made = assemble(
        replace(
            parts,
            driver=np.ones_like(parts.driver),
            event=np.einsum("wk,wktc,kt->wtc", driving, support, shape)
            + np.einsum("wk,wktc,kt->wtc", standing_by, bystander, shape),
            event_steps=support.any(axis=1),
            response=np.einsum("hkc,wk->whc", k.loading, driving),
        )
    )
    return DriverWindows(
        window=made.window,
        target=made.target,
        phase=made.phase,
        support=support,
        bystander=bystander,
        state=driving.astype(np.float32),
        level=made.level,
        scale=made.scale,
        loading=k.loading,
    )


def _sizes(windows: int, k: DriverConstants, random: np.random.Generator) -> Float64[np.ndarray, "window driver"]:
    each = (windows, k.drivers)
    sign = random.choice([-1.0, 1.0], each)
    return np.asarray(sign * random.uniform(*k.event_size, each) * (random.random(each) < k.event_rate))


def _steps(
    patch: Int64[np.ndarray, "window driver"], channel: Int64[np.ndarray, "window driver"], k: DriverConstants
) -> Bool[np.ndarray, "window driver look_back channel"]:
    """Mark the steps of one patch of one channel."""
    in_patch = np.repeat(patch[..., None] == np.arange(k.patches), k.event_steps, axis=-1)
    in_channel = channel[..., None] == np.arange(k.framed.channels)
    return np.asarray(in_patch[..., None] & in_channel[..., None, :])
