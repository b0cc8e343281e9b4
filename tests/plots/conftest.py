"""Accounts to be drawn, made up without a model."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest
from ibforecast.core.account import Account, Known


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
) -> Account:
    """An account of seasonal channels with a bump here and there, which is what the open tokens point at."""
    random = np.random.default_rng(seed)
    names = names or tuple(f"channel {index}" for index in range(channels))
    channels, steps, patches = len(names), look_back + horizon, look_back // patch_len
    phase = np.arange(steps, dtype=np.int64) + 5
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
    seasonal = profile[phase % cycle]
    values = mean + std * (level + scale * (seasonal + deviation))
    guess = mean + std * (level + scale * (seasonal + 0.8 * wander))
    history = values[:look_back].copy()
    history[np.repeat(missing, patch_len, axis=0)] = np.nan
    start = datetime(2018, 6, 24, 5)
    return Account(
        weights_sha256="0" * 64,
        computed_with={"torch": "2"},
        budget=0.15,
        patch_len=patch_len,
        frequency="1h",
        channels=names,
        times=tuple(f"{start + timedelta(hours=step):%Y-%m-%d %H:%M:%S}" for step in range(steps)),
        history=history,
        forecast=guess[look_back:],
        truth=values[look_back:] if with_truth else None,
        mean=mean,
        std=std,
        level=level.astype(np.float32),
        scale=scale.astype(np.float32),
        phase=phase,
        profile=profile.astype(np.float32),
        mask=mask,
        probability=probability.astype(np.float32),
        missing=missing,
        evidence=(np.repeat(mask, patch_len, axis=0) * deviation[:look_back]).astype(np.float32),
    )


def _with_covariates() -> Account:
    """Two cycles, two covariates known ahead, a channel that is not forecast, and gaps."""
    account = _synthetic(names=("load", "heat", "wind"), seed=2)
    random, steps = np.random.default_rng(1), len(account.times)
    known = Known(
        names=("holiday", "plan_of_the_network_operator"),
        values=np.stack([np.arange(steps) % 48 > 30, 20 + 5 * np.sin(np.arange(steps) / 9)], axis=1).astype(np.float64),
        usual=np.array([0.0, 20.0]),
        std=np.array([1.0, 5.0]),
        response=random.normal(0, 0.3, (24, 2, 3)).astype(np.float32),
    )
    week = 0.4 * np.sin(2 * np.pi * np.arange(168)[:, None] / 168 + np.arange(3))
    forecast = account.forecast.copy()
    forecast[:, 2] = np.nan
    return replace(
        account,
        known=known,
        profile=np.concatenate([account.profile, week]).astype(np.float32),
        cycles=(24, 168),
        past=("wind",),
        forecast=forecast,
    )


@pytest.fixture(scope="session")
def synthetic_account() -> Callable[..., Account]:
    """Return the function that makes an account of seasonal channels."""
    return _synthetic


@pytest.fixture(scope="session")
def account_with_covariates() -> Account:
    """Return an account with everything an account may have."""
    return _with_covariates()
