"""Tables whose nights are empty: the advice, and models that read an empty cell at night as 0."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ibforecast import IBForecaster, UsageError, VerificationError
from ibforecast.core.explained import ExplainedForecast

NIGHT = "23:00..04:00"
ROWS = 700


def table(empty: tuple[int, ...] = (0, 1, 2, 3, 4, 23), step: str = "h") -> pd.DataFrame:
    """Make counts by day, and empty nights; a cell at noon is missing, too."""
    times, random = pd.date_range("2024-01-01", periods=ROWS, freq=step), np.random.default_rng(0)
    day = 20 + 10 * np.sin(2 * np.pi * (times.hour + times.minute / 60) / 24)
    values = random.poisson(day.to_numpy()[:, None], (ROWS, 2)).astype(float)
    values[np.isin(times.hour, empty)] = np.nan
    values[ROWS - 30, 0] = np.nan  # row 670 is at 22:00
    return pd.DataFrame({"time": times, "departures": values[:, 0], "arrivals": values[:, 1]})


def advice(rows: pd.DataFrame, **settings: Any) -> dict[str, str]:
    return {each.topic: each.remedy for each in IBForecaster(horizon=12, **settings).check(rows).advice}


@pytest.fixture(scope="module")
def model() -> IBForecaster:
    settings: dict[str, Any] = {"sealed": True, "epochs": 1, "device": "cpu", "zero_at": [NIGHT]}
    return IBForecaster(horizon=12, look_back=48, **settings).fit(table())


@pytest.fixture(scope="module")
def explained(model: IBForecaster) -> ExplainedForecast:
    return model.explain(table())


# --- The advice ---


@pytest.mark.parametrize(
    ("empty", "step", "spans"),
    [
        ((0, 1, 2, 3, 4, 23), "h", "23:00..04:00"),
        ((0, 1, 2, 3, 4, 23), "30min", "23:00..04:30"),
        ((3,), "h", "03:00"),
        ((0, 1, 12, 13, 14), "h", "12:00..14:00,00:00..01:00"),
    ],
)
def test_check_names_the_option_that_reads_empty_hours_as_zero(empty: tuple[int, ...], step: str, spans: str) -> None:
    remedy = advice(table(empty, step))["empty hours"]
    assert f"if nothing happened then, read them as 0: --zero-at {spans};" in remedy
    assert "--irregular by_row --cycle" in remedy
    assert "empty hours" not in advice(table(empty, step), zero_at=spans.split(","))


def test_steps_of_seconds_or_between_the_minutes_get_no_times() -> None:
    for step in ("10s", "45min", "50min"):
        rows = table(empty=(), step=step)
        rows.loc[rows.index % 24 < 5, ["departures", "arrivals"]] = np.nan
        assert "--zero-at" not in advice(rows, cycle=24)["empty hours"]


def test_phases_of_days_are_not_times_of_a_day() -> None:
    rows = table(empty=(), step="D")
    rows.loc[rows["time"].dt.dayofweek == 6, ["departures", "arrivals"]] = np.nan
    assert "--zero-at" not in advice(rows)["empty phases"]


# --- The setting, from a fit to a receipt ---


def test_an_empty_cell_at_night_is_zero_and_another_gap_stays_one(explained: ExplainedForecast) -> None:
    rows = table()
    last = rows.iloc[-48:]
    night = last["time"].dt.hour.isin([0, 1, 2, 3, 4, 23]).to_numpy()
    assert last["departures"].isna().to_numpy()[night].all()
    assert (explained.history[night] == 0.0).all()
    assert np.isnan(explained.history).sum() == 1  # at 22:00
    assert explained.missing.sum() == 1


def test_the_explanation_states_the_setting_and_verifies_with_its_receipts(
    model: IBForecaster, explained: ExplainedForecast
) -> None:
    document = json.loads(explained.with_receipts().to_json())
    assert document["window"]["zero_at"] == [NIGHT]
    assert f"Empty cells of the table were read as 0 at {NIGHT}." in document["in_words"]
    verification = model.verify(json.dumps(document), table())
    assert verification, str(verification)
    assert {"table", "unread", "receipts"} <= {check.name for check in verification.checks}


def test_a_document_that_leaves_the_setting_out_is_refused(model: IBForecaster, explained: ExplainedForecast) -> None:
    silent = dataclasses.replace(explained, zero_at=(), host=None)
    verification = model.verify(silent.to_json(), table())
    assert [check.name for check in verification.checks if not check.passed] == ["names"]
    with pytest.raises(VerificationError):
        ExplainedForecast.from_json(explained.to_json().replace(NIGHT, "23:00..05:00"))


def test_a_saved_model_reads_tables_as_before(
    model: IBForecaster, explained: ExplainedForecast, tmp_path: Path
) -> None:
    model.save(tmp_path / "model")
    loaded = IBForecaster.load(tmp_path / "model", device="cpu")
    assert loaded.zero_at == (NIGHT,)
    assert loaded.explain(table()).sha256 == explained.sha256
    assert json.loads((tmp_path / "model" / "model.json").read_text())["layout"]["zero_at"] == [NIGHT]


def test_a_model_without_the_setting_keeps_its_fingerprint() -> None:
    plain = IBForecaster(horizon=12, look_back=48, sealed=True, epochs=1, device="cpu").fit(table(empty=()))
    assert "zero_at" not in json.loads(plain.fitted.files()["model.json"])["layout"]
    assert "zero_at" not in json.loads(plain.explain(table(empty=())).to_json())["window"]


def test_a_cell_that_is_answered_with_nothing_is_zero_at_night(
    model: IBForecaster, explained: ExplainedForecast
) -> None:
    rows = table()
    reader = model.reader(explained.at)
    at = rows.set_index("time")
    reader.answer({cell: at.loc[cell.time, cell.channel] for cell in reader.asks})
    assert reader.explain().forecast.tobytes() == explained.forecast.tobytes()


def test_an_exported_model_reads_empty_nights_as_zero(
    model: IBForecaster, explained: ExplainedForecast, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime", reason="needs the onnx extra")
    from ibforecast.adapters.onnx import OnnxForecaster

    model.to_onnx(tmp_path / "model.onnx")
    rows = table()
    exported = OnnxForecaster(tmp_path / "model.onnx")
    again = exported.explain(rows[["departures", "arrivals"]].to_numpy(), rows["time"].to_numpy())
    assert np.array_equal(again.history, explained.history, equal_nan=True)
    assert again.zero_at == (NIGHT,)


def test_a_dossier_states_the_setting(model: IBForecaster) -> None:
    assert f"empty cells are read as 0 at {NIGHT}" in model.dossier(table(), windows=4).to_html()


def test_steps_of_a_day_have_no_times_of_the_day() -> None:
    with pytest.raises(UsageError, match=r"shorter than a day \(got 1d\)"):
        IBForecaster(horizon=7, zero_at=[NIGHT]).check(table(empty=(), step="D"))


def test_a_span_that_is_none_is_refused_when_a_forecaster_is_made() -> None:
    with pytest.raises(UsageError, match=r"zero_at must have times of the day \(got 'night'\)"):
        IBForecaster(horizon=12, zero_at=["night"])
