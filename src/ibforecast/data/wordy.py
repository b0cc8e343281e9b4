"""Columns without any number, such as names of series or of states, and further times: all are named at once."""

import shlex

import numpy as np
import pyarrow as pa
from jaxtyping import Shaped

from ibforecast.core.errors import DataError
from ibforecast.data.columns import NAMED_AT_MOST
from ibforecast.data.repeats import is_text, name_ids, numbered, series_of
from ibforecast.data.sources import is_time

NUMBERISH = r"(?i)^[^\pL\pN]*\pN|^\s*[+-]?(nan|inf|infinity)\s*$"
"""Text that begins like a number, perhaps after a sign or a currency: someone has to look at such a cell."""


def refuse_wordy(arrow: pa.Table, time: str, columns: list[str], moments: Shaped[np.ndarray, " row"]) -> None:
    """Refuse columns of a wide table that contain no numbers, only words or times.

    If times repeat, and one of these columns says which series a row is of, the remedy says how to read a long table.
    """
    wordy = {name: got for name in columns if (got := _contains(name, arrow[name]))}
    if not wordy:
        return
    others = [name for name in columns if name not in wordy]
    named = list(wordy.values())
    more = f" and {len(named) - NAMED_AT_MOST} more" if len(named) > NAMED_AT_MOST else ""
    remedies, only = list[str](), f"--channels {shlex.quote(','.join(others))}" if others else ""
    texts, numbers = [name for name in wordy if is_text(arrow[name].type)], numbered(moments)
    if numbers.max() + 1 < len(numbers) and (ids := series_of(arrow, texts, numbers)):
        remedies.append(name_ids(arrow, ids, columns))
    elif times := [name for name in wordy if is_time(arrow.schema.field(name).type)]:
        options = f"--time {shlex.quote(times[0])} {only}".strip()
        remedies.append(f"if the times are those of {times[0]!r} and not of {time!r}, name it (fit {options})")
    if others:
        remedies.append(f"leave {'it' if len(wordy) == 1 else 'them'} out by naming the channels (fit {only})")
    remedy = "; or ".join(remedies) or "give a table with numbers"
    raise DataError("a channel must contain numbers", f"{', '.join(named[:NAMED_AT_MOST])}{more}", remedy)


def _contains(name: str, column: pa.ChunkedArray) -> str:
    """Say what a column contains if that is no number at all; empty if it may be a channel."""
    import pyarrow.compute as pc  # slow, and few tables need it

    if is_time(column.type):
        return f"times in {name!r}"
    if pa.types.is_time(column.type):
        return f"times of day in {name!r}"
    words = column.chunk(0).dictionary if pa.types.is_dictionary(column.type) and column.num_chunks else column
    if not is_text(words.type) or words.null_count == len(words):
        return ""
    if pc.any(pc.match_substring_regex(words.cast(pa.large_string()), NUMBERISH)).as_py():
        return ""
    first = next(word for word in words if word.is_valid).as_py()
    return f"text such as {first!r} in {name!r}"
