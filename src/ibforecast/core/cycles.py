"""Several cycles at once: their tables are stored end to end in one, and their values at a moment are summed."""

from collections.abc import Sequence
from functools import reduce
from math import lcm
from operator import add
from typing import Any, TypeVar

Table = TypeVar("Table", bound=Any)
"""An array or a tensor whose first axis contains the phases of all cycles, one cycle after the other."""

LARGEST_PERIOD = 2**53
"""The largest number of steps after which all cycles begin again together; up to it, doubles are exact."""


def period(cycles: Sequence[int]) -> int:
    """Return the number of steps after which all cycles start again together; phases are modulo this number."""
    return lcm(*cycles)


def parts(table: Table, cycles: Sequence[int]) -> list[Table]:
    """Split a table into one table per cycle; a single cycle gives the table itself."""
    if len(cycles) == 1:
        return [table]
    ends = [sum(cycles[: number + 1]) for number in range(len(cycles))]
    return [table[end - cycle : end] for cycle, end in zip(cycles, ends, strict=True)]


def tiled(table: Table, phase: Table, cycles: Sequence[int]) -> Table:
    """Return a table at these phases, tiled periodically: the sum over its cycles."""
    # Always added in the order of the cycles: the last bits of a sum depend on the order.
    summed: Table = reduce(add, (part[phase % len(part)] for part in parts(table, cycles)))
    return summed
