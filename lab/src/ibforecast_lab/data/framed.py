"""The framed benchmark: windows with a planted causal support. Paper: Eq. 11, X; Eq. 12, Y; Eq. 13, M."""

from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64

from ibforecast.core.errors import UsageError

Mode = Literal["pulse", "decoy", "trend"]
MODES: tuple[Mode, ...] = ("pulse", "decoy", "trend")


@dataclass(frozen=True)
class FramedConstants:
    """The numbers of the benchmark: first those the paper gives, then those it leaves open."""

    look_back: int = 96
    horizon: int = 24
    channels: int = 4
    cycle: int = 24
    level: tuple[float, float] = (-3.0, 3.0)
    scale: tuple[float, float] = (0.5, 1.5)
    driver_rate: float = 0.5
    pulse_steps: int = 6
    pulse_size: tuple[float, float] = (2.0, 5.0)
    trend_steps: int = 24
    trend_slope: tuple[float, float] = (0.05, 0.25)

    noise: float = 0.3
    harmonics: int = 2
    harmonic_size: tuple[float, float] = (0.5, 1.0)
    sinusoids: int = 3
    sinusoid_size: tuple[float, float] = (0.3, 0.7)
    sinusoid_period: tuple[float, float] = (8.0, 48.0)
    forbidden_periods: tuple[float, ...] = (24.0, 12.0, 8.0)
    forbidden_within: float = 0.5
    response_share: float = 0.5
    response_decay: float = 8.0
    decoy_share: float = 0.6
    decoy_noise: float = 0.3


@dataclass(frozen=True)
class FramedWindows:
    """Windows, their targets, and the planted truth. Paper: Eq. 11, X; Eq. 12, Y; Eq. 13, M."""

    window: Float32[np.ndarray, "window look_back channel"]
    target: Float32[np.ndarray, "window horizon channel"]
    phase: Int64[np.ndarray, " window"]
    support: Bool[np.ndarray, "window look_back channel"]
    driver: Bool[np.ndarray, "window channel"]
    level: Float32[np.ndarray, "window channel"]
    scale: Float32[np.ndarray, "window channel"]

    def __len__(self) -> int:
        return len(self.window)

    def part(self, first: int, last: int) -> "FramedWindows":
        """Take the windows from `first` up to but not including `last`."""
        return FramedWindows(*(getattr(self, field.name)[first:last] for field in fields(self)))


@dataclass(frozen=True)
class Draw:
    """Everything random about a set of windows, before Eqs. 11-13 combine it; shapes are not yet de-meaned.

    `event` is r_c, `decoy` its weaker, noisy copy, `response` g_c. Both events are drawn for every channel, but enter
    a window only where the `driver` z_c is true.
    """

    level: Float64[np.ndarray, "window channel"]
    scale: Float64[np.ndarray, "window channel"]
    phase: Int64[np.ndarray, " window"]
    driver: Bool[np.ndarray, "window channel"]
    seasonal: Float64[np.ndarray, "cycle channel"]
    background: Float64[np.ndarray, "window look_back channel"]
    event: Float64[np.ndarray, "window look_back channel"]
    event_steps: Bool[np.ndarray, "window look_back channel"]
    decoy: Float64[np.ndarray, "window look_back channel"]
    response: Float64[np.ndarray, "window horizon channel"]
    window_noise: Float64[np.ndarray, "window look_back channel"]
    target_noise: Float64[np.ndarray, "window horizon channel"]


def splits(mode: Mode, seed: int = 2024) -> tuple[FramedWindows, FramedWindows, FramedWindows]:
    """Make the 4000 training, 1000 validation and 1000 test windows, which share one seasonal shape."""
    every = generate(mode, 6000, seed)
    return every.part(0, 4000), every.part(4000, 5000), every.part(5000, 6000)


def generate(mode: Mode, windows: int, seed: int, constants: FramedConstants | None = None) -> FramedWindows:
    """Draw windows and assemble them; the seasonal shape depends only on the seed, not on the mode."""
    return assemble(draw(mode, windows, seed, constants or FramedConstants()))


def assemble(parts: Draw) -> FramedWindows:
    """Compute windows from the drawn parts; every injected shape is de-meaned over the window.

        X[t,c] = μ_c + s_c (φ_c((t+τ) mod W) + β_c(t) + z_c r_c(t) + ε[t,c])        Paper: Eq. 11, X
        Y[t,c] = μ_c + s_c (φ_c((t+L+τ) mod W) + z_c g_c(t) + ε[t,c])               Paper: Eq. 12, Y
        M[t,c] = z_c · 1[t ∈ supp(r_c)], of r_c before it is de-meaned              Paper: Eq. 13, M

    After de-meaning the level does not depend on the driver, but the scale still does: it grows with a large event.
    """
    look_back, horizon = parts.event.shape[1], parts.response.shape[1]
    steps = (parts.phase[:, None] + np.arange(look_back + horizon)) % len(parts.seasonal)
    seasonal = (parts.seasonal - parts.seasonal.mean(axis=0))[steps]
    driver = parts.driver[:, None]
    level, scale = parts.level[:, None], parts.scale[:, None]
    injected = _demeaned(parts.background) + driver * _demeaned(parts.event + parts.decoy)
    window = level + scale * (seasonal[:, :look_back] + injected + parts.window_noise)
    target = level + scale * (seasonal[:, look_back:] + driver * parts.response + parts.target_noise)
    return FramedWindows(
        window=window.astype(np.float32),
        target=target.astype(np.float32),
        phase=parts.phase,
        support=driver & parts.event_steps,
        driver=parts.driver,
        level=parts.level.astype(np.float32),
        scale=parts.scale.astype(np.float32),
    )


