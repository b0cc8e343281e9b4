"""Explained forecasts with arbitrary but consistent numbers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ibforecast.core.calendar import Clock, Frequency
from ibforecast.core.context import Context
from ibforecast.core.cycles import period
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.explanation import FIELDS, Explanation
from ibforecast.core.standardiser import Standardiser

PATCH_LEN, HORIZON, CYCLE = 4, 3, 6
CHANNELS, COVARIATES = ("alpha", "beta", "gamma"), ("holiday", "plan", "price")
SOME = [[0, 1, 0], [0, 1, 0], [0, 0, 0], [1, 1, 0]]
START = np.datetime64("2020-01-01", "us")


def hourly(steps: int, **changes: Any) -> Clock:
    """Return an hourly time axis from 2020-01-01, a Wednesday."""
    return Clock(START + np.arange(steps) * np.timedelta64(1, "h"), Frequency(3600), **changes)


def as_single(values: np.ndarray, units: Standardiser) -> np.ndarray:
    """Return the nearest numbers in these units that a model can compute, which has single precision."""
    return units.to_units(units.standardise(values).astype(np.float32).astype(np.float64))


def with_next_numbers(explained: ExplainedForecast) -> ExplainedForecast:
    """Return it with each number of the forecast moved to the next larger one that a model can compute."""
    units = explained.units
    larger = np.nextafter(units.standardise(explained.forecast).astype(np.float32), np.float32(np.inf))
    return replace(explained, forecast=units.to_units(larger.astype(np.float64)))


def sample(
    mask: Any = SOME,
    missing: Any = None,
    *,
    cycles: tuple[int, ...] = (CYCLE,),
    past: Sequence[str] = (),
    covariates: int = 0,
    **changes: Any,
) -> ExplainedForecast:
    """Return a valid explained forecast with this mask and these missing tokens (patch x channel), after the changes.

    A change may name a field of `ExplainedForecast` or an array of its explanation.
    """
    mask = np.array(mask, dtype=bool)
    missing = np.zeros_like(mask) if missing is None else np.array(missing, dtype=bool)
    (patches, channels), random = mask.shape, np.random.default_rng(7)
    look_back = patches * PATCH_LEN
    steps = look_back + HORIZON
    history = random.normal(10, 3, size=(look_back, channels))
    history[1::PATCH_LEN][missing] = np.nan
    forecast = random.normal(10, 3, size=(HORIZON, channels))
    forecast[:, channels - len(past) :] = np.nan
    evidence = random.normal(size=(look_back, channels)).astype(np.float32)
    clock = hourly(steps)
    known = random.normal(20, 5, size=(steps, covariates)) if covariates else None
    known_units = (
        Standardiser(random.normal(20, 1, covariates), random.uniform(1, 2, covariates)) if covariates else None
    )
    response = random.normal(size=(cycles[0], covariates, channels)).astype(np.float32)
    explanation = Explanation(
        mask=mask,
        evidence=np.where(mask.repeat(PATCH_LEN, axis=0), evidence, np.float32(0)),
        probability=random.uniform(0.01, 0.99, size=mask.shape).astype(np.float32),
        missing=missing,
        context=Context(
            level=random.normal(size=channels).astype(np.float32),
            scale=random.uniform(0.5, 2, size=channels).astype(np.float32),
            phase=clock.phase(0, steps, period(cycles)),
            profile=random.normal(size=(sum(cycles), channels)).astype(np.float32),
            cycles=cycles,
            known=None if known_units is None else known_units.standardise(known).astype(np.float32),
            response=response if covariates else None,
        ),
    )
    explained = ExplainedForecast(
        explanation=explanation,
        forecast=forecast,
        history=history,
        truth=random.normal(10, 3, size=(HORIZON, channels)),
        channels=CHANNELS[:channels],
        clock=clock,
        units=Standardiser(random.normal(10, 1, channels), random.uniform(1, 2, channels)),
        budget=0.5,
        prior=0.2,
        weights_sha256="ab" * 32,
        past=tuple(past),
        covariates=COVARIATES[:covariates],
        known=known,
        known_units=known_units,
    )
    return changed(explained, **changes)


def changed(explained: ExplainedForecast, **changes: Any) -> ExplainedForecast:
    """Return a copy with some fields, or arrays of the explanation, replaced at once."""
    explanation = changes.pop("explanation", explained.explanation)
    parts: dict[str, dict[str, Any]] = {"explanation": {}, "context": {}}
    rows = {row.name: row.part for row in FIELDS if row.name != "known"} | {"cycles": "context"}
    for name in set(rows) & set(changes):
        parts[rows[name]][name] = changes.pop(name)
    context = replace(explanation.context, **parts["context"])
    return replace(explained, explanation=replace(explanation, context=context, **parts["explanation"]), **changes)


def assert_same_bits(one: ExplainedForecast, other: ExplainedForecast) -> None:
    """Compare two explained forecasts field by field, bit for bit."""
    arrays = [{row.name: array for row, array in each.explanation.arrays()} for each in (one, other)]
    names = ("history", "forecast", "truth", "known")
    pairs = [(getattr(one, name), getattr(other, name)) for name in names]
    pairs += [(arrays[0][name], arrays[1][name]) for name in arrays[0]]
    pairs += [(getattr(one.units, part), getattr(other.units, part)) for part in ("mean", "std")]
    if one.known_units is not None and other.known_units is not None:
        pairs += [(getattr(one.known_units, part), getattr(other.known_units, part)) for part in ("mean", "std")]
    assert arrays[0].keys() == arrays[1].keys()
    assert (one.known_units is None) == (other.known_units is None)
    for mine, theirs in pairs:
        if mine is None or theirs is None:
            assert mine is theirs
        else:
            assert (mine.dtype, mine.shape, mine.tobytes()) == (theirs.dtype, theirs.shape, theirs.tobytes())
    names = ("channels", "past", "covariates", "times", "frequency", "budget", "prior", "weights_sha256", "signature")
    assert [getattr(one, name) for name in names] == [getattr(other, name) for name in names]
    assert one.explanation.context.cycles == other.explanation.context.cycles
    assert (one.clock.zone, one.clock.row, one.clock.by_row) == (other.clock.zone, other.clock.row, other.clock.by_row)
