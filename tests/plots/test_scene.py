"""The picture of an explanation as data."""

import json
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.core.samples import changed

from ibforecast.core.explained import ExplainedForecast
from ibforecast.plots.labels import MANY
from ibforecast.plots.scene import Line, Row, Tick, fitting, scene_of

Samples = Callable[..., ExplainedForecast]
WINDOWS = some.fixed_dictionaries(
    {
        "channels": some.integers(1, 5),
        "look_back": some.integers(1, 8).map(lambda patches: 8 * patches),
        "horizon": some.integers(1, 40),
        "cycle": some.integers(1, 30),
        "with_truth": some.booleans(),
        "with_missing": some.booleans(),
        "seed": some.integers(0, 1000),
    }
)


def line(row: Row, role: str) -> Line:
    return next(line for line in row.lines if line.role == role)


@given(window=WINDOWS)
def test_ticks_lie_inside_their_ranges_and_sets_differ_in_size(synthetic: Samples, window: dict) -> None:
    scene = scene_of(synthetic(**window))
    for row in scene.rows:
        for panel, sets in ((row, row.ticks), (row.side, (row.side.ticks,))):
            assert all(panel.low <= tick.at <= panel.high for ticks in sets for tick in ticks)
    assert all(0 <= tick.at < scene.time.steps for ticks in scene.time.ticks for tick in ticks)
    assert all(-0.5 <= tick.at < scene.phases.width for tick in scene.phases.ticks)
    assert all(len(ticks) <= most for ticks, most in zip(scene.time.ticks, (4, 8, 16), strict=True))
    assert all(1 <= len(tick.lines) <= 2 for ticks in scene.time.ticks for tick in ticks)


@given(window=WINDOWS)
def test_lines_cover_the_steps_of_their_part_of_the_window_and_lie_in_their_row(
    synthetic: Samples, window: dict
) -> None:
    explained = synthetic(**window)
    scene = scene_of(explained)
    past, all_steps = (0, explained.look_back), (0, len(explained.times))
    future = (explained.look_back, explained.horizon)
    expected = {"level": all_steps, "baseline": all_steps, "look-back": past, "truth": future, "forecast": future}
    for row in scene.channels:
        for one in row.lines:
            assert (one.first, len(one.values)) == expected[one.role]
            assert all(row.low <= value <= row.high for value in one.values if value is not None)
    drawn = {one.role for row in scene.rows for one in row.lines}
    assert ("truth" in drawn) == window["with_truth"]


def test_lines_have_the_explanations_values_to_a_millionth_of_the_row(synthetic: Samples) -> None:
    explained = synthetic(5)
    for column, row in enumerate(scene_of(explained).rows):
        for role, values in (
            ("look-back", explained.history),
            ("baseline", explained.expected),
            ("truth", explained.truth),
        ):
            drawn = np.array(line(row, role).values, dtype=np.float64)
            np.testing.assert_allclose(drawn, values[:, column], rtol=0, atol=1e-6 * (row.high - row.low))


@given(window=WINDOWS)
def test_bands_and_gate_map_equal_the_mask(synthetic: Samples, window: dict) -> None:
    explained = synthetic(**window)
    scene, size = scene_of(explained), explained.patch_len
    for column, row in enumerate(scene.rows):
        for state, cells in (("open", explained.mask), ("missing", explained.missing)):
            shaded = [(band.first, band.last) for band in row.bands if band.state == state]
            patches = np.flatnonzero(cells[:, column]).tolist()
            assert shaded == [(patch * size, (patch + 1) * size - 1) for patch in patches]
            assert [states[column] == state for states in scene.gates.state] == cells[:, column].tolist()
    np.testing.assert_allclose(scene.gates.probability, explained.probability, atol=5e-5)


def test_a_gate_has_channel_time_state_and_probability(synthetic: Samples) -> None:
    explained = synthetic(2)
    texts = scene_of(explained).gates.text
    for token, text in zip(explained.tokens(), [row[column] for column in (0, 1) for row in texts], strict=True):
        state = "open" if token.open else "missing" if token.missing else "closed"
        assert text == f"{token.channel}, {token.start} to {token.end}: {state}, probability {token.probability:.2f}"


