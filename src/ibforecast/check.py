"""A look at a table before a model is fitted to it: what is in it, what a fit will need, and what to change first."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64

from ibforecast.core.calendar import DAY, Frequency
from ibforecast.core.errors import DataError, IBForecastError
from ibforecast.core.hours import MINUTES_OF_DAY, minutes
from ibforecast.core.limits import SHARE_OF_ZEROS, rests_at_zero
from ibforecast.core.standardiser import Standardiser
from ibforecast.core.words import count_of
from ibforecast.data.axis import Mark, as_text, counted, mark_options
from ibforecast.data.columns import text_of
from ibforecast.data.rhythms import Rhythm, rhythms_of
from ibforecast.data.series import Series
from ibforecast.data.splits import Part, Split
from ibforecast.data.tables import Table, read_with_marks
from ibforecast.data.windows import Windows
from ibforecast.fitting import cycles_of, limits_for, recipe_for
from ibforecast.settings import EVERY, Settings
from ibforecast.zoo.cost import Cost, cost_of
from ibforecast.zoo.recipes import Recipe

LONGEST_ADVISED = 336
"""The longest look-back that is advised, because each step costs time."""

ZONES = ("Europe/Berlin", "Europe/London", "Europe/Athens", "America/New_York")
"""Zones to try if the clock seems to change in a table; in all others it changes at the same local times as in one."""

REPEATED = "--missing-value"
"""The option that the advice may have several times."""

CONSTANT_SHARE, OWNING_SHARE, EMPTY_SHARE = 0.995, 0.5, 0.99
FEW_WINDOWS = 200
SATURATED_SHARE, SATURATED_RUNS, SATURATED_FACTOR = 0.01, 10, 1.5
STUCK_SHARE, STUCK_STEPS, STUCK_FACTOR = 0.1, 24, 10
FEW_EMPTY, FEW_ZEROS, FEW_COUNTED, SMALL_SHARE = 0.01, 0.1, 2.0, 0.1
"""Thresholds of the rule in `_left_out`, which finds counts whose steps are left out when nothing happened."""

NAMED = 4
NO_CYCLE = (1,)
"""The setting for a table without a cycle: every row has the same phase."""

HARMFUL = ("left out", "empty channels", "empty hours", "empty phases", "constant channels", "outliers")
"""Topics of advice on values from which a model learns what is wrong, or nothing; `fit` prints these."""


@dataclass(frozen=True)
class Advice:
    """Something to know about a table, and what to do about it: `options` are those of `fit`, if there are any."""

    topic: str
    finding: str
    remedy: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Findings:
    """What a look at a table shows; shares are fractions of 1, times and memory are rough.

    `unreadable` is the share of tokens that cannot be read because a value in them is missing. `rhythms` are the cycles
    found in the values, `cycle` the one that a fit uses. `windows` are those to train on. `cost` is what a fit needs.
    If the fit would be refused, it is None and `refusal` is the reason.
    """

    rows: int
    channels: tuple[str, ...]
    step: str
    first: str
    last: str
    horizon: int
    look_back: int
    cycle: tuple[int, ...]
    patch_len: int
    missing: int
    gaps: int
    unreadable: float
    rhythms: tuple[Rhythm, ...]
    windows: int
    validation_windows: int
    cost: Cost | None
    refusal: str
    advice: tuple[Advice, ...]

    @property
    def options(self) -> tuple[str, ...]:
        """The options of `fit` that follow the advice: one of each name, the first, but every mark."""
        options = list(dict.fromkeys(option for each in self.advice for option in each.options))
        names = [option if option.startswith(REPEATED) else option.partition(" ")[0] for option in options]
        return tuple(option for place, option in enumerate(options) if names.index(names[place]) == place)

    def __str__(self) -> str:
        values = self.rows * len(self.channels)
        lines = [
            f"{self.rows:,} rows x {count_of(len(self.channels), 'channel')}, "
            f"steps of {self._step()}, {self.first} to {self.last}",
            f"  channels  {_named(self.channels)}",
            f"  gaps      {self.missing:,} of {values:,} values are missing ({self.missing / values:.1%}), "
            f"in {count_of(self.gaps, 'gap')}; {self.unreadable:.1%} of the tokens cannot be read"
            if self.missing
            else "  gaps      none",
            f"  cycles    {', '.join(map(str, self.cycle)) or 'none by the step'}{self._in_values()}",
        ]
        if self.cost is None:
            lines += [f"  a fit     would be refused: {self.refusal}"]
        else:
            lines += [
                f"  windows   {self.windows:,} to train on, {self.validation_windows:,} to select on "
                f"(look-back {self.look_back}, horizon {self.horizon}, patches of {self.patch_len})",
                f"  a fit     {self.cost.words}",
            ]
        for each in self.advice:
            lines += ["", f"{each.topic}: {each.finding}", f"  {each.remedy}"]
        return "\n".join(lines)

    def _step(self) -> str:
        step = self.step
        return step if step.split()[-1].startswith("step") else Frequency.parse(step).words

    def _in_values(self) -> str:
        if not self.rhythms:
            return "; none found in the values"
        cycles = (f"{each.length} in {each.channels} of {count_of(each.examined, 'channel')}" for each in self.rhythms)
        return f"; found in the values: {', '.join(cycles)}"


@dataclass(frozen=True)
class Opened:
    """A table that was read to be checked: its content, what looks like marks, and how to read it if it is uneven.

    `reading` are the settings by which it was read in place of those given, and `advice` says why.
    """

    source: Table
    marks: list[Mark]
    reading: Mapping[str, Any] = field(default_factory=dict)
    advice: tuple[Advice, ...] = ()


def open_table(table: Any, settings: Settings) -> Opened:
    """Read a table; uneven times are read by workdays, by row number or on the even grid, whichever fits best."""
    try:
        return Opened(*read_with_marks(table, settings.layout))
    except DataError as error:
        if settings.irregular != "error" or "even steps" not in error.rule:
            raise
        for zone in ZONES if settings.zone is None and "zone=" in error.remedy else ():
            with suppress(DataError):
                return _reading(
                    *read_with_marks(table, replace(settings, zone=zone).layout),
                    {"zone": zone},
                    f"{error.rule} ({error.got}); by the clock of {zone}, which changes there, all are",
                    f"give the time zone of the table, such as --zone {zone}",
                )
        try:
            source, marks = read_with_marks(table, replace(settings.layout, irregular="fill"))
        except DataError:
            raise error from None
        return _evened(table, settings, source, marks, error)


def _evened(table: Any, settings: Settings, source: Table, marks: list[Mark], error: DataError) -> Opened:
    """Return an uneven table as it is best read, and the advice to read it so; `source` is it on the even grid."""
    series, finding = source.series, f"{error.rule} ({error.got})"
    absent = np.isnan(series.values)
    workdays = settings.freq is None and series.clock.frequency == Frequency(DAY)
    if workdays and np.is_busday(series.clock.wall[~absent.all(axis=1)].astype("datetime64[D]")).all():
        ways: tuple[dict[str, Any], ...] = ({"freq": "B"}, {"freq": "B", "irregular": "fill"})
        holidays = ("", ", and make holidays rows of missing values")
        for reading, more in zip(ways, holidays, strict=True):
            with suppress(DataError):
                evened = read_with_marks(table, replace(settings, **reading).layout)
                options = _reading_options(reading)
                return _reading(
                    *evened,
                    reading,
                    f"{finding}; no row is on a Saturday or Sunday",
                    f"count days from Monday to Friday{more}: {' '.join(options)}",
                )
    cycle = usual_horizon(series)
    if settings.cycle == "auto" and not counts_left_out(series) and (empty := _never_there(series, cycle)):
        reading = {"irregular": "by_row", "cycle": cycle - empty}
        return _reading(
            *read_with_marks(table, replace(settings, **reading).layout),
            reading,
            f"{finding}; {empty} of {cycle} phases of the cycle have no rows, and all others always do",
            f"count the rows, {cycle - empty} to a cycle: {' '.join(_reading_options(reading))}",
        )
    grid = f"{finding}; on the even grid the table has {series.rows:,} rows"
    return _reading(source, marks, {"irregular": "fill"}, grid, "put the rows on the even grid: --irregular fill")


def _reading(source: Table, marks: list[Mark], reading: dict[str, Any], finding: str, remedy: str) -> Opened:
    return Opened(source, marks, reading, (Advice("uneven times", finding, remedy, _reading_options(reading)),))


def _reading_options(reading: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(f"--{name} {value}" for name, value in reading.items())


def _never_there(series: Series, cycle: int) -> int:
    """Return how many phases of a cycle have no row, if all others always have one; otherwise 0."""
    if cycle < 2 or series.rows < 3 * cycle:
        return 0
    absent, phase = np.isnan(series.values).all(axis=1), series.clock.phase(0, series.rows, cycle)
    never = np.array([absent[phase == each].all() for each in range(cycle)])
    return int(never.sum()) if (absent == never[phase]).all() else 0


def counts_left_out(series: Series) -> tuple[str, ...]:
    """Return the channels of counts whose steps seem to be left out when nothing happened; none if there are none.

    That is so if many steps have no value, all values are whole and at least 0, some are small, and few are 0.
    """
    return tuple(
        name
        for name, column in zip(series.channels, series.values.T, strict=True)
        if _left_out(column[~np.isnan(column)], len(column))
    )


def _left_out(seen: Float64[np.ndarray, " value"], steps: int) -> bool:
    gone = steps - len(seen)
    if not len(seen) or gone < FEW_EMPTY * steps or seen.min() < 0 or (seen != np.rint(seen)).any():
        return False
    is_small = seen.min() <= max(FEW_COUNTED, SMALL_SHARE * float(np.median(seen)))
    return bool(is_small and len(np.unique(seen)) > 2 and (seen == 0).sum() <= FEW_ZEROS * gone)


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
        *_about_marks(opened.marks),
        *_about_gaps(settings, series, absent, max(cycle, default=1)),
        *_about_channels(settings, series),
        *_about_runs(series),
        *(() if "cycle" in opened.reading else _about_cycles(settings, rhythms, given)),
        *_about_defaults(settings, declared, series),
        *_about_size(declared, series, rhythms, cycle, starts.get("train", 0)),
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
    advice = (*_about_gaps(settings, series, np.isnan(series.values), cycle), *_about_channels(settings, series))
    return tuple(each for each in advice if each.topic in HARMFUL)


def usual_horizon(series: Series) -> int:
    """Return the horizon for a check if none is given: the cycle of the table's step, or 24 if it has none."""
    try:
        return series.clock.frequency.cycle()
    except IBForecastError:
        return 24


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


