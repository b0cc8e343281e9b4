"""Malformed inputs: bytes that were changed at random, and documents and tables that are made as some bytes say."""

import random
from collections.abc import Callable, Sequence
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

TOKENS = tuple(
    text.encode()
    for text in (
        *(
            "",
            ",",
            "\n",
            "\r",
            '"',
            "'",
            ";",
            "\t",
            "\0",
            "-",
            "+",
            ".",
            "e",
            "nan",
            "NaN",
            "inf",
            "-inf",
            "null",
            "None",
        ),
        *("0", "-0", "1e308", "1e-320", "1e999", "9" * 40, "9" * 5000, "0x10", "1_000", "1,5", "٣", "１", "٫"),
        *("2024-01-01", "2024-02-30", "0000-00-00", "9999-12-31T23:59:60", "2024-03-31T02:30:00+02:00", "1/2/24"),
        *(
            "time",
            "load",
            "unique_id",
            "ds",
            "y",
            "\ufeff",
            "\ud7ff",
            "é",
            "[",
            "]",
            "{",
            "}",
            "=",
            "[[a]]",
            "#",
            "true",
        ),
    )
)
"""Pieces that have a meaning to some reader."""

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**53 + 1, 2**63, 2**64, 10**40, 10**400, -(10**18)),
    *(0.5, -0.0, 1e-320, 1e-45, 1e37, 1e39, 1e308, -1e308, float("nan"), float("inf"), float("-inf")),
    *(
        "",
        "x",
        "nan",
        "1e999",
        "1_000",
        "x" * 3000,
        "\ud800",
        "\0",
        "../../etc/passwd",
        "Europe/Nowhere",
        "1h",
        "2024-01-01",
    ),
    *([], {}, [[]], [None], [0] * 3000, [[1.0, 2.0], [3.0]], {"": 0}, {"a": {"a": {"a": []}}}),
)
"""Values that a reader may not expect."""


def deep(levels: int = 200) -> Any:
    """Return lists in lists."""
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


