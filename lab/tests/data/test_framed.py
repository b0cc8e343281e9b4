"""The framed benchmark has the properties that its description promises, and equals Eqs. 11-13 written with loops."""

import numpy as np
import pytest

from ibforecast_lab.data.framed import MODES, FramedConstants, Mode, assemble, draw, generate, splits


@pytest.mark.parametrize("mode", MODES)
def test_the_same_seed_gives_the_same_windows(mode: Mode) -> None:
    one, same, other = generate(mode, 20, 7), generate(mode, 20, 7), generate(mode, 20, 8)
    assert one.window.tobytes() == same.window.tobytes()
    assert one.target.tobytes() == same.target.tobytes()
    assert (one.window != other.window).any()


def test_the_seasonal_shape_depends_only_on_the_seed() -> None:
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
def test_the_support_of_a_driver_is_one_run_of_steps(mode: Mode, steps: int) -> None:
    windows = generate(mode, 300, 1)
    assert (windows.support.sum(axis=1) == steps * windows.driver).all()
    rises = (np.diff(windows.support.astype(int), axis=1, prepend=0) == 1).sum(axis=1)
    assert (rises == windows.driver).all()
    assert 0.4 < windows.driver.mean() < 0.6


def test_the_level_does_not_depend_on_the_driver() -> None:
    windows = generate("pulse", 500, 1)
    off = (windows.window.mean(axis=1) - windows.level) / windows.scale
    assert np.abs(off).max() < 5 * 0.3 / np.sqrt(96)


def test_the_decoy_does_not_overlap_the_pulse() -> None:
    parts = draw("decoy", 300, 1, FramedConstants())
    assert not ((parts.decoy != 0) & parts.event_steps).any()
    assert ((parts.decoy != 0).sum(axis=1) == 6).all()


def test_the_background_is_weak_at_the_cycle_and_absent_from_the_future() -> None:
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


@pytest.mark.parametrize("mode", MODES)
def test_windows_targets_and_support_equal_the_equations_term_by_term(mode: Mode) -> None:
    parts = draw(mode, 6, 5, FramedConstants())
    made = assemble(parts)
    windows, look_back, channels = parts.event.shape
    horizon, cycle = parts.response.shape[1], len(parts.seasonal)
    for w in range(windows):
        for c in range(channels):
            mu, s, tau, z = parts.level[w, c], parts.scale[w, c], parts.phase[w], int(parts.driver[w, c])
            phi = parts.seasonal[:, c] - sum(parts.seasonal[:, c]) / cycle
            beta = parts.background[w, :, c] - sum(parts.background[w, :, c]) / look_back
            injected = parts.event[w, :, c] + parts.decoy[w, :, c]
            r = injected - sum(injected) / look_back
            for t in range(look_back):
                x = mu + s * (phi[(t + tau) % cycle] + beta[t] + z * r[t] + parts.window_noise[w, t, c])
                np.testing.assert_allclose(made.window[w, t, c], x, rtol=1e-6, atol=1e-6)
                assert made.support[w, t, c] == bool(z and parts.event_steps[w, t, c])
            for t in range(horizon):
                g = parts.response[w, t, c]
                y = mu + s * (phi[(t + look_back + tau) % cycle] + z * g + parts.target_noise[w, t, c])
                np.testing.assert_allclose(made.target[w, t, c], y, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_the_response_is_half_the_size_of_the_event_and_decays(mode: Mode) -> None:
    constants = FramedConstants()
    parts = draw(mode, 6, 5, constants)
    for w in range(6):
        for c in range(constants.channels):
            steps = parts.event[w, parts.event_steps[w, :, c], c]
            if mode == "trend":
                size = steps[-1] - steps[0]
                np.testing.assert_allclose(np.diff(steps), size / 23)
            else:
                size = steps[2] / np.sin(np.pi * 2.5 / 6)
                np.testing.assert_allclose(steps, [size * np.sin(np.pi * (k + 0.5) / 6) for k in range(6)])
                assert 2 <= abs(size) <= 5
            expected = [0.5 * size * np.exp(-t / 8) for t in range(24)]
            np.testing.assert_allclose(parts.response[w, :, c], expected)