def _about_marks(marks: list[Mark]) -> Iterator[Advice]:
    if marks:
        options = mark_options(marks)
        finding = f"{counted(marks)} looks like a mark and would be read as a number"
        yield Advice("missing values", finding, f"if it is one: {' '.join(options)}", options)


def _about_gaps(
    settings: Settings, series: Series, absent: Bool[np.ndarray, "row channel"], cycle: int
) -> Iterator[Advice]:
    """Advise on steps of counts that are left out, on channels that are mostly empty, and on phases without values."""
    shares, is_filled = absent.mean(axis=0), settings.irregular == "fill"
    phase = series.clock.phase(0, series.rows, max(cycle, 1))
    always = _always_empty(absent[:, shares < EMPTY_SHARE], phase, max(cycle, 1))
    at_other_times = absent[~always[phase]] if cycle > 1 and series.rows >= 3 * cycle else absent
    counts = counts_left_out(series)
    if counts and not series.clock.by_row and at_other_times.mean() > FEW_EMPTY:
        yield _about_left_out(series, absent, counts, is_filled)
        return
    if sparse := [name for name, share in zip(series.channels, shares, strict=True) if share > 0.5]:
        worst = f"more than half of the values of {_named(sparse)} are missing"
        yield Advice("empty channels", worst, *_leaving_out(series, sparse))
    if not absent.any() or cycle < 2 or series.rows < 3 * cycle:
        return
    empty = np.flatnonzero(always)
    if not len(empty):
        return
    times = _phase_names(series, [int(np.flatnonzero(phase == each)[0]) for each in empty], cycle)
    finding = (
        f"{len(empty)} of {cycle} phases of the cycle are always empty, in all channels: {times}; "
        f"so {len(empty) / cycle:.0%} of every window can never be read"
    )
    by_row = f"leave these rows out of the table and count the rest: --irregular by_row --cycle {cycle - len(empty)}"
    if is_filled:  # rows are missing at other times, too: counted, they would be at other phases from then on
        by_row = "leave it so: other rows are missing, too, so rows cannot be counted"
    options, remedy = tuple[str, ...](), by_row
    if spans := _empty_times(series, absent[:, shares < EMPTY_SHARE]):
        options = (f"--zero-at {','.join(spans)}",)
        remedy = f"if nothing happened then, read them as 0: {options[0]}; if nothing was measured, {by_row}"
    is_count = bool(counts) and len(counts) == len(series.channels) and is_filled
    yield Advice(
        "empty hours" if series.clock.frequency.seconds < 86_400 else "empty phases",
        finding,
        remedy,
        options if is_count else (),
    )


