"""Synthetic explained forecasts to draw, made without a model."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from ibforecast.core.calendar import Clock, Frequency
from ibforecast.core.context import Context
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.explanation import Explanation
from ibforecast.core.host import Host
from ibforecast.core.receipt import Amounts
from ibforecast.core.standardiser import Standardiser


def _synthetic(
    channels: int = 7,
    *,
    names: tuple[str, ...] | None = None,
    look_back: int = 96,
    horizon: int = 96,
    patch_len: int = 8,
    cycle: int = 24,
    with_truth: bool = True,
    with_missing: bool = True,
    seed: int = 0,
) -> ExplainedForecast:
    """Return an explained forecast of seasonal channels with a few bumps, at which the open tokens are."""
    random = np.random.default_rng(seed)
    names = names or tuple(f"channel {index}" for index in range(channels))
    channels, steps, patches = len(names), look_back + horizon, look_back // patch_len
    start = np.datetime64("2018-06-24T05:00", "us")
    clock = Clock(start + np.arange(steps) * np.timedelta64(1, "h"), Frequency(3600))
    phase = clock.phase(0, steps, cycle)
    angle = 2 * np.pi * np.arange(cycle)[:, None] / cycle
    strength = random.uniform(0.1, 1.4, channels)
    shift = random.uniform(0, 2 * np.pi, channels)
    profile = strength * (np.sin(angle + shift) + 0.3 * np.sin(2 * angle + 2 * shift))
    level, scale = random.normal(0, 0.5, channels), random.uniform(0.4, 1.2, channels)
    mean, std = 10.0 ** random.integers(-2, 5, channels), 10.0 ** random.integers(-3, 4, channels)
    mask = random.random((patches, channels)) < 0.12
    probability = np.where(mask, random.uniform(0.5, 1, mask.shape), random.uniform(0, 0.5, mask.shape) ** 2)
    missing = ~mask & (random.random(mask.shape) < 0.05) if with_missing else np.zeros_like(mask)
    bump = np.repeat(mask * random.normal(0, 1.6, mask.shape), patch_len, axis=0)
    wander = np.cumsum(random.normal(0, 0.12, (steps, channels)), axis=0) * 0.4
    deviation = random.normal(0, 0.12, (steps, channels)) + wander
    deviation[:look_back] += bump
    seasonal = profile[phase]
    values = mean + std * (level + scale * (seasonal + deviation))
    guess = mean + std * (level + scale * (seasonal + 0.8 * wander))
    history = values[:look_back].copy()
    history[np.repeat(missing, patch_len, axis=0)] = np.nan
    context = Context(
        level=level.astype(np.float32),
        scale=scale.astype(np.float32),
        phase=phase,
        profile=profile.astype(np.float32),
    )
    return ExplainedForecast(
        explanation=Explanation(
            mask=mask,
            evidence=(np.repeat(mask, patch_len, axis=0) * deviation[:look_back]).astype(np.float32),
            probability=probability.astype(np.float32),
            missing=missing,
            context=context,
        ),
        forecast=guess[look_back:],
        history=history,
        truth=values[look_back:] if with_truth else None,
        channels=names,
        clock=clock,
        units=Standardiser(mean, std),
        budget=0.15,
        prior=0.2,
        weights_sha256="0" * 64,
    )


def _with_covariates() -> ExplainedForecast:
    """Return one with two cycles, two covariates, a channel that is not forecast, and gaps."""
    explained = _synthetic(names=("load", "heat", "wind"), seed=2)
    random, steps = np.random.default_rng(1), len(explained.times)
    holiday, plan = np.arange(steps) % 48 > 30, 20 + 5 * np.sin(np.arange(steps) / 9)
    known, units = np.stack([holiday, plan], axis=1), Standardiser(np.array([0.0, 20.0]), np.array([1.0, 5.0]))
    week = 0.4 * np.sin(2 * np.pi * np.arange(168)[:, None] / 168 + np.arange(3))
    forecast = explained.forecast.copy()
    forecast[:, 2] = np.nan
    context = replace(
        explained.context,
        phase=explained.clock.phase(0, steps, 168),
        profile=np.concatenate([explained.profile, week]).astype(np.float32),
        cycles=(24, 168),
        known=units.standardise(known).astype(np.float32),
        response=random.normal(0, 0.3, (24, 2, 3)).astype(np.float32),
    )
    return replace(
        explained,
        explanation=replace(explained.explanation, context=context),
        covariates=("holiday", "plan_of_the_network_operator"),
        known=known,
        known_units=units,
        past=("wind",),
        forecast=forecast,
    )


class Bookkeeper(Host):
    """A host that can only itemise: random amounts of each open token, and the rest of the forecast as the calendar."""

    def amounts(self, explained: ExplainedForecast, columns: Sequence[int]) -> list[Amounts]:
        return [self._of(explained, column) for column in columns]

    def _of(self, explained: ExplainedForecast, column: int) -> Amounts:
        random, std = np.random.default_rng(column), explained.units.std[column]
        read = std * random.normal(0, 0.2, (explained.open_count, explained.horizon)) * (column + 1)
        effects = explained.effects
        known = np.zeros((0, explained.horizon)) if effects is None else effects[explained.look_back :, :, column].T
        unread = None if explained.sealed else std * random.normal(0, 0.1, explained.horizon)
        others = read.sum(axis=0) + known.sum(axis=0) + (0.0 if unread is None else unread)
        return Amounts(explained.forecast[:, column] - others, read, known, unread)


def _itemisable(explained: ExplainedForecast, *, sealed: bool = True) -> ExplainedForecast:
    return replace(explained, host=Bookkeeper(), sealed=sealed)


@pytest.fixture(scope="session")
def itemisable() -> Callable[..., ExplainedForecast]:
    """Return the function that gives an explained forecast a host that computes receipts."""
    return _itemisable


@pytest.fixture(scope="session")
def synthetic() -> Callable[..., ExplainedForecast]:
    """Return the function that makes an explained forecast of seasonal channels."""
    return _synthetic


@pytest.fixture(scope="session")
def with_covariates() -> ExplainedForecast:
    """An explained forecast with every optional part."""
    return _with_covariates()
