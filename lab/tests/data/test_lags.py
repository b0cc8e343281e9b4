"""The table with planted lags: each target follows its source, and the support marks the values that move it."""

import numpy as np
import pytest

from ibforecast.core.errors import UsageError
from ibforecast_lab.data.lags import LagConstants, lagged

CONSTANTS = LagConstants(rows=400, noise=0.0)


def test_each_target_is_its_source_a_lag_before() -> None:
    values = lagged(CONSTANTS)
    assert values.shape == (400, len(CONSTANTS.channels))
    for target, (source, lag) in enumerate(zip(CONSTANTS.source, CONSTANTS.lag, strict=True)):
        np.testing.assert_array_equal(values[lag:, target], values[:-lag, 3 + source])


@pytest.mark.parametrize(("look_back", "horizon"), [(96, 12), (40, 24), (24, 6), (24, 48)])
def test_only_marked_values_and_those_after_the_window_move_a_target(look_back: int, horizon: int) -> None:
    support = CONSTANTS.support(look_back, horizon)
    for target, (source, lag) in enumerate(zip(CONSTANTS.source, CONSTANTS.lag, strict=True)):
        rows = {look_back - 1 + step - lag for step in range(1, horizon + 1)}
        expected = {(row, 3 + source) for row in rows if 0 <= row < look_back}
        assert {tuple(place) for place in np.argwhere(support[target]).tolist()} == expected


def test_a_target_without_a_lag_is_refused() -> None:
    with pytest.raises(UsageError, match="source and lag must have an entry for every target"):
        LagConstants(source=(0, 1), lag=(3,))
