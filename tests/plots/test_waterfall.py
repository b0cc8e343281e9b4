"""Receipts in a picture: the waterfall adds up, colours follow signs, and the calendar is a line."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.core.samples import changed

from ibforecast.core import receipt
from ibforecast.core.errors import UsageError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.plots import page
from ibforecast.plots.explanation import draw, figure
from ibforecast.plots.labels import MANY
from ibforecast.plots.page import moment
from ibforecast.plots.scene import Scene, scene_of
from ibforecast.plots.sheet import band_fill, bar_fill, sheet_of, tone_fill
from ibforecast.plots.svg import to_svg
from ibforecast.plots.waterfall import LARGEST, Waterfall, waterfall_of

Samples = Callable[..., ExplainedForecast]
SVG = "{http://www.w3.org/2000/svg}"


def waterfall(scene: Scene) -> Waterfall:
    assert scene.waterfall is not None
    return scene.waterfall


def printed(number: str) -> Decimal:
    return Decimal(number.replace("−", "-"))


def warmth(fill: str) -> int:
    """Return by how much a colour is more red than blue."""
    return int(fill[1:3], 16) - int(fill[5:7], 16)


@given(
    channels=some.integers(1, 4),
    look_back=some.integers(1, 12).map(lambda patches: 8 * patches),
    sealed=some.booleans(),
    seed=some.integers(0, 1000),
)
def test_the_printed_numbers_add_up_to_the_last_digit(
    synthetic: Samples, itemisable: Samples, channels: int, look_back: int, sealed: bool, seed: int
) -> None:
    explained = itemisable(synthetic(channels, look_back=look_back, horizon=6, seed=seed), sealed=sealed)
    *amounts, forecast = waterfall(scene_of(explained)).bars
    assert sum(printed(bar.number) for bar in amounts) == printed(forecast.number)
    assert [bar.before for bar in amounts[1:]] == [bar.after for bar in amounts[:-1]]
    assert amounts[-1].after == forecast.amount


def test_the_largest_amounts_have_their_own_bars_and_the_others_share_one(
    synthetic: Samples, itemisable: Samples
) -> None:
    explained = itemisable(synthetic(7), sealed=False)
    bars, own = waterfall(scene_of(explained, "channel 1")).bars, explained.itemised("channel 1")
    assert [bar.part for bar in bars] == ["calendar", *["read"] * LARGEST, "others", "unread", "forecast"]
    assert bars[LARGEST + 1].text == f"{explained.open_count - LARGEST} other tokens read"
    unit = 10.0 ** -receipt.decimals_of(float(explained.units.std[1]), receipt.COARSE)
    largest = sorted(own.read, key=lambda amount: -abs(amount))[:LARGEST]
    np.testing.assert_allclose([bar.amount for bar in bars[1 : LARGEST + 1]], largest, rtol=0, atol=1.01 * unit)
    column = np.argwhere(explained.mask)[own.read.index(largest[0])][1]
    assert bars[1].text.startswith(f"{explained.channels[column]}, 2018-06-2")


def test_one_step_ahead_can_be_itemised(synthetic: Samples, itemisable: Samples) -> None:
    explained = itemisable(synthetic(3))
    scene, own = scene_of(explained, "channel 1", 2), explained.itemised("channel 1", 2)
    assert waterfall(scene).title.startswith(f"What adds up to the forecast of channel 1 for {explained.times[-95]}")
    assert waterfall(scene).bars[-1].amount == pytest.approx(own.forecast, abs=0.5)
    patch, column = np.argwhere(explained.mask)[0]
    assert scene.gates.adds[patch][column].endswith(f"to the forecast of channel 1 for {explained.times[-95]}")
    with pytest.raises(UsageError, match=r"steps ahead from 1 to 96 \(got 97\)"):
        scene_of(explained, "channel 1", 97)


def test_each_of_a_few_covariates_known_ahead_has_a_bar(
    with_covariates: ExplainedForecast, itemisable: Samples
) -> None:
    explained = itemisable(with_covariates)
    bars, own = waterfall(scene_of(explained, "load")).bars, explained.itemised("load")
    known = [bar for bar in bars if bar.part == "known ahead"]
    assert [bar.text for bar in known] == ["holiday, known ahead", "plan_of_the_…rk_operator, known ahead"]
    unit = 10.0 ** -receipt.decimals_of(float(explained.units.std[0]), receipt.COARSE)
    assert [bar.amount for bar in known] == pytest.approx(own.known, abs=1.01 * unit)


def test_many_covariates_known_ahead_share_a_bar(with_covariates: ExplainedForecast, itemisable: Samples) -> None:
    explained = itemisable(with_covariates)
    own = explained.itemised("load")
    parts = replace(own, known=(*own.known, 1.0, 2.0), calendar=own.calendar - 3)
    (bar,) = (bar for bar in waterfall_of(explained, parts).bars if bar.part == "known ahead")
    assert bar.text == "4 covariates known ahead"
    unit = 10.0 ** -receipt.decimals_of(float(explained.units.std[0]), receipt.COARSE)
    assert bar.amount == pytest.approx(sum(own.known) + 3, abs=1.01 * unit)


def test_by_default_the_channel_that_moves_most_is_itemised(synthetic: Samples, itemisable: Samples) -> None:
    explained = itemisable(synthetic(4))
    own = [explained.itemised(name) for name in explained.channels]
    moves = [abs(sum(one.read)) / std for one, std in zip(own, explained.units.std, strict=True)]
    assert waterfall(scene_of(explained)).channel == explained.channels[int(np.argmax(moves))]


@pytest.mark.parametrize("channel", ["load", "heat"])
def test_colours_follow_the_signs_of_the_amounts(
    with_covariates: ExplainedForecast, itemisable: Samples, channel: str
) -> None:
    explained = itemisable(with_covariates)
    scene, read = scene_of(explained, channel), explained.itemised(channel).read
    bands = {
        (band.first // explained.patch_len, column): band
        for column, row in enumerate(scene.channels)
        for band in row.bands
        if band.state == "open"
    }
    places = receipt.places(explained)
    assert bands.keys() == set(places)
    for place, amount in zip(places, read, strict=True):
        assert np.sign(warmth(band_fill(bands[place]))) == np.sign(amount)
    assert max(abs(band.tone or 0) for band in bands.values()) == 1
    assert all(np.sign(warmth(bar_fill(bar))) == np.sign(bar.amount) for bar in waterfall(scene).bars[1:-1])


def test_a_larger_amount_has_a_stronger_colour() -> None:
    for sign in (1, -1):
        strengths = [abs(warmth(tone_fill(sign * size))) for size in (1e-6, 0.1, 0.5, 1.0)]
        assert strengths == sorted(set(strengths))
        assert strengths[0] > 0
    assert warmth(tone_fill(0.0)) == 0


def test_the_calendar_is_a_line_over_the_horizon_and_the_usual_value_one_over_the_look_back(
    with_covariates: ExplainedForecast, itemisable: Samples
) -> None:
    explained = itemisable(with_covariates)
    scene = scene_of(explained)
    for row, name in zip(scene.channels, explained.channels, strict=True):
        lines = {line.role: line for line in row.lines}
        assert not lines.keys() & {"baseline", "level"}
        assert (lines["usual"].first, len(lines["usual"].values)) == (0, explained.look_back)
        if name in explained.past:
            assert "calendar" not in lines
            continue
        amounts = explained.amounts(name)
        expected = amounts.calendar + amounts.known.sum(axis=0)
        assert lines["calendar"].first == explained.look_back
        drawn = np.array(lines["calendar"].values, dtype=np.float64)
        np.testing.assert_allclose(drawn, expected, rtol=0, atol=1e-6 * (row.high - row.low))
    texts = {entry.role: entry.text for entry in scene.legend}
    assert texts["calendar"] == "calendar + known ahead"
    assert not texts.keys() & {"baseline", "level", "open"}


def test_the_usual_value_is_that_of_the_receipts(synthetic: Samples, itemisable: Samples) -> None:
    explained = itemisable(synthetic(2))
    for column, row in enumerate(scene_of(explained).rows):
        (usual,) = (line.values for line in row.lines if line.role == "usual")
        tolerance = 1e-6 * (row.high - row.low)
        np.testing.assert_allclose(np.array(usual, float), explained.usual[:, column], rtol=0, atol=tolerance)


def test_a_document_with_receipts_has_waterfall_and_colours_but_no_calendar(
    synthetic: Samples, itemisable: Samples
) -> None:
    explained = itemisable(synthetic(3))
    read = ExplainedForecast.from_json(explained.with_receipts().to_json())
    assert read.host is None
    own, scene = scene_of(explained), scene_of(read)
    assert scene.waterfall == own.waterfall
    assert [row.bands for row in scene.rows] == [row.bands for row in own.rows]
    assert not any(line.role == "calendar" for row in scene.rows for line in row.lines)
    assert "calendar" not in {entry.role for entry in scene.legend}


def test_of_many_channels_only_the_itemised_one_has_a_calendar(synthetic: Samples, itemisable: Samples) -> None:
    explained = itemisable(synthetic(MANY + 1, horizon=4))
    rows = scene_of(explained, explained.channels[-1]).rows
    assert [any(line.role == "calendar" for line in row.lines) for row in rows] == [False] * MANY + [True]


def test_a_token_names_what_it_adds(synthetic: Samples, itemisable: Samples) -> None:
    explained = itemisable(synthetic(2))
    scene, own = scene_of(explained, "channel 0"), explained.itemised("channel 0")
    drawn = to_svg(scene)
    for (patch, column), amount in zip(receipt.places(explained), own.read, strict=True):
        adds = scene.gates.adds[patch][column]
        assert adds == f"adds {amount:+g} to the mean forecast of channel 0"
        assert f"<title>{scene.gates.text[patch][column]}; {adds}</title>" in drawn
    assert sum(text != "" for row in scene.gates.adds for text in row) == explained.open_count


def test_without_a_model_there_is_no_waterfall_and_no_tone(synthetic: Samples) -> None:
    scene = scene_of(synthetic(2))
    assert scene.waterfall is None
    assert {band.tone for row in scene.rows for band in row.bands} == {None}
    assert "waterfall" not in to_svg(scene)


def test_a_window_of_which_nothing_was_read_has_a_waterfall_without_read_places(
    synthetic: Samples, itemisable: Samples
) -> None:
    explained = synthetic(2, with_missing=False)
    nothing = changed(explained, mask=np.zeros_like(explained.mask), evidence=np.zeros_like(explained.evidence))
    scene = scene_of(itemisable(nothing))
    assert [bar.part for bar in waterfall(scene).bars] == ["calendar", "forecast"]
    assert to_svg(scene)


def test_a_channel_that_is_not_forecast_cannot_be_itemised(
    with_covariates: ExplainedForecast, itemisable: Samples
) -> None:
    with pytest.raises(UsageError, match=r"channel must be one that is forecast \(got 'wind'\); try 'load'"):
        scene_of(itemisable(with_covariates), "wind")


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_the_same_receipts_give_the_same_bytes(
    tmp_path: Path, synthetic: Samples, itemisable: Samples, suffix: str
) -> None:
    for name in ("one", "other"):
        draw(itemisable(synthetic(2)), tmp_path / f"{name}{suffix}", channel="channel 1")
    draw(synthetic(2), tmp_path / f"plain{suffix}")
    one, other, plain = ((tmp_path / f"{name}{suffix}").read_bytes() for name in ("one", "other", "plain"))
    assert one == other != plain


def test_png_and_svg_draw_the_same_bars_and_texts(with_covariates: ExplainedForecast, itemisable: Samples) -> None:
    explained = itemisable(with_covariates, sealed=False)
    scene, drawing = scene_of(explained), figure(explained)
    group = ElementTree.fromstring(to_svg(scene)).find(f".//{SVG}g[@class='waterfall']")
    assert group is not None
    fills = [bar.attrib["fill"].lower() for bar in group.findall(f"{SVG}rect")]
    assert fills == [bar_fill(bar).lower() for bar in waterfall(scene).bars]
    texts = {text.text for text in group.iter(f"{SVG}text")}
    assert texts <= {text.get_text() for text in drawing.texts}
    renderer = drawing.canvas.get_renderer()  # type: ignore[attr-defined]
    boxes = [text.get_window_extent(renderer) for text in drawing.texts]
    assert all(box.x0 >= 0 and box.x1 < drawing.bbox.x1 and box.y0 > 0 for box in boxes)
    assert not any(one.overlaps(other) for at, one in enumerate(boxes) for other in boxes[:at])


def test_bars_lie_between_texts_and_numbers(with_covariates: ExplainedForecast, itemisable: Samples) -> None:
    scene = scene_of(itemisable(with_covariates))
    sheet = sheet_of(scene)
    for _, box in sheet.bar_boxes(waterfall(scene)):
        assert sheet.bar_edge - 1 <= box.left < box.right <= sheet.number_edge + 1
        assert sheet.bottom < box.top < box.bottom < sheet.height


def test_a_page_contains_the_receipt_of_the_mean_and_of_every_step(synthetic: Samples, itemisable: Samples) -> None:
    explained = itemisable(synthetic(2, horizon=3))
    receipts = moment(explained)["receipts"]
    assert [one["channel"] for one in receipts] == list(explained.channels)
    for one in receipts:
        expected = [explained.itemised(one["channel"], step) for step in ("mean", 1, 2, 3)]
        assert [step["read"] for step in one["steps"]] == [own.read for own in expected]
        assert [step["forecast"] for step in one["steps"]] == [own.forecast for own in expected]


def test_a_page_contains_only_the_mean_if_there_are_too_many_amounts(
    monkeypatch: pytest.MonkeyPatch, synthetic: Samples, itemisable: Samples
) -> None:
    explained = itemisable(synthetic(2, horizon=3))
    monkeypatch.setattr(page, "MOST_AMOUNTS", 2 * 3 * explained.open_count - 1)
    assert [len(one["steps"]) for one in moment(explained)["receipts"]] == [1, 1]


def test_a_page_without_a_model_contains_no_receipts(synthetic: Samples) -> None:
    assert moment(synthetic(2))["receipts"] == []