def draw(mode: Mode, windows: int, seed: int, constants: FramedConstants) -> Draw:
    """Draw all random parts of a given number of windows."""
    if mode not in MODES:
        raise UsageError(f"mode must be one of {', '.join(MODES)}", repr(mode), "choose one")
    k, each = constants, (windows, constants.channels)
    # The seasonal shape has a stream of its own, so that it is the same in all modes.
    shape_random, random = (np.random.default_rng([seed, stream]) for stream in (0, 1 + MODES.index(mode)))
    steps = k.trend_steps if mode == "trend" else k.pulse_steps
    sign = random.choice([-1.0, 1.0], each)
    if mode == "trend":
        slope = sign * random.uniform(*k.trend_slope, each)
        shape, height = slope[..., None] * np.arange(steps), slope * (steps - 1)
    else:
        height = sign * random.uniform(*k.pulse_size, each)
        shape = height[..., None] * np.sin(np.pi * (np.arange(steps) + 0.5) / steps)
    start = random.integers(0, k.look_back - steps + 1, each)
    event, decoy = _placed(shape, start, k.look_back), np.zeros((windows, k.look_back, k.channels))
    if mode == "decoy":
        spoilt = k.decoy_share * shape + k.decoy_noise * np.abs(height)[..., None] * random.standard_normal(shape.shape)
        decoy = _placed(spoilt, _elsewhere(start, steps, k.look_back, random), k.look_back)
    decay = np.exp(-np.arange(k.horizon) / k.response_decay)
    return Draw(
        level=random.uniform(*k.level, each),
        scale=random.uniform(*k.scale, each),
        phase=random.integers(0, k.cycle, windows),
        driver=random.random(each) < k.driver_rate,
        seasonal=_seasonal(k, shape_random),
        background=_background(windows, k, random),
        event=event,
        event_steps=_placed(np.ones_like(shape), start, k.look_back) > 0,
        decoy=decoy,
        response=k.response_share * height[:, None] * decay[:, None],
        window_noise=random.normal(0, k.noise, (windows, k.look_back, k.channels)),
        target_noise=random.normal(0, k.noise, (windows, k.horizon, k.channels)),
    )


def _demeaned(
    shape: Float64[np.ndarray, "window look_back channel"],
) -> Float64[np.ndarray, "window look_back channel"]:
    return np.asarray(shape - shape.mean(axis=1, keepdims=True))


def _placed(
    shape: Float64[np.ndarray, "window channel steps"], start: Int64[np.ndarray, "window channel"], look_back: int
) -> Float64[np.ndarray, "window look_back channel"]:
    """Place a short shape at its start in a window of zeros."""
    empty = np.zeros((*start.shape, look_back))
    np.put_along_axis(empty, start[..., None] + np.arange(shape.shape[-1]), shape, axis=-1)
    return empty.swapaxes(1, 2)


def _elsewhere(
    start: Int64[np.ndarray, "window channel"], steps: int, look_back: int, random: np.random.Generator
) -> Int64[np.ndarray, "window channel"]:
    """Choose a start whose steps do not overlap those that begin at `start`."""
    places = np.arange(look_back - steps + 1)
    free = np.abs(places - start[..., None]) >= steps
    # The place with the largest random number; numbers start above zero so that a taken place never wins.
    return np.asarray((free * random.uniform(0.1, 1.0, free.shape)).argmax(axis=-1))


def _seasonal(k: FramedConstants, random: np.random.Generator) -> Float64[np.ndarray, "cycle channel"]:
    order = np.arange(1, k.harmonics + 1)[:, None]
    size = random.uniform(*k.harmonic_size, (k.harmonics, k.channels))
    shift = random.uniform(0, 2 * np.pi, (k.harmonics, k.channels))
    step = np.arange(k.cycle)[:, None, None]
    return np.asarray((size * np.sin(2 * np.pi * order * step / k.cycle + shift)).sum(axis=1))


def _background(
    windows: int, k: FramedConstants, random: np.random.Generator
) -> Float64[np.ndarray, "window look_back channel"]:
    """Add up sinusoids whose periods are not close to the cycle or its fractions."""
    each = (windows, 1, k.channels, k.sinusoids)
    period = random.uniform(*k.sinusoid_period, each)
    forbidden = np.array(k.forbidden_periods)
    while (near := (np.abs(period[..., None] - forbidden) < k.forbidden_within).any(axis=-1)).any():
        period[near] = random.uniform(*k.sinusoid_period, int(near.sum()))
    size, shift = random.uniform(*k.sinusoid_size, each), random.uniform(0, 2 * np.pi, each)
    step = np.arange(k.look_back)[:, None, None]
    return np.asarray((size * np.sin(2 * np.pi * step / period + shift)).sum(axis=-1))
