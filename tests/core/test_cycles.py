"""Several cycles in one table: split, tiled and added up, in numpy and in PyTorch."""

from math import lcm

import numpy as np
import pytest
import torch

from ibforecast.core.cycles import parts, period, tiled

CYCLES = [(5,), (2, 3), (4, 6), (3, 1, 7)]


def table(cycles: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(sum(cycles), 2)).astype(np.float32)


@pytest.mark.parametrize("cycles", CYCLES)
def test_the_concatenated_parts_equal_the_table(cycles: tuple[int, ...]) -> None:
    cut = parts(table(cycles), cycles)
    assert [len(part) for part in cut] == list(cycles)
    np.testing.assert_array_equal(np.concatenate(cut), table(cycles))


@pytest.mark.parametrize("cycles", CYCLES)
def test_a_step_is_the_sum_over_the_cycles(cycles: tuple[int, ...]) -> None:
    phase = np.arange(50)
    for step, row in enumerate(tiled(table(cycles), phase, cycles)):
        first, expected = 0, np.zeros(2, dtype=np.float32)
        for cycle in cycles:
            expected = expected + table(cycles)[first + step % cycle]
            first += cycle
        np.testing.assert_array_equal(row, expected)


@pytest.mark.parametrize("cycles", CYCLES)
def test_counting_modulo_the_period_loses_no_phase(cycles: tuple[int, ...]) -> None:
    phase = np.arange(500)
    assert period(cycles) == lcm(*cycles)
    np.testing.assert_array_equal(
        tiled(table(cycles), phase, cycles), tiled(table(cycles), phase % period(cycles), cycles)
    )


@pytest.mark.parametrize("cycles", CYCLES)
def test_arrays_and_tensors_give_the_same_bits(cycles: tuple[int, ...]) -> None:
    phase = np.arange(30)
    tensor = tiled(torch.from_numpy(table(cycles)), torch.from_numpy(phase), cycles)
    assert tensor.numpy().tobytes() == tiled(table(cycles), phase, cycles).tobytes()


def test_one_cycle_is_the_table_itself() -> None:
    single = table((5,))
    assert parts(single, (5,))[0] is single