class Draws:
    """Numbers drawn from bytes: the same bytes give the same ones, and when they are used up, zeros."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def below(self, end: int) -> int:
        """Return a number from zero to below `end`."""
        size = 1 if end <= 256 else 3
        part = self._data[self._at : self._at + size]
        self._at += size
        return int.from_bytes(part, "little") % end if end else 0

    def rest(self) -> bytes:
        """Return the bytes that were not used."""
        return self._data[self._at :]

    @property
    def over(self) -> bool:
        """Whether all bytes are used up."""
        return self._at >= len(self._data)


def edited(document: Any, draws: Draws, most: int = 4) -> Any:
    """Change a JSON document in place in a few spots, as the draws say, and return it."""
    for _ in range(most):
        if draws.over:
            break
        outer, key = _spot(document, draws)
        if outer is not None:
            _change(outer, key, draws)
    return document


def _spot(document: Any, draws: Draws) -> tuple[Any, Any]:
    outer, key, value = None, None, document
    while isinstance(value, dict | list) and value:
        if outer is not None and draws.below(8) == 0:
            break
        keys = sorted(value) if isinstance(value, dict) else range(len(value))
        outer, key = value, keys[draws.below(len(keys))]
        value = outer[key]
    return outer, key


def _change(outer: Any, key: Any, draws: Draws) -> None:
    how, value = draws.below(10), outer[key]
    if how == 0:
        del outer[key]
    elif how == 1 and isinstance(outer, list):
        outer.insert(key, deepcopy(value))
    elif how == 1:
        outer[f"{key} "] = deepcopy(value)
    elif how == 2 and isinstance(outer, list):
        outer[:] = outer[::-1]
    elif how == 3 and isinstance(value, int | float) and not isinstance(value, bool):
        outer[key] = value * (1 + 2.0 ** -draws.below(53)) if abs(value) < 1e300 else -value
    elif how == 4 and isinstance(value, int | float) and not isinstance(value, bool):
        outer[key] = value + draws.below(5) - 2
    elif how == 5 and isinstance(value, str):
        at = draws.below(len(value) + 1)
        outer[key] = value[:at] + TOKENS[draws.below(len(TOKENS))].decode() + value[at + draws.below(3) :]
    elif how == 6 and draws.below(16) == 0:
        outer[key] = deep()
    else:
        outer[key] = deepcopy(VALUES[draws.below(len(VALUES))])


def changed(content: bytes, others: Sequence[bytes], dice: random.Random) -> bytes:
    """Return bytes with a few random changes; `others` may lend them a piece."""
    for _ in range(dice.choice((1, 1, 2, 3, 6))):
        at = dice.randrange(len(content) + 1)
        until = min(len(content), at + dice.choice((1, 1, 2, 4, 16, 200)))
        piece = content[at:until]
        other = dice.choice(others)
        start = dice.randrange(len(other) + 1)
        content = (
            content[:at]
            + dice.choice(
                (
                    bytes(byte ^ (1 << dice.randrange(8)) for byte in piece),
                    dice.randbytes(len(piece)),
                    b"",
                    piece * dice.choice((2, 3, 50)),
                    dice.choice(TOKENS),
                    other[start : start + dice.choice((1, 8, 64, 512))],
                )
            )
            + content[until:]
        )
    return content


START = datetime(2024, 1, 1)
HOUR = 3600 * 10**6


def _times(draws: Draws, rows: int) -> list[int | None]:
    """Draw times in microseconds: mostly hourly, or with one that is out of place."""
    times: list[int | None] = [1_704_067_200_000_000 + HOUR * row for row in range(rows)]
    if rows and draws.below(2):
        at = draws.below(rows)
        times[at] = (None, times[0], 0, -(2**53), 2**53, HOUR // 7)[draws.below(6)]
    return times


def _texts(draws: Draws, rows: int) -> list[str]:
    """Draw numbers as text, or times, with a few tokens among them."""
    is_time = draws.below(2)
    texts = [str(START + timedelta(hours=row)) if is_time else f"{row}.5" for row in range(rows)]
    for _ in range(draws.below(3) if rows else 0):
        texts[draws.below(rows)] = TOKENS[draws.below(len(TOKENS))].decode()
    return texts


def _numbers(draws: Draws, rows: int) -> list[float]:
    numbers = [100 + 7.5 * (row % 24) for row in range(rows)]
    huge = (1e-320, 1e30, 9.97e36, 1e39, 1e160, 1e308, float("nan"), float("inf"), -999.0)
    for _ in range(draws.below(3) if rows else 0):
        numbers[draws.below(rows)] = huge[draws.below(len(huge))]
    return numbers


def _integers(draws: Draws, rows: int) -> pa.Array:
    kind = (pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64())[draws.below(5)]
    ends = (0, 2 ** (kind.bit_width - 1) - 1, None)
    return pa.array([ends[draws.below(3)] if draws.below(8) == 0 else row % 100 for row in range(rows)], kind)


UNITS = ("s", "ms", "us", "ns")
COLUMNS: tuple[Callable[[Draws, int], pa.Array], ...] = (
    lambda draws, rows: pa.array(_times(draws, rows), pa.timestamp("us")),
    lambda draws, rows: pa.array(_times(draws, rows), pa.timestamp("us", "Europe/Berlin")),
    lambda draws, rows: pa.array(_times(draws, rows)).cast(pa.timestamp(UNITS[draws.below(4)])),
    lambda draws, rows: pa.array([draws.below(2**16) * 10 ** draws.below(6) for _ in range(rows)], pa.date64()),
    lambda draws, rows: pa.array([19_000 + row for row in range(rows)], pa.date32()),
    lambda draws, rows: pa.array(list(range(rows)), pa.time32("s")),
    lambda draws, rows: pa.array([row * HOUR for row in range(rows)], pa.duration("us")),
    lambda draws, rows: pa.array(_numbers(draws, rows)),
    lambda draws, rows: pa.array(_numbers(draws, rows)).cast(pa.float32()),
    lambda draws, rows: pa.array(_numbers(draws, rows)).dictionary_encode(),
    _integers,
    lambda draws, rows: pa.array(list(range(rows)), pa.decimal128(38, draws.below(36))),
    lambda draws, rows: pa.array([row % 2 == 0 for row in range(rows)]),
    lambda draws, rows: pa.array(_texts(draws, rows)),
    lambda draws, rows: pa.array(_texts(draws, rows), pa.large_string()),
    lambda draws, rows: pa.array(_texts(draws, rows), pa.string_view()),
    lambda draws, rows: pa.array(_texts(draws, rows)).dictionary_encode(),
    lambda draws, rows: pa.array([text.encode() for text in _texts(draws, rows)]),
    lambda draws, rows: pa.nulls(rows),
    lambda draws, rows: pa.array([[1.0] * (row % 3) for row in range(rows)], pa.list_(pa.float64())),
    lambda draws, rows: pa.array([{"a": row} for row in range(rows)], pa.struct({"a": pa.int64()})),
    lambda draws, rows: pa.array([[(str(row), row)] for row in range(rows)], pa.map_(pa.string(), pa.int64())),
)
"""Columns of every type that a file of columns can have."""

NAMES = ("time", "load", "wind", "unique_id", "ds", "y", "", "load ", "1", "\0", "é", "Time", "x" * 3000)


def odd_table(draws: Draws, rows: int) -> pa.Table:
    """Make a table of times and two channels, of which a few columns are replaced, renamed, doubled or left out."""
    names = ["time", "load", "wind"]
    columns = [
        pa.array([1_704_067_200_000_000 + HOUR * row for row in range(rows)], pa.timestamp("us")),
        *(pa.array([100 + 7.5 * (row % period) for row in range(rows)]) for period in (24, 7)),
    ]
    for _ in range(1 + draws.below(3)):
        how, at = draws.below(8), draws.below(len(columns)) if columns else 0
        if how < 5 and columns:
            columns[at] = COLUMNS[draws.below(len(COLUMNS))](draws, rows)
        elif how == 5 and columns:
            names[at] = NAMES[draws.below(len(NAMES))]
        elif how == 6 and columns:
            del names[at], columns[at]
        else:
            names.append(NAMES[draws.below(len(NAMES))])
            columns.append(COLUMNS[draws.below(len(COLUMNS))](draws, rows))
    return pa.table(columns, names)
