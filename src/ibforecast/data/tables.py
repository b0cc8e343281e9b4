"""Tables as input and output: wide or long, from a file or from pandas, polars and pyarrow."""

import re
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Float64, Shaped

from ibforecast.core.calendar import DAY
from ibforecast.core.errors import DataError, UsageError, hint
from ibforecast.core.hours import filled
from ibforecast.core.zones import to_wall
from ibforecast.data.axis import Axis, Mark, marks_in, warn_of_marks
from ibforecast.data.columns import (
    NAMED_AT_MOST,
    NUMBER,
    PIECE,
    as_moments,
    as_numbers,
    cells_of,
    check_offsets,
    describe_rows,
    parse_times,
)
from ibforecast.data.dates import SINCE_1970, WRITTEN, read_times
from ibforecast.data.layout import Layout, Shape
from ibforecast.data.limits import check_cells, check_columns
from ibforecast.data.parts import joined, named_in
from ibforecast.data.repeats import refuse_repeats
from ibforecast.data.roles import by_role, known_at, with_ahead
from ibforecast.data.series import Series
from ibforecast.data.sources import Kind, is_time, load, to_native, write
from ibforecast.data.untimed import TIME_NAMES, is_number, listed, untimed
from ibforecast.data.wordy import refuse_wordy

__all__ = ["Layout", "Table", "read", "write"]


@dataclass(frozen=True)
class Table:
    """A table that was read: its numbers, its layout, and the kind and types of tables to return."""

    series: Series
    layout: Layout
    kind: Kind
    time_type: pa.DataType | None = None
    id_type: pa.DataType | None = None
    indexed: bool = False
    """Whether the times were the index of a pandas table, and so are in forecasts."""

    joined: bool = False
    """Whether the times are in several columns; forecasts have them in one."""

    @property
    def time_name(self) -> str:
        """Name of the time column of a forecast."""
        return "time" if self.joined or self.layout.time is None else self.layout.time

    def build(self, columns: Mapping[str, Any]) -> Any:
        """Return a table of the user's kind; moments get the type and zone of the time column."""
        return to_native(pa.table({name: self._column(name, column) for name, column in columns.items()}), self.kind)

    def build_forecast(self, columns: Mapping[str, Any]) -> Any:
        """Return a table as `build` does, with its times as the index if those of the user's table are."""
        table = self.build(columns)
        return table.set_index(self.time_name) if self.indexed and self.layout.shape == "wide" else table

    def forecast(self, first_row: int, values: Float64[np.ndarray, "horizon channel"], name: str = "IBForecast") -> Any:
        """Return a forecast that begins at `first_row` in the layout of the table: wide, or long with a column `name`.

        Channels that are only read are left out.
        """
        channels, time = self.series.targets, self.time_name
        times, values = self.series.clock.times(first_row, len(values)), values[:, : len(channels)]
        if self.layout.shape != "long":
            return self.build_forecast({time: times} | dict(zip(channels, values.T, strict=True)))
        ids = [channel for channel in channels for _ in times]
        return self.build({self.layout.id: ids, time: np.tile(times, len(channels)), name: values.T.ravel()})

    def with_future(self, source: Any) -> "Table":
        """Return the table with the covariates of another, from the step after its last row on.

        Only the time column and the covariates of the other table are read; rows up to the last one here are skipped.
        """
        return replace(self, series=with_ahead(self.series, *self._covariates(source), self.layout.irregular == "fill"))

    def known_at(self, source: Any, steps: int) -> Float64[np.ndarray, "steps covariate"]:
        """Return the covariates of another table, which may have more rows, at `steps` times from the first row on."""
        return known_at(self.series, *self._covariates(source), steps)

    def _covariates(self, source: Any) -> tuple[Shaped[np.ndarray, " row"], Float64[np.ndarray, "row covariate"]]:
        """Return the times and the covariates of another table."""
        covariates = self.series.covariates
        if not covariates:
            raise UsageError(
                "only a model with future covariates takes a future table", "a model without them", "leave it out"
            )
        arrow, _ = load(source)
        own = replace(self.layout, channels=covariates, past=(), future=())
        arrow, layout, time, times = _find_time(arrow, own)
        axis = _axis(arrow, replace(layout, zone=self.series.clock.zone), time, times)
        axis, columns, values = (_from_long if layout.shape == "long" else _from_wide)(arrow, layout, axis)
        axis.check_order()
        values[np.isin(values, layout.missing_values)] = np.nan
        assert columns == covariates
        return axis.moments, values

    def _column(self, name: str, column: Any) -> pa.Array:
        array, zone = pa.array(column), self.series.clock.zone
        if name == self.layout.id and self.id_type is not None:
            return array.cast(self.id_type)
        if not pa.types.is_timestamp(array.type):
            return array
        kind = self.time_type or pa.timestamp("us", zone)
        if zone is None:
            return array.cast(kind)
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            return array.cast(pa.timestamp("us", zone)).cast(pa.timestamp(kind.unit, zone))
        return pa.array(to_wall(column, zone)).cast(kind)


