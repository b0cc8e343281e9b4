"""Eqs. 11-13, written with loops and compared with the generator."""

import numpy as np
import pytest

from ibforecast_lab.data.framed import MODES, FramedConstants, Mode, assemble, draw


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
def test_the_future_carries_the_size_of_the_event_and_lets_it_fade(mode: Mode) -> None:
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
