"""What a table holds once it is read."""

import numpy as np

from ibforecast.core.calendar import Clock, Frequency
from ibforecast.data.series import Series

CLOCK = Clock(np.arange("2020-01-01", "2020-01-05", dtype="datetime64[D]").astype("datetime64[us]"), Frequency(86400))


def test_the_fingerprint_sees_every_value_and_every_name() -> None:
    values = np.arange(8.0).reshape(4, 2)
    series = Series(values, ("a", "b"), CLOCK)
    changed = values.copy()
    changed[3, 1] = np.nextafter(changed[3, 1], 9)
    assert series.rows == 4
    assert series.sha256 == Series(values.copy(), ("a", "b"), CLOCK).sha256
    assert series.sha256 != Series(changed, ("a", "b"), CLOCK).sha256
    assert series.sha256 != Series(values, ("a", "c"), CLOCK).sha256


def test_a_missing_value_is_a_missing_value_whatever_its_bits() -> None:
    one, other = np.full((4, 1), np.nan), np.full((4, 1), -np.float64("nan"))
    assert one.tobytes() != other.tobytes()
    assert Series(one, ("a",), CLOCK).sha256 == Series(other, ("a",), CLOCK).sha256