def test_words_equal_those_of_the_explanation(with_covariates: ExplainedForecast) -> None:
    scene = scene_of(with_covariates)
    assert scene.words == with_covariates.in_words()
    assert with_covariates.at in scene.headline
    assert f"read {with_covariates.open_count} of" in scene.rate


def test_a_document_is_plain_json_that_keeps_every_number(with_covariates: ExplainedForecast) -> None:
    scene = scene_of(with_covariates)
    document = scene.document()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert [row["name"] for row in document["rows"]] == [row.name for row in scene.rows]
    assert document["rows"][0]["lines"][0]["values"] == list(scene.rows[0].lines[0].values)
    assert None in document["rows"][0]["lines"][2]["values"]


def test_the_same_explanation_gives_the_same_scene(synthetic: Samples) -> None:
    assert scene_of(synthetic(3)) == scene_of(synthetic(3))


def test_covariates_follow_the_channels_with_their_responses(with_covariates: ExplainedForecast) -> None:
    scene = scene_of(with_covariates)
    assert [row.kind for row in scene.rows] == ["channel"] * 3 + ["known"] * 2
    holiday = scene.rows[3]
    assert line(holiday, "known").values == tuple(with_covariates.known[:, 0])
    assert [curve.name for curve in holiday.side.curves] == ["load", "heat"]
    assert [key.name for key in scene.key] == ["load", "heat"]
    assert {curve.style for curve in holiday.side.curves} == {0, 1}


def test_a_channel_that_is_not_forecast_has_no_forecast_line(with_covariates: ExplainedForecast) -> None:
    rows = scene_of(with_covariates).channels
    assert [any(one.role == "forecast" for one in row.lines) for row in rows] == [True, True, False]


def test_profiles_of_two_cycles_lie_next_to_each_other_with_equal_width(with_covariates: ExplainedForecast) -> None:
    scene = scene_of(with_covariates)
    side = scene.rows[0].side
    day, week = side.curves
    assert (len(day.values), len(week.values)) == (24, 168)
    assert scene.phases.width == 48
    assert max(day.at) < side.borders[0] + 0.5 <= min(week.at) + 0.5
    assert max(week.at) < 48
    assert len(side.marks) == 2
    assert scene.phases.title == "phase (cycles of 24 and 168)"


def test_the_legend_names_exactly_what_is_drawn(synthetic: Samples, with_covariates: ExplainedForecast) -> None:
    plain = scene_of(synthetic(2, with_truth=False, with_missing=False))
    roles = [entry.role for entry in plain.legend]
    assert roles == ["look-back", "forecast", "level", "baseline", "open", "made"]
    more = {entry.role: entry.text for entry in scene_of(with_covariates).legend}
    assert more.keys() == {*roles, "truth", "known", "missing"}
    assert more["baseline"] == "profile at this level + effects"


def test_of_many_channels_those_with_the_most_open_tokens_are_kept(synthetic: Samples) -> None:
    explained = synthetic(20, with_missing=False)
    mask = np.zeros_like(explained.mask)
    mask[0, -1] = mask[:2, -2] = True
    scene = scene_of(changed(explained, mask=mask, evidence=np.zeros_like(explained.evidence))).most_read(MANY)
    names = [*explained.channels[: MANY - 2], *explained.channels[-2:]]
    assert [row.name for row in scene.rows] == list(scene.gates.channels) == names
    assert scene.gates.state[1][-2:] == ("open", "closed")
    assert all(len(row) == MANY for row in (*scene.gates.probability, *scene.gates.text))


def test_few_channels_are_all_kept(with_covariates: ExplainedForecast) -> None:
    scene = scene_of(with_covariates)
    assert scene.most_read(MANY) == scene


@pytest.mark.parametrize(("at_most", "size"), [(2, 3), (3, 3), (5, 3), (6, 6), (99, 6)])
def test_the_largest_set_of_ticks_that_fits_is_chosen(at_most: int, size: int) -> None:
    sets = tuple(tuple(Tick(float(at), ("",)) for at in range(count)) for count in (3, 6))
    assert len(fitting(sets, at_most)) == size


def test_a_response_leaves_room_for_its_title(with_covariates: ExplainedForecast) -> None:
    sides = [row.side for row in scene_of(with_covariates).rows if row.side.title == "response (in std)"]
    assert sides
    for side in sides:
        highest = max(value for curve in side.curves for value in curve.values if value is not None)
        assert highest < side.high - 0.15 * (side.high - side.low)
