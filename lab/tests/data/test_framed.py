"""The framed benchmark keeps what its description promises."""

import numpy as np
import pytest

from ibforecast_lab.data.framed import MODES, FramedConstants, Mode, draw, generate, splits


@pytest.mark.parametrize("mode", MODES)
def test_the_same_seed_gives_the_same_windows(mode: Mode) -> None:
    one, same, other = generate(mode, 20, 7), generate(mode, 20, 7), generate(mode, 20, 8)
    assert one.window.tobytes() == same.window.tobytes()
    assert one.target.tobytes() == same.target.tobytes()
    assert (one.window != other.window).any()


def test_the_seed_alone_fixes_the_seasonal_shape() -> None:
    shapes = [draw(mode, windows, 3, FramedConstants()).seasonal for mode in MODES for windows in (2, 5)]
    assert all((shape == shapes[0]).all() for shape in shapes)
    assert (draw("pulse", 2, 4, FramedConstants()).seasonal != shapes[0]).any()


def test_the_splits_have_the_sizes_of_the_paper_and_do_not_overlap() -> None:
    parts = splits("pulse")
    assert [len(part) for part in parts] == [4000, 1000, 1000]
    assert parts[0].window.shape[1:] == (96, 4)
    assert parts[0].target.shape[1:] == (24, 4)
    firsts = np.concatenate([part.window[:, 0, 0] for part in parts])
    assert len(np.unique(firsts)) > 5990


@pytest.mark.parametrize(("mode", "steps"), [("pulse", 6), ("decoy", 6), ("trend", 24)])
def test_the_support_is_one_run_of_steps_where_there_is_a_driver(mode: Mode, steps: int) -> None:
    windows = generate(mode, 300, 1)
    assert (windows.support.sum(axis=1) == steps * windows.driver).all()
    rises = (np.diff(windows.support.astype(int), axis=1, prepend=0) == 1).sum(axis=1)
    assert (rises == windows.driver).all()
    assert 0.4 < windows.driver.mean() < 0.6


def test_the_level_says_nothing_about_the_driver() -> None:
    windows = generate("pulse", 500, 1)
    off = (windows.window.mean(axis=1) - windows.level) / windows.scale
    assert np.abs(off).max() < 5 * 0.3 / np.sqrt(96)


def test_the_decoy_keeps_clear_of_the_pulse() -> None:
    parts = draw("decoy", 300, 1, FramedConstants())
    assert not ((parts.decoy != 0) & parts.event_steps).any()
    assert ((parts.decoy != 0).sum(axis=1) == 6).all()


def test_the_background_keeps_clear_of_the_cycle_and_is_absent_from_the_future() -> None:
    parts = draw("pulse", 50, 1, FramedConstants())
    per_harmonic = np.abs(np.fft.rfft(parts.background, axis=1))[:, [4, 8, 12]].mean() / 48
    assert per_harmonic < 0.4
    quiet = generate("pulse", 200, 1)
    rest = (quiet.target - quiet.level[:, None]) / quiet.scale[:, None]
    without = rest.swapaxes(1, 2)[~quiet.driver]
    phase = np.repeat(quiet.phase[:, None], 4, axis=1)[~quiet.driver]
    channel = np.repeat(np.arange(4)[None], 200, axis=0)[~quiet.driver]
    expected = draw("pulse", 1, 1, FramedConstants()).seasonal.T[
        channel[:, None], (phase[:, None] + np.arange(24)) % 24
    ]
    assert abs((without - expected).std() - 0.3) < 0.01
