"""The series read from a table."""

import numpy as np

from ibforecast.core.calendar import Clock, Frequency
from ibforecast.data.series import Series

CLOCK = Clock(np.arange("2020-01-01", "2020-01-05", dtype="datetime64[D]").astype("datetime64[us]"), Frequency(86400))


def test_the_fingerprint_depends_on_every_value_and_name() -> None:
    values = np.arange(8.0).reshape(4, 2)
    series = Series(values, ("a", "b"), CLOCK)
    changed = values.copy()
    changed[3, 1] = np.nextafter(changed[3, 1], 9)
    assert series.rows == 4
    assert series.sha256 == Series(values.copy(), ("a", "b"), CLOCK).sha256
    assert series.sha256 != Series(changed, ("a", "b"), CLOCK).sha256
    assert series.sha256 != Series(values, ("a", "c"), CLOCK).sha256


def test_every_nan_has_the_same_fingerprint() -> None:
    one, other = np.full((4, 1), np.nan), np.full((4, 1), -np.float64("nan"))
    assert one.tobytes() != other.tobytes()
    assert Series(one, ("a",), CLOCK).sha256 == Series(other, ("a",), CLOCK).sha256
