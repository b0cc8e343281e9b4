"""Independent windows stored as one series come back unchanged."""

import numpy as np
import torch

from ibforecast_lab.data import framed
from ibforecast_lab.data.resident import resident


def some(windows: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    window, target = (random.normal(size=(windows, steps, 2)).astype(np.float32) for steps in (8, 3))
    return window, target, random.integers(0, 6, windows)


def test_every_window_and_its_target_come_back_bit_for_bit() -> None:
    window, target, phase = some()
    windows = resident(window, target, phase)
    assert len(windows) == 5
    assert (windows.look_back, windows.horizon, windows.calendar) == (8, 3, None)
    batch, follows = windows.take(windows.starts)
    assert batch.values.numpy().tobytes() == window.tobytes()
    assert follows.values.numpy().tobytes() == target.tobytes()
    assert batch.observed.all()
    assert follows.observed.all()


def test_windows_share_no_row() -> None:
    windows = resident(*some())
    assert torch.equal(windows.starts, torch.arange(5) * 11)
    assert len(windows.values) == 5 * 11


def test_the_phase_continues_from_each_windows_first_step() -> None:
    window, target, phase = some()
    windows = resident(window, target, phase)
    batch, _ = windows.take(windows.starts)
    for row, first in enumerate(phase):
        assert batch.phase[row].tolist() == [first + step for step in range(11)]


def test_nan_becomes_a_missing_value_stored_as_zero() -> None:
    window, target, phase = some()
    window[2, 3, 1] = np.nan
    target[4, 0, 0] = np.nan
    batch, follows = resident(window, target, phase).take(torch.tensor([22, 44]))
    assert batch.observed.logical_not().nonzero().tolist() == [[0, 3, 1]]
    assert follows.observed.logical_not().nonzero().tolist() == [[1, 0, 0]]
    assert batch.values[0, 3, 1] == follows.values[1, 0, 0] == 0


def test_windows_can_be_selected_by_their_starts() -> None:
    window, target, phase = some()
    windows = resident(window, target, phase)
    chosen, _ = windows.at(windows.starts[[3, 1]].numpy()).take(windows.starts[[3, 1]])
    assert chosen.values.numpy().tobytes() == window[[3, 1]].tobytes()
    assert len(windows.usable()) == 5


def test_the_framed_benchmark_is_stored_unchanged() -> None:
    made = framed.generate("decoy", 7, 1)
    batch, follows = next(resident(made.window, made.target, made.phase).batches(7))
    assert batch.values.numpy().tobytes() == made.window.tobytes()
    assert follows.values.numpy().tobytes() == made.target.tobytes()
    assert batch.phase[:, 0].tolist() == made.phase.tolist()
