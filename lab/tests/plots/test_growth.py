"""The picture of growth: what it takes from a record."""

from ibforecast_lab.plots.growth import AXES, growth_png, times_of

RECORD = {
    f"{axis}_{work}_{key}": value
    for axis in AXES
    for work in ("sealed_step", "read")
    for key, value in (("10", 0.1), ("100", 1.0), ("exponent", 1.0), ("last_exponent", 1.0))
}


def test_the_times_of_an_axis_are_those_with_a_size() -> None:
    assert times_of(RECORD, "rows") == {"sealed_step": {10: 0.1, 100: 1.0}, "read": {10: 0.1, 100: 1.0}}


def test_the_picture_is_a_png_with_the_same_bytes_every_time() -> None:
    picture = growth_png(RECORD)
    assert picture.startswith(b"\x89PNG")
    assert picture == growth_png(RECORD)
    assert picture != growth_png({name: 2 * value for name, value in RECORD.items()})