def read(source: Any, layout: Layout | None = None) -> Table:
    """Read a path or a table; the error for an invalid table names the rows.

    Warn of numbers that look like marks for missing values and are not declared as such. A `Table` was read already.
    """
    if isinstance(source, Table):
        return source
    table, marks = read_with_marks(source, layout)
    warn_of_marks(marks)
    return table


def read_with_marks(source: Any, layout: Layout | None = None) -> tuple[Table, list[Mark]]:
    """Read a table like `read`; return the numbers that look like marks instead of warning of them."""
    _check_file(source)
    arrow, kind = load(source)
    if not arrow.num_rows or not arrow.num_columns:
        raise DataError("a table must have rows and columns", f"{arrow.num_rows} x {arrow.num_columns}", "fill it")
    is_joined = len(named_in((layout or Layout()).time, arrow.column_names)) > 1
    arrow, layout, time, times = _find_time(arrow, layout or Layout())
    if layout.zone is None and layout.dates not in SINCE_1970:
        check_offsets(arrow.schema.field(time), arrow[time], times)
    axis = _axis(arrow, layout, time, times)
    long = layout.shape == "long"
    if layout.irregular != "by_row":
        refuse_repeats(arrow, time, axis.moments, layout.id if long else None)
    if not long:
        own = set(layout.channels or arrow.column_names) - {time, *layout.past, *layout.future}
        refuse_wordy(arrow, time, [name for name in arrow.column_names if name in own], axis.moments)
    axis, columns, values = (_from_long if long else _from_wide)(arrow, layout, axis)
    values[np.isin(values, layout.missing_values)] = np.nan
    series = axis.series(values, columns, layout.frequency, layout.irregular)
    series = by_role(series, layout.past, layout.future, layout.irregular == "fill")
    series = replace(series, clock=replace(series.clock, numbered=layout.numbered))
    if layout.zero_at:
        step = series.clock.frequency
        if layout.numbered or not 0 < step.seconds < DAY:
            raise UsageError("zero_at needs steps that are shorter than a day", series.clock.step, "leave it out")
        series = replace(series, values=filled(series.values, series.clock.wall, layout.zero_at))
    resolved = replace(layout, channels=series.channels, frequency=str(series.clock.frequency), zone=series.clock.zone)
    time_type, id_type = (
        arrow.schema.field(name).type if name in arrow.column_names else None for name in (time, layout.id)
    )
    table = Table(
        series,
        resolved,
        kind,
        time_type=time_type if is_time(time_type) else None,
        id_type=id_type if long and pa.types.is_integer(id_type) else None,
        indexed=kind == "pandas"
        and not isinstance(source, str | Path)
        and not is_joined
        and time not in map(str, source.columns),
        joined=is_joined,
    )
    return table, marks_in(values, columns)