def _about_left_out(
    series: Series, absent: Bool[np.ndarray, "row channel"], counts: tuple[str, ...], is_filled: bool
) -> Advice:
    """Ask whether a step without a row, or without a value, means that nothing happened."""
    what = "row" if absent.all(axis=1).sum() >= absent.any(axis=1).sum() / 2 else "value"
    gone = max(int(absent[:, series.channels.index(name)].sum()) for name in counts)
    finding = (
        f"only whole numbers, none below 0, in {_named(counts)}, and no {what} in {gone:,} of {series.rows:,} steps: "
        f"no {what} = 0?"
    )
    unknown = "if not, these steps stay unknown"
    if not (span := _whole_day(series)):
        return Advice("left out", finding, f"if nothing happened then, write them into the table as 0; {unknown}")
    options = (f"--zero-at {span}", *(("--irregular fill",) if is_filled else ()))
    remedy = f"if nothing happened then, read them as 0: {' '.join(options)}"
    if len(counts) < len(series.channels):  # an empty cell of a temperature is no 0
        others = f"the other channels must be left out: {_listing('--channels', list(counts))}"
        return Advice("left out", finding, f"{remedy}, for which {others}; {unknown}", options[1:])
    return Advice("left out", finding, f"{remedy}; {unknown}, so leave out --zero-at", options)


