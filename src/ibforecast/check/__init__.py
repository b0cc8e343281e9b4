"""A look at a table before a model is fitted to it: what is in it, what a fit will need, and what to change first."""

from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Bool

from ibforecast.check.advice import REPEATED, Advice
from ibforecast.check.findings import Findings
from ibforecast.check.gaps import about_gaps, about_marks
from ibforecast.check.lengths import NO_CYCLE, about_cycles, about_defaults, about_size, usual_horizon
from ibforecast.check.opening import Opened, open_table
from ibforecast.check.values import about_channels, about_runs
from ibforecast.core.errors import DataError, IBForecastError
from ibforecast.core.standardiser import Standardiser
from ibforecast.data.rhythms import rhythms_of
from ibforecast.data.series import Series
from ibforecast.data.splits import Part, Split
from ibforecast.data.windows import Windows
from ibforecast.fitting import cycles_of, limits_for, recipe_for
from ibforecast.settings import Settings
from ibforecast.zoo.cost import cost_of
from ibforecast.zoo.recipes import Recipe

__all__ = ["REPEATED", "Advice", "Findings", "Opened", "check", "harmful", "open_table", "usual_horizon"]

HARMFUL = ("left out", "empty channels", "empty hours", "empty phases", "constant channels", "outliers")
"""Topics of advice on values from which a model learns what is wrong, or nothing; `fit` prints these."""


def check(table: Any, settings: Settings) -> Findings:
    """Look at a table: a path, or a pandas, polars or pyarrow table. Nothing is trained.

    A table whose times are uneven is read as the advice says. Raises DataError if the table cannot be read, and
    UsageError for settings that no table can be fitted with, as `fit` does.
    """
    opened = table if isinstance(table, Opened) else open_table(table, settings)
    settings, series = replace(settings, **opened.reading), opened.source.series
    declared = settings.sized(series)
    rhythms = rhythms_of(series.values, series.clock.frequency)
    given = _given_cycle(settings, series)
    cycle = given or tuple(each.length for each in rhythms[:1])
    declared = replace(declared, cycle=cycle or NO_CYCLE)
    recipe, starts, refusal = _plan(declared, series)
    patch_len = recipe.config.patch_len if recipe else declared.patch_len or 1
    absent = np.isnan(series.values)
    advice = (
        *opened.advice,
        *about_marks(opened.marks),
        *about_gaps(settings, series, absent, max(cycle, default=1)),
        *about_channels(settings, series),
        *about_runs(series),
        *(() if "cycle" in opened.reading else about_cycles(settings, rhythms, given)),
        *about_defaults(settings, declared, series),
        *about_size(declared, series, rhythms, cycle, starts.get("train", 0)),
    )
    return Findings(
        rows=series.rows,
        channels=series.channels,
        step=series.clock.step,
        first=series.clock.labels(0, 1)[0],
        last=series.clock.labels(series.rows - 1, 1)[0],
        horizon=settings.horizon,
        look_back=declared.look_back,
        cycle=cycle,
        patch_len=patch_len,
        missing=int(absent.sum()),
        gaps=int((absent & ~np.roll(absent, 1, axis=0)).sum() + (absent[0] & absent[-1]).sum()),
        unreadable=_unreadable(absent, patch_len),
        rhythms=rhythms,
        windows=starts.get("train", 0),
        validation_windows=starts.get("validation", 0),
        cost=cost_of(recipe, series.rows, starts["train"], starts["validation"]) if recipe and not refusal else None,
        refusal=refusal,
        advice=advice,
    )


def harmful(settings: Settings, series: Series) -> tuple[Advice, ...]:
    """Return the advice on the values of a table that harm a fit."""
    cycle = usual_horizon(series) if settings.cycle == "auto" else max(_given_cycle(settings, series))
    advice = (*about_gaps(settings, series, np.isnan(series.values), cycle), *about_channels(settings, series))
    return tuple(each for each in advice if each.topic in HARMFUL)


def _given_cycle(settings: Settings, series: Series) -> tuple[int, ...]:
    """Return the cycles that a fit would use: those that are set, or the natural one of the step, if any."""
    try:
        return cycles_of(settings, series)
    except IBForecastError:
        return ()


def _plan(settings: Settings, series: Series) -> tuple[Recipe | None, dict[Part, int], str]:
    """Return the recipe of a fit, the number of windows of each part, and why it would be refused; empty if not.

    Raises UsageError for settings that are wrong for any table. A missing cycle is not wrong.
    """
    recipe, starts = None, dict[Part, int]()
    split = Split.by_fractions(settings.split, series.rows)
    limits_for(settings, series, split)
    try:
        cycles_of(settings, series)
    except IBForecastError as error:
        recipe_for(replace(settings, cycle=1), series)  # raises if another setting is wrong
        return None, starts, str(error)
    recipe = recipe_for(settings, series)
    try:
        sizes = (settings.look_back, settings.horizon)
        standardiser = Standardiser.of(series.values[: split.train_end], series.channels)
        windows = Windows.of(series, standardiser, recipe.config.period, range(0), *sizes)
        parts: tuple[Part, Part] = ("train", "validation")
        for part in parts:
            starts[part] = len(windows.at(split.starts(part, *sizes)).usable())
            if not starts[part]:
                raise DataError(
                    f"the {part} part must contain a window with a value of every channel in look-back and target",
                    "none",
                    "leave out the emptiest channels (fit --channels)",
                )
    except IBForecastError as error:
        return recipe, starts, str(error)
    return recipe, starts, ""


def _unreadable(absent: Bool[np.ndarray, "row channel"], patch_len: int) -> float:
    """Return the share of tokens with a missing step, over all places at which a patch may begin."""
    counts = np.concatenate([np.zeros((1, absent.shape[1]), dtype=np.int64), absent.cumsum(axis=0)])
    return float((counts[patch_len:] > counts[:-patch_len]).mean()) if len(absent) >= patch_len else 0.0