def _axis(arrow: pa.Table, layout: Layout, time: str, times: pa.ChunkedArray) -> Axis:
    """Return the moments of a table; `layout` has its zone, and its ids if it is long."""
    groups = None
    if layout.shape == "long" and layout.zone is not None:
        ids: Any = arrow[layout.id].combine_chunks()
        groups = np.array(ids.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    return Axis(*as_moments(time, times, layout.zone, layout.numbered, groups), time)


def _check_file(source: Any) -> None:
    """Refuse a folder, with another remedy if it is most likely a saved model."""
    if isinstance(source, str | Path) and Path(source).is_dir():
        is_model = (Path(source) / "model.json").is_file()
        remedy = "name the table; a model is the first word of predict and explain" if is_model else "name a file in it"
        raise UsageError("a table must be a file", f"{str(source)!r}, {'a model' if is_model else 'a folder'}", remedy)


def _find_time(arrow: pa.Table, layout: Layout) -> tuple[pa.Table, Layout, str, pa.ChunkedArray]:
    """Determine the shape and the time column: as named, by type, by a usual name, or the first column.

    Several columns of times are replaced by one, unless they have another role as well.
    """
    names = arrow.column_names
    could_be_long = layout.shape != "wide" and {layout.id, layout.target} <= set(names)
    shape: Shape = "long" if could_be_long else "wide"
    own = [name for name in (layout.id, layout.target) if name not in (Layout.id, Layout.target)]
    is_half = layout.shape == "auto" and len({layout.id, layout.target} & set(names)) == 1 and set(own) & set(names)
    if (layout.shape == "long" and not could_be_long) or is_half:
        raise DataError(
            f"a long table must have the columns {layout.id!r} and {layout.target!r}",
            listed(names),
            "name them (fit --id, --target)",
        )
    others = [name for name in names if not (could_be_long and name in (layout.id, layout.target))]
    named = named_in(layout.time, names)
    for name in named:
        if name not in names:
            candidates = [each for each in others if parse_times(arrow[each]) is not None]
            add = "add a column of times of this name"
            otherwise = f"take {listed(candidates)}, or rename it" if candidates else add
            _present(name, names, "time column", candidates if len(named) == 1 else None, otherwise)
    if layout.time and len(named) > 1:
        times = joined(arrow, named, layout.dates)
        kept = {*(layout.channels or ()), *layout.past, *layout.future, layout.id}
        rest = arrow.select([name for name in names if name not in named or name in kept])
        return (
            rest.add_column(0, layout.time, times.moments),
            replace(layout, shape=shape, dates=times.dates),
            layout.time,
            times.moments,
        )
    for name in named or _candidates(arrow, others):
        # Numbers are times only in a column that is called so: any other may be a channel.
        if is_number(arrow[name]) and name != layout.time and name.lower() not in TIME_NAMES:
            continue
        if (read := read_times(name, arrow[name], layout.dates)) is not None:
            return arrow, replace(layout, time=name, shape=shape, dates=read.dates), name, read.moments
    for name in named or others:
        is_usual = bool(named) or name.lower() in TIME_NAMES
        if (is_usual or name == others[0]) and (got := _odd_times(arrow[name], numbers=is_usual)):
            raise DataError(
                "the time column must contain times",
                f"{got} in {name!r}",
                "correct them, or remove the rows: a table has no row of totals",
            )
    if layout.time:
        raise DataError(
            "the time column must contain times",
            f"{cells_of(arrow[layout.time][:1])[0]!r} in {layout.time!r}",
            "write them as YYYY-MM-DD HH:MM:SS, or say how they are written (fit --dates)",
        )
    raise untimed(arrow, others)


def _odd_times(column: pa.ChunkedArray, numbers: bool) -> str:
    """Return the few rows of a column that are not written as most others, which are times; empty if there are none.

    Numbers are times only if `numbers` says so. Of a long column the first piece shows how most are written, and only
    one other is looked at: the first that cannot be read.
    """
    cells = cells_of(column[:PIECE])
    ways = [_way(cell) for cell in cells]
    (way, count) = Counter(ways).most_common(1)[0] if ways else ("", 0)
    if not way or (way == "number" and not numbers) or count <= len(cells) / 2:
        return ""
    start = 0
    if count == len(cells):
        later = range(PIECE, len(column), PIECE)
        start = next((start for start in later if not _all_are(way, column[start : start + PIECE])), len(column))
        cells = cells_of(column[start : start + PIECE])
        ways = [_way(cell) for cell in cells]
    odd = np.array([row for row, each in enumerate(ways) if each != way], dtype=np.int64)
    # Of the other pieces nobody knows how many odd rows they have.
    odd = odd if len(column) <= PIECE else odd[:NAMED_AT_MOST]
    return describe_rows(start + odd, [repr(cells[row]) for row in odd[:NAMED_AT_MOST]]) if len(odd) else ""


def _all_are(way: str, column: pa.ChunkedArray) -> bool:
    """Return whether all cells are written in one of the ways of `_way`."""
    import pyarrow.compute as pc  # slow, and few tables need it

    if way == "iso":
        return parse_times(column) is not None and not column.null_count
    pattern = WRITTEN if way == "written" else rf"^(?:{NUMBER.pattern})$"
    fits = pc.match_substring_regex(column.cast(pa.string()), pattern, ignore_case=True)
    return not column.null_count and bool(pc.all(fits).as_py())


def _way(cell: Any) -> str:
    """Return how a time is written: as a number, as ISO text, or in another way; empty if it is no time."""
    if isinstance(cell, int | float) or (isinstance(cell, str) and NUMBER.fullmatch(cell)):
        return "number"
    try:
        datetime.fromisoformat(cell)
    except TypeError:
        return ""
    except ValueError:
        return "written" if re.match(WRITTEN, cell) else ""
    return "iso"


def _candidates(arrow: pa.Table, names: list[str]) -> list[str]:
    typed = [name for name in names if is_time(arrow.schema.field(name).type)]
    usual = sorted(
        (name for name in names if name.lower() in TIME_NAMES), key=lambda name: TIME_NAMES.index(name.lower())
    )
    if len(typed) > 1 and not set(typed) & set(usual):
        raise DataError("a table must have one time column", listed(typed), "name it (fit --time)")
    return (typed if len(typed) == 1 else usual) + names[:1]


def _from_wide(
    arrow: pa.Table, layout: Layout, axis: Axis
) -> tuple[Axis, tuple[str, ...], Float64[np.ndarray, "row channel"]]:
    rest = [name for name in arrow.column_names if name != layout.time]
    columns = _columns(layout, rest)
    if not columns:
        raise DataError(
            "a table must have a channel in addition to its time column", f"{layout.time!r} only", "add one"
        )
    if not layout.channels and (unnamed := [place for place, name in enumerate(columns) if not name.strip()]):
        others = shlex.quote(",".join(name for name in columns if name.strip()))
        raise DataError(
            "a channel must have a name",
            f"{columns[unnamed[0]]!r}, most likely an index of rows",
            f"write the file with index=False, or name the channels (fit --channels {others})",
        )
    values = np.empty((arrow.num_rows, len(columns)))
    for place, name in enumerate(columns):
        values[:, place] = as_numbers(name, arrow[name], axis.moments, axis.zone, layout.missing_texts)
    return axis, columns, values


def _from_long(
    arrow: pa.Table, layout: Layout, axis: Axis
) -> tuple[Axis, tuple[str, ...], Float64[np.ndarray, "row channel"]]:
    if arrow[layout.id].null_count:
        raise DataError("every row must have an id", f"{arrow[layout.id].null_count} without", f"fill {layout.id!r}")
    ids = [str(name) for name in cells_of(arrow[layout.id])]
    known = list(dict.fromkeys(ids))
    channels = _columns(layout, known)
    check_columns(len(channels), "ids that are read")
    numbers = as_numbers(layout.target, arrow[layout.target], axis.moments, axis.zone, layout.missing_texts)
    number = {name: place for place, name in enumerate(channels)}
    places = np.array([number.get(name, -1) for name in ids])
    grouped = np.argsort(places, kind="stable")
    chosen = np.split(grouped, np.searchsorted(places[grouped], np.arange(len(channels))))[1:]
    moments = np.unique(axis.moments[np.concatenate(chosen)])
    check_cells(len(moments), len(channels))
    values = np.full((len(moments), len(channels)), np.nan)
    repeating: list[Axis] = []
    for column, rows in enumerate(chosen):
        own = Axis(axis.moments[rows], axis.zone, axis.name)
        own.check_order(rows)
        if layout.irregular != "fill":
            own.check_repeats(rows)
        elif len(own.repeats):
            repeating.append(own)
        values[np.searchsorted(moments, own.moments[::-1]), column] = numbers[rows[::-1]]
    if repeating:
        repeating[0].warn_of_repeats(sum(len(own.repeats) for own in repeating[1:]))
    return Axis(moments, axis.zone, axis.name), channels, values


def _columns(layout: Layout, names: list[str]) -> tuple[str, ...]:
    """Return all columns to read, each once: the named channels, or all if none is named, and the covariates."""
    channels = (*(layout.channels or names), *layout.past)
    roles = dict.fromkeys(channels, "channel") | dict.fromkeys(layout.future, "covariate")
    return tuple(_present(name, names, what) for name, what in roles.items())


def _present(
    name: str,
    names: list[str],
    what: str,
    candidates: list[str] | None = None,
    otherwise: str = "name an existing one, or give a table that has it",
) -> str:
    """Return the name if it is a column; otherwise the error proposes one of the `candidates` (None: any)."""
    if name in names:
        return name
    remedy = hint(name, names if candidates is None else candidates, otherwise)
    raise DataError(f"the {what} {name!r} must be in the table", listed(names), remedy)