def _whole_day(series: Series) -> str:
    """Return all times of the day of a series as a span of `zero_at`; empty if steps do not divide a day."""
    steps, length = series.clock.day, MINUTES_OF_DAY // series.clock.day
    minute = minutes(series.clock.wall)
    if steps < 2 or not length or (minute % length != minute[0] % length).any():
        return ""
    first = int(minute[0]) % length
    last = first + (steps - 1) * length
    return f"{first // 60:02}:{first % 60:02}..{last // 60:02}:{last % 60:02}"


def _always_empty(
    absent: Bool[np.ndarray, "row channel"], phase: Int64[np.ndarray, " row"], cycle: int
) -> Bool[np.ndarray, " cycle"]:
    """Return the phases at which no channel has a value, except in a few rows; none if there is no channel."""
    rows = np.maximum(np.bincount(phase, minlength=cycle), 1)
    shares = [np.bincount(phase, weights=column, minlength=cycle) / rows for column in absent.T]
    return np.all([share >= EMPTY_SHARE for share in shares], axis=0) if shares else np.zeros(cycle, dtype=bool)


def _empty_times(series: Series, absent: Bool[np.ndarray, "row channel"]) -> tuple[str, ...]:
    """Return the times of the day that are always empty, as `zero_at` has them; none if steps do not divide a day."""
    steps, minute = series.clock.day, minutes(series.clock.wall)
    length = MINUTES_OF_DAY // steps
    if steps < 2 or not length or (minute % length != minute[0] % length).any():
        return ()
    empty = _always_empty(absent, minute // length, steps)
    times = [f"{each // 60:02}:{each % 60:02}" for each in range(int(minute[0]) % length, MINUTES_OF_DAY, length)]
    # The day begins after a time with values, so that no span crosses its end.
    first = int(np.flatnonzero(~empty)[0])
    spans, order = list[list[str]](), [(first + step) % steps for step in range(steps)]
    for before, step in pairwise(order):
        if empty[step] and not empty[before]:
            spans.append([])
        if empty[step]:
            spans[-1].append(times[step])
    return tuple(span[0] if len(span) == 1 else f"{span[0]}..{span[-1]}" for span in spans)


def _phase_names(series: Series, places: list[int], cycle: int) -> str:
    wall = series.clock.wall[places]
    whole_day = cycle * series.clock.frequency.seconds == 86_400
    names = sorted(text_of(moment)[-5:] for moment in wall) if whole_day else [text_of(moment) for moment in wall]
    return _named(names, 12)


def _about_channels(settings: Settings, series: Series) -> Iterator[Advice]:
    """Advise on channels by their values: constant ones, flags of 0 and 1, counts, and values that dominate the scale.

    A channel that is not forecast gets no advice on its forecasts, and one that has limits gets none on limits.
    """
    free = set() if EVERY in settings.ranges else set(series.targets) - set(settings.ranges)
    constant, flags, counts, resting, positive, saturated, owned = [], [], [], [], [], [], []
    for place, name in enumerate(series.channels):
        seen = series.values[~np.isnan(series.values[:, place]), place]
        if not len(seen):
            continue
        different, often = np.unique(seen, return_counts=True)
        if often.max() >= CONSTANT_SHARE * len(seen):
            constant.append(name)
        elif set(different.tolist()) <= {0.0, 1.0}:
            flags += [name] * (name in series.targets)
        elif name not in free:
            pass
        elif rests_at_zero(seen):
            resting.append(name)
        elif different[0] >= 0 and (different == np.rint(different)).all():
            counts.append(name)
        elif different[0] == 0 and often[0] >= SHARE_OF_ZEROS * len(seen):
            positive.append(name)
        if name in free and len(different) > 2 and name not in constant and (top := _saturation(series, place)):
            saturated.append((name, "0" if name in (*counts, *resting, *positive) else "", *top))
        # A channel that mostly rests at one value, like rain, has such values by nature.
        if often.max() < len(seen) / 2 and (owner := _owner(series, place, seen)):
            owned.append(owner)
    if constant:
        finding = f"one value in at least {CONSTANT_SHARE:.1%} of the rows of {_named(constant)}"
        yield Advice("constant channels", finding, *_leaving_out(series, constant))
    if flags and len(flags) < len(series.channels):
        option = _listing("--future", flags)
        finding = f"only 0 and 1, like a holiday, in {_named(flags)}; it would be forecast"
        limit = f"--limit {shlex.quote(f'{flags[0]}=0..1')}"
        remedy = f"if it is known ahead: {option}; if not, and only to be read: --past; if it must be forecast: {limit}"
        yield Advice("flags", finding, remedy if flags[0] in free else remedy.rpartition("; ")[0])
    if resting:
        finding = f"counts, often 0, in {_named(resting)}; no forecast will be below 0"
        yield Advice(
            "counts", finding, f"if values below 0 are possible: --limit {shlex.quote(f'{resting[0]}=..')} allows them"
        )
    if counts:
        finding = f"only whole numbers from 0 on in {_named(counts)}; forecasts may be fractions or negative"
        remedy = (
            f"{_limit_option(counts[:1])} keeps them from falling below 0; {_listing('--whole', counts[:1])} rounds "
            "them, but a mean "
        )
        yield Advice("counts", finding, f"{remedy}of 0.4 a step is a better forecast than 0")
    if positive:
        finding = f"never below 0, and often 0, in {_named(positive)}; forecasts may be negative"
        yield Advice("limits", finding, f"if values below 0 are impossible: {_limit_option(positive)}")
    for name, low, highest, share in saturated[:NAMED]:
        finding = f"{name} is at its largest value, {highest:g}, in {share:.1%} of its rows; forecasts may be above it"
        remedy = f"if higher values are impossible: --limit {shlex.quote(f'{name}={low}..{as_text(highest)}')}"
        yield Advice("limits", finding, remedy)
    for finding in owned[:NAMED]:
        yield Advice("outliers", finding, "if it is wrong, empty the cell; if the number always is, --missing-value")


def _saturation(series: Series, place: int) -> tuple[float, float] | None:
    """Return the largest value of a channel and its share, if values seem to end there; otherwise None.

    They seem to if the largest value is in one of a hundred rows, in ten separate runs, and half as often again as the
    next lower one. In a distribution that just thins out, it is less frequent than the next lower one.
    """
    column = series.values[:, place]
    seen = column[~np.isnan(column)]
    different, often = np.unique(seen, return_counts=True)
    at_top = column == different[-1]
    runs = int((at_top & ~np.concatenate([[False], at_top[:-1]])).sum())
    share = float(often[-1] / len(seen))
    if share < SATURATED_SHARE or runs < SATURATED_RUNS or often[-1] < SATURATED_FACTOR * often[-2]:
        return None
    return float(different[-1]), share


def _limit_option(names: list[str]) -> str:
    return " ".join(f"--limit {shlex.quote(f'{name}=0..')}" for name in names[:NAMED])


def _about_runs(series: Series) -> Iterator[Advice]:
    """Advise on long runs of one value, as of a sensor that is stuck.

    A run is named if it is longer than a week of steps (but at least 24) or a tenth of the rows, and also longer than
    ten times the run that contains the median row of the channel. Zeros of counts that are often 0 are left out, and so
    are channels that are nearly constant.
    """
    week = max(STUCK_STEPS, 7 * 86_400 // (series.clock.frequency.seconds or 86_400))
    shortest = min(week, STUCK_SHARE * series.rows)
    stuck = []
    for name, column in zip(series.channels, series.values.T, strict=True):
        starts = np.flatnonzero(np.concatenate([[True], column[1:] != column[:-1]]))  # a missing value is a run
        lengths, values = np.diff(starts, append=len(column)), column[starts]
        seen = column[~np.isnan(column)]
        if not len(seen) or np.unique(seen, return_counts=True)[1].max() >= CONSTANT_SHARE * len(seen):
            continue
        usual = np.median(np.repeat(lengths, lengths)[~np.isnan(column)])
        odd = (lengths > max(shortest, STUCK_FACTOR * usual)) & ~np.isnan(values)
        if rests_at_zero(seen):
            odd &= values != 0
        if odd.any():
            longest = int(np.argmax(np.where(odd, lengths, 0)))
            first, length = int(starts[longest]), int(lengths[longest])
            since, until = (series.clock.labels(row, 1)[0] for row in (first, first + length - 1))
            others = int(odd.sum()) - 1
            more = f", and {others} more such {'run' if others == 1 else 'runs'}" if others else ""
            stuck.append(f"{name} is {values[longest]:g} in {length:,} rows in a row, {since} to {until}{more}")
    for finding in stuck[:NAMED]:
        yield Advice(
            "stuck values", finding, "if a sensor was stuck or off, empty these cells: they are learned as true"
        )


def _owner(series: Series, place: int, seen: Float64[np.ndarray, " value"]) -> str:
    """Say which values dominate the scale: at most one in a thousand that make up more than half of the variance."""
    few = max(1, len(seen) // 1000)
    apart = np.abs(seen - np.median(seen))
    squares = np.sort((apart / (apart.max() or 1.0)) ** 2)  # of shares, because squares of huge values overflow
    if len(seen) < 30 or squares.sum() == 0 or squares[-few:].sum() <= OWNING_SHARE * squares.sum():
        return ""
    column = series.values[:, place]
    row = int(np.nanargmax(np.abs(column - np.median(seen))))
    share = squares[-few:].sum() / squares.sum()
    values = "1 value makes" if few == 1 else f"{few} values make"
    return (
        f"{values} up {share:.0%} of the variance of {series.channels[place]!r}, and so its scale: "
        f"{column[row]:g} at {series.clock.labels(row, 1)[0]}, where the median is {np.median(seen):g}"
    )


def _leaving_out(series: Series, names: list[str]) -> tuple[str, tuple[str, ...]]:
    """Return the remedy for channels to leave out, and its option."""
    rest = [name for name in series.targets if name not in names]
    if not rest:
        return "give a table with other channels", ()
    option = _listing("--channels", rest)
    return f"leave it out: {option}", (option,)


def _about_cycles(settings: Settings, rhythms: tuple[Rhythm, ...], given: tuple[int, ...]) -> Iterator[Advice]:
    lengths = tuple(each.length for each in rhythms)
    further = tuple(length for length in lengths if length not in given)
    if not lengths and not given:
        option = f"--cycle {NO_CYCLE[0]}"
        remedy = f"learn none: {option}; if the values have one, give its number of steps instead"
        yield Advice("cycles", "the step has no natural cycle, and none was found", remedy, (option,))
    if not further:
        return
    option = f"--cycle {','.join(map(str, lengths if settings.cycle == 'auto' else sorted({*given, *lengths})))}"
    scores = ", ".join(
        f"{each.length} ({each.channels} of {count_of(each.examined, 'channel')}, autocorrelation {each.score:.2f})"
        for each in rhythms
        if each.length in further
    )
    yield Advice("cycles", f"the values repeat after {scores}", f"learn it: {option}", (option,))


def _about_defaults(settings: Settings, sized: Settings, series: Series) -> Iterator[Advice]:
    """Advise on a table that is too short for the default look-back or split."""
    if (settings.look_back, settings.split) != (sized.look_back, sized.split):
        ends = Split.by_fractions(sized.split, series.rows)
        finding = (
            f"{series.rows} rows are too few for the default look-back or split: a fit takes a look-back of "
            f"{sized.look_back}, trains on {ends.train_end} rows and selects on {ends.validation_end - ends.train_end}"
        )
        yield Advice("short table", finding, "expect little of a fit; to choose otherwise: --look-back, --split")


def _about_size(
    settings: Settings, series: Series, rhythms: tuple[Rhythm, ...], cycle: tuple[int, ...], windows: int
) -> Iterator[Advice]:
    """Advise on the look-back: as long as the longest cycle if the table allows it, shorter if the table is short."""
    longest = max((each.length for each in rhythms if each.length <= LONGEST_ADVISED), default=0)
    rows = Split.by_fractions(settings.split, series.rows).train_end
    if settings.look_back < longest and rows >= 5 * (longest + settings.horizon):
        option = f"--look-back {longest}"
        finding = f"a look-back of {settings.look_back} does not span the cycle of {longest}"
        factor = (longest + settings.horizon) / (settings.look_back + settings.horizon)
        yield Advice("look-back", finding, f"span it, in about {factor:.1f} times the time: {option}", (option,))
    elif windows < FEW_WINDOWS:
        first = min(cycle, default=1)
        shorter = max(ceil((rows - settings.horizon) / 2 / first) * first, first)
        finding = f"the table has only {count_of(windows, 'window')} to train on"
        if shorter < settings.look_back and shorter + settings.horizon <= rows:
            option = f"--look-back {shorter}"
            yield Advice("look-back", finding, f"shorten the look-back: {option}", (option,))
        else:
            yield Advice("rows", finding, "add rows, or shorten --look-back or --horizon; expect little of a fit")


def _unreadable(absent: Bool[np.ndarray, "row channel"], patch_len: int) -> float:
    """Return the share of tokens with a missing step, over all places at which a patch may begin."""
    counts = np.concatenate([np.zeros((1, absent.shape[1]), dtype=np.int64), absent.cumsum(axis=0)])
    return float((counts[patch_len:] > counts[:-patch_len]).mean()) if len(absent) >= patch_len else 0.0


def _listing(option: str, names: list[str]) -> str:
    return f"{option} {shlex.quote(','.join(names))}"


def _named(names: Sequence[str], most: int = NAMED) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
