"""Times in words name their zone once; documents and tables keep every offset."""

import numpy as np
import pandas as pd
import pytest

from ibforecast import ExplainedForecast, IBForecaster
from ibforecast.core.errors import DataError
from ibforecast.core.zones import without_offsets
from ibforecast.plots.scene import scene_of

ROWS, LOOK_BACK, HORIZON = 400, 48, 12
ZONE = "Europe/Berlin"
CHANGED = "2023-10-29 00:00+02:00"  # the clock is put back three hours later


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    hour, random = np.arange(ROWS), np.random.default_rng(3)
    values = np.sin(2 * np.pi * hour / 24)[:, None] + 0.5 * random.normal(size=(ROWS, 2))
    when = pd.date_range("2023-10-15", periods=ROWS, freq="h", tz=ZONE)
    return pd.DataFrame({"when": when, "load": values[:, 0], "wind": values[:, 1]})


@pytest.fixture(scope="module")
def model(table: pd.DataFrame) -> IBForecaster:
    return IBForecaster(HORIZON, LOOK_BACK, epochs=1, budget=0.2, device="cpu").fit(table)


@pytest.fixture(scope="module", params=[None, CHANGED])
def explained(model: IBForecaster, table: pd.DataFrame, request: pytest.FixtureRequest) -> ExplainedForecast:
    return model.explain(table, request.param)


def test_words_name_the_zone_once_and_no_offset(explained: ExplainedForecast) -> None:
    alone = ExplainedForecast.from_json(explained.to_json())
    for words in (explained.in_words(), explained.in_words("wind"), explained.in_words("load", 9), alone.in_words()):
        assert words.count(ZONE) == 1
        assert "+01:00" not in words.replace("02:00+01:00", "")
        assert "+02:00" not in words.replace("02:00+02:00", "")


def test_a_time_that_the_clock_showed_twice_keeps_its_offset(model: IBForecaster, table: pd.DataFrame) -> None:
    moments = model.explain(table, CHANGED).moments
    assert [moment for moment in moments if moment.endswith(":00")][:1] == ["2023-10-27 01:00"]
    assert [moment for moment in moments if "+" in moment] == ["2023-10-29 02:00+02:00", "2023-10-29 02:00+01:00"]
    assert len(set(moments)) == len(moments)


def test_documents_and_receipts_keep_every_offset(explained: ExplainedForecast, table: pd.DataFrame) -> None:
    assert explained.times[0] in explained.to_json()
    assert f"made at {explained.at}." in explained.in_words(full=True)
    starts = explained.receipt("load")["start"].tolist()
    assert set(starts) <= set(explained.times)
    assert explained.verify(table)


def test_a_picture_names_the_zone_in_its_title(explained: ExplainedForecast) -> None:
    scene = scene_of(explained)
    assert scene.headline.endswith(f" ({ZONE})")
    assert scene.time.times == explained.moments
    assert not any("+0" in text.replace("02:00+0", "") for row in scene.gates.text for text in row)


def test_dates_and_numbers_stay_as_they_are() -> None:
    labels = ("2023-10-29", "2023-10-30")
    assert without_offsets(labels) == labels
    assert without_offsets(("2023-10-29 00:00:30-05:00",)) == ("2023-10-29 00:00:30",)
    assert without_offsets(("1880-01-01 00:53:28+00:53:28",)) == ("1880-01-01 00:53:28",)


@pytest.mark.parametrize("moment", ["0001-01-01T00:00+14:00", "9999-12-31T23:00-12:00", "9999-12-31T23:00"])
def test_a_moment_at_the_end_of_all_dates_is_refused(moment: str, model: IBForecaster, table: pd.DataFrame) -> None:
    with pytest.raises(DataError, match="a time must be in the years 2 to 9998"):
        model.explain(table, moment)
