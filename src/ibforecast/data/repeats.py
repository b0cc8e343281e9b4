"""Rows that share their time: those of several series, or of hours in another column. A table of these is refused."""

import shlex
from itertools import combinations

import numpy as np
import pyarrow as pa
from jaxtyping import Int64, Shaped

from ibforecast.core.errors import DataError
from ibforecast.data.parts import time_of_day
from ibforecast.data.sources import is_time, moments_of

SHARED = 0.5
"""The largest share of rows that may have the time of another row; a clock that is put back repeats a few hours."""

REPEATED_SHARE = 0.01
"""The largest share of rows that may repeat both an id and a time; above it, the column is no id."""

ROWS_PER_ID = 4
"""The fewest rows per id, on average, in a column of ids: a column of values has fewer."""


def refuse_repeats(arrow: pa.Table, time: str, moments: Shaped[np.ndarray, " row"], id: str | None = None) -> None:
    """Refuse a table, or a long one with this column of ids, in which most rows have the time of another row."""
    numbers = numbered(moments)
    if id is not None:
        numbers = paired(numbers, codes(arrow[id]))
    _, row, count = np.unique(numbers, return_inverse=True, return_counts=True)
    shared = int((count[row] > 1).sum())
    if shared <= SHARED * len(moments):
        return
    names, remedies = [name for name in arrow.column_names if name not in (time, id)], []
    if other := _other_times(arrow, names, id):
        rest = [name for name in names if not is_time(arrow[name].type) and not is_text(arrow[name].type)]
        only = "" if id else f" --channels {shlex.quote(','.join(rest))}"
        remedies.append(f"if the times are those of {other!r}, name it (fit --time {shlex.quote(other)}{only})")
    are_dates = (moments == moments.astype("datetime64[D]")).all()
    if are_dates and (hours := time_of_day(arrow, time) or _hours(arrow, names, numbers)):
        named = shlex.quote(f"{time},{hours}")
        remedies.append(f"if {hours!r} has the time of day, name both columns (fit --time {named})")
        names.remove(hours)
    if ids := series_of(arrow, names, numbers):
        remedies.append(name_ids(arrow, ids, names, id))
    rule = "a row must have a time of its own" if id is None else "a channel must have one value per time"
    last = "keep one row of each time, or count rows instead of times with irregular='by_row' (fit --irregular by_row)"
    same = f"the same time {'' if id is None else f'and {id!r} '}as another"
    raise DataError(
        rule, f"{shared:,} of {len(moments):,} rows with {same} in {time!r}", "; or ".join(remedies) or last
    )


def series_of(arrow: pa.Table, names: list[str], numbers: Int64[np.ndarray, " row"]) -> tuple[str, ...]:
    """Return the first column, or two, that differ between the rows of one time; empty if there are none.

    `numbers` is the number of the time of each row. Columns of text come first, then those of whole numbers.
    """
    text = [name for name in names if is_text(arrow[name].type)]
    whole = [name for name in names if pa.types.is_integer(arrow[name].type)]
    ids = {name: codes(arrow[name]) for name in (*text, *whole)}
    ids = {name: code for name, code in ids.items() if ROWS_PER_ID * code.max() <= len(code)}
    for name, code in ids.items():
        if _are_distinct(paired(numbers, code)):
            return (name,)
    for (name, code), (other, further) in combinations(ids.items(), 2):
        if _are_distinct(paired(paired(numbers, code), further)):
            return name, other
    return ()


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type contains text, perhaps as categories."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def numbered(moments: Shaped[np.ndarray, " row"]) -> Int64[np.ndarray, " row"]:
    """Return the number of each moment among the different ones."""
    return np.asarray(np.unique(moments, return_inverse=True)[1], dtype=np.int64)


def codes(column: pa.ChunkedArray) -> Int64[np.ndarray, " row"]:
    """Return the number of each cell among the different ones, 0 if it is empty."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    indices = column.combine_chunks().dictionary_encode().indices
    return np.asarray(indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False) + 1, dtype=np.int64)


def paired(numbers: Int64[np.ndarray, " row"], others: Int64[np.ndarray, " row"]) -> Int64[np.ndarray, " row"]:
    """Return the number of each pair among the different ones."""
    return numbered(numbers * (int(others.max()) + 1) + others)


def _are_distinct(numbers: Int64[np.ndarray, " row"]) -> bool:
    return int(numbers.max()) + 1 >= (1 - REPEATED_SHARE) * len(numbers)


def _other_times(arrow: pa.Table, names: list[str], id: str | None) -> str:
    """Return another column of times that are all different, or different for each id; empty if there is none."""
    for name in names:
        if is_time(arrow[name].type) and not arrow[name].null_count:
            numbers = numbered(moments_of(arrow[name])[0])
            if _are_distinct(numbers if id is None else paired(numbers, codes(arrow[id]))):
                return name
    return ""


def _hours(arrow: pa.Table, names: list[str], numbers: Int64[np.ndarray, " row"]) -> str:
    """Return the column of whole numbers from 0 to 23 or 1 to 24 that differ between the rows of one time."""
    for name in names:
        if not pa.types.is_integer(arrow[name].type) or arrow[name].null_count:
            continue
        hours = arrow[name].to_numpy()
        if (int(hours.min()), int(hours.max())) in ((0, 23), (1, 24)) and _are_distinct(
            paired(numbers, codes(arrow[name]))
        ):
            return name
    return ""


def name_ids(arrow: pa.Table, ids: tuple[str, ...], names: list[str], id: str | None = None) -> str:
    """Return the remedy that names the columns of ids."""
    ids = ids if id is None else (id, *ids)
    others = [
        name for name in names if name not in ids and not is_text(arrow[name].type) and not is_time(arrow[name].type)
    ]
    target = shlex.quote(others[0]) if len(others) == 1 else "NAME"
    if len(ids) == 1:
        return (
            f"if {ids[0]!r} says which series a row is of, name it, and the column of values (fit --id "
            f"{shlex.quote(ids[0])} --target {target})"
        )
    listed = ", ".join(map(repr, ids))
    joint = " + '/' + ".join(f"table[{name!r}].astype(str)" for name in ids)
    return (
        f"if {listed} together say which series a row is of, join them, such as with pandas by table['id'] = {joint}, "
        f"and name that column, and the one of values (fit --id id --target {target})"
    )
