"""Several cycles at once: their tables lie end to end in one, and what they say of a moment adds up."""

from collections.abc import Sequence
from functools import reduce
from math import lcm
from operator import add
from typing import Any, TypeVar

Table = TypeVar("Table", bound=Any)
"""An array or a tensor whose first axis runs through the cycles, one after the other."""


def period(cycles: Sequence[int]) -> int:
    """Number of steps after which all cycles begin anew together: what phases are counted modulo."""
    return lcm(*cycles)


def parts(table: Table, cycles: Sequence[int]) -> list[Table]:
    """Cut a table into those of its cycles; one cycle alone is the table itself."""
    if len(cycles) == 1:
        return [table]
    ends = [sum(cycles[: number + 1]) for number in range(len(cycles))]
    return [table[end - cycle : end] for cycle, end in zip(cycles, ends, strict=True)]


def tiled(table: Table, phase: Table, cycles: Sequence[int]) -> Table:
    """Read a table at these phases, tiled periodically: the sum over its cycles."""
    summed: Table = reduce(add, (part[phase % len(part)] for part in parts(table, cycles)))
    return summed
