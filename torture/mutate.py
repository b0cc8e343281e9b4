"""Malformed inputs: bytes that were changed at random, and documents that were edited as some bytes say."""

import random
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

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
