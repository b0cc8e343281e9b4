"""A dossier states facts that can be computed in another way, escapes every name, and is the same when made again."""

import hashlib
import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ibforecast import IBForecaster, UsageError
from ibforecast.core import document
from ibforecast.core.explained import ExplainedForecast
from ibforecast.dossier import FORMAT, VERSION, Dossier
from ibforecast.dossier.facts import NaiveErrors
from ibforecast.dossier.headings import HEADINGS
from ibforecast.dossier.limits import weaknesses

ROWS, LOOK_BACK, HORIZON, GAP = 400, 48, 12, (200, 205)
EVIL = "<script>alert('x')</script> & \"y\""
TINY = """
[model]
budget = 0.25
patch_len = 12
[model.gate]
width = 16
[model.readout]
width = 16
[train]
epochs = 2
batch = 64
"""


def table(rows: int = ROWS) -> pd.DataFrame:
    """Return a table with an odd name, a channel that is constant in training, and a gap."""
    hour, noise = np.arange(rows), np.random.default_rng(5).normal(size=(rows, 2))
    values = (np.sin(2 * np.pi * hour / 24)[:, None] + 0.3 * noise) * (20.0, 3.0) + (900.0, 40.0)
    values[slice(*GAP), 1] = np.nan
    when = pd.date_range("2023-01-01", periods=rows, freq="h")
    return pd.DataFrame({"when": when, EVIL: values[:, 0], "wind": values[:, 1], "flat": np.full(rows, 7.0)})


@pytest.fixture(scope="module")
def looking(tmp_path_factory: pytest.TempPathFactory) -> IBForecaster:
    """A model that looks at the whole window."""
    recipe = tmp_path_factory.mktemp("recipe") / "tiny.toml"
    recipe.write_text(TINY)
    return IBForecaster(HORIZON, LOOK_BACK, recipe=str(recipe), device="cpu").fit(table())


@pytest.fixture(scope="module")
def sealed() -> IBForecaster:
    """A sealed model whose receipts are exact."""
    return IBForecaster(HORIZON, LOOK_BACK, recipe="additive", epochs=1, device="cpu").fit(table())


@pytest.fixture(scope="module")
def dossier(looking: IBForecaster) -> Dossier:
    return looking.dossier(table(), windows=20)


@pytest.fixture(scope="module")
def of_sealed(sealed: IBForecaster) -> Dossier:
    return sealed.dossier(table(), windows=20, purpose=f"To try {EVIL}")


# --- Facts ---


def test_errors_in_units_are_those_of_forecasts_made_one_by_one(sealed: IBForecaster, of_sealed: Dossier) -> None:
    values = table().drop(columns="when").to_numpy()
    source, first = sealed.open(table()), sealed.fitted.split.validation_end - LOOK_BACK
    places = np.arange(20) * (ROWS - first - LOOK_BACK - HORIZON) // 19 + first
    errors: dict[int, list[np.ndarray]] = {0: [], 1: [], 24: [], 168: []}  # 0: the model's
    for start in places.tolist():
        now = start + LOOK_BACK
        truth = values[now : now + HORIZON]
        explained = sealed.desk.explain(source, start)
        errors[0].append(explained.forecast - truth)
        errors[1].append(values[now - 1] - truth)
        for cycle in (24, 168):
            again = values[now - cycle : now - cycle + HORIZON]
            errors[cycle].append(np.where(np.isnan(again), values[now - 1], again) - truth)
    for column, row in enumerate(of_sealed.facts.accuracy.channels):
        kinds = [np.stack(off)[..., column] for off in errors.values()]
        mae, rmse = [np.abs(off).mean() for off in kinds], [np.sqrt((off**2).mean()) for off in kinds]
        assert [each.cycle for each in row.naive] == list(errors)[1:]
        assert [row.mae, *(each.mae for each in row.naive)] == pytest.approx(mae, rel=1e-4, abs=1e-5)
        assert [row.rmse, *(each.rmse for each in row.naive)] == pytest.approx(rmse, rel=1e-4, abs=1e-5)


def intervals(model: IBForecaster, rows: pd.DataFrame, channel: str) -> tuple[list[pd.Series], list[pd.Series]]:
    """Return what the 50 % intervals of 20 evenly spaced forecasts contain, and how wide they are."""
    first, last = model.fitted.split.validation_end - LOOK_BACK, ROWS - LOOK_BACK - HORIZON
    inside, widths = [], []
    for start in (np.arange(20) * (last - first) // 19 + first).tolist():
        made = model.predict(rows, rows["when"][start + LOOK_BACK - 1], level=50)
        truth = rows[channel].to_numpy()[start + LOOK_BACK : start + LOOK_BACK + HORIZON]
        inside.append((made[f"{channel}-lo-50"] <= truth) & (truth <= made[f"{channel}-hi-50"]))
        widths.append(made[f"{channel}-hi-50"] - made[f"{channel}-lo-50"])
    return inside, widths


def test_coverage_and_widths_are_those_of_the_intervals_that_predict_gives(
    looking: IBForecaster, dossier: Dossier
) -> None:
    coverage = dossier.facts.coverage
    assert coverage is not None
    assert looking.fitted.calibration is not None
    inside, widths = intervals(looking, table(), "wind")
    (row,) = (row for row in coverage.channels if (row.channel, row.level) == ("wind", 50))
    assert row.covered == pytest.approx(np.mean(inside), abs=1e-6)
    assert row.width == pytest.approx(np.mean(widths), rel=1e-4)
    assert not coverage.same_windows


def test_coverage_of_a_model_with_limits_is_that_of_the_intervals_that_predict_gives() -> None:
    rows = table()[["when", "wind"]].assign(wind=lambda table: np.rint(np.maximum(table["wind"] - 40.0, 0.0)))
    settings = {"limits": {"wind": (0, 3)}, "whole": ["wind"], "epochs": 1, "device": "cpu"}
    model = IBForecaster(HORIZON, LOOK_BACK, recipe="additive", **settings).fit(rows)
    coverage = model.dossier(rows, windows=20).facts.coverage
    assert coverage is not None
    (row,) = (row for row in coverage.channels if row.level == 50)
    inside, widths = intervals(model, rows, "wind")
    assert row.covered == pytest.approx(np.mean(inside), abs=1e-6)
    assert row.width == pytest.approx(np.mean(widths), rel=1e-4)


def test_rows_gaps_and_fingerprints_are_those_of_the_table(looking: IBForecaster, dossier: Dossier) -> None:
    data, split = dossier.facts.data, looking.fitted.split
    values = table().drop(columns="when").to_numpy()
    assert (data.rows, data.first, data.last) == (ROWS, "2023-01-01 00:00", "2023-01-17 15:00")
    assert data.sha256 == looking.fitted.summary.data_sha256
    assert [part.rows for part in data.parts] == [split.train_end, split.validation_end - split.train_end, 80]
    names = (json.dumps([EVIL, "wind", "flat"], indent=1) + "\n").encode()
    assert data.parts[2].sha256 == hashlib.sha256(names + values[-80:].tobytes()).hexdigest()
    odd, wind, flat = data.channels
    assert (odd.missing, wind.missing, wind.longest_gap, data.missing) == (0, 5, 5, 5)
    assert (wind.smallest, wind.largest) == (np.nanmin(values[:, 1]), np.nanmax(values[:, 1]))
    assert wind.mean == pytest.approx(np.nanmean(values[: split.train_end, 1]))
    assert [row.constant for row in (odd, wind, flat)] == [False, False, True]


def test_reads_of_a_sealed_model_are_the_cells_it_lists(sealed: IBForecaster, of_sealed: Dossier) -> None:
    cells = {(cell.channel, cell.steps_back) for cell in sealed.desk.reads()}
    places = {(row.channel, place.newest) for row in of_sealed.facts.reading for place in row.places}
    assert places == cells
    assert sum(row.share for row in of_sealed.facts.reading) == pytest.approx(1)


def test_reads_of_patches_span_the_whole_patch(looking: IBForecaster, dossier: Dossier) -> None:
    reading = dossier.facts.reading
    assert {place.oldest - place.newest for row in reading for place in row.places} == {11}
    assert {place.newest % 12 for row in reading for place in row.places} == {0}
    cells = LOOK_BACK * len(looking.fitted.channels)
    assert sum(row.values for row in reading) / cells == pytest.approx(dossier.facts.audit.open_rate)


def test_drivers_are_those_of_the_model_on_evenly_spaced_windows(sealed: IBForecaster, of_sealed: Dossier) -> None:
    expected = sealed.drivers(table(), windows=20)
    assert of_sealed.facts.drivers.rows == expected.rows
    assert of_sealed.facts.drivers.windows == 20
    content = json.loads(of_sealed.to_json())["drivers"]
    assert content["windows"] == 20
    assert [(row["channel"], row["source"], row["share"]) for row in content["rows"]] == [
        (source.channel, source.source, source.share) for source in expected.sources()
    ]


def test_the_picture_itemises_the_same_forecast_as_the_receipt_below_it(dossier: Dossier) -> None:
    channel, page = dossier.facts.example.receipt.channel, dossier.to_html()
    titles = re.findall(r"What adds up to the mean forecast of ([^<]*?)(?: \(amounts|<)", page)
    assert [title[-9:] for title in titles] == [html.escape(channel)[-9:]]  # long names are shortened in the middle


def test_unread_values_are_a_driver_of_a_model_that_is_not_sealed(dossier: Dossier, of_sealed: Dossier) -> None:
    assert "unread" in {row.part for row in dossier.facts.drivers.rows}
    assert "<td>values that were not read</td><td>unread</td>" in re.sub(r" class=\"\w+\"", "", dossier.to_html())
    assert "unread" not in {row.part for row in of_sealed.facts.drivers.rows}


def test_the_example_is_the_newest_forecast_and_passes_every_check(sealed: IBForecaster, of_sealed: Dossier) -> None:
    example = of_sealed.facts.example
    assert example.explained.sha256 == sealed.explain(table()).with_receipts([EVIL]).sha256
    assert example.receipt == sealed.explain(table()).itemised(EVIL)
    assert example.verification
    assert {"table", "receipts"} <= {check.name for check in example.verification.checks}


def test_the_audit_is_that_of_the_same_windows(looking: IBForecaster, dossier: Dossier) -> None:
    audit = looking.audit(table(), windows=20)
    assert replace(dossier.facts.audit, finished="") == replace(audit, finished="")


# --- Weaknesses ---


def test_weaknesses_follow_from_the_measurements(dossier: Dossier) -> None:
    facts, texts = dossier.facts, "\n".join(dossier.weaknesses)
    assert "wind: 5 of 400 values are missing, 5 at once." in dossier.weaknesses
    assert "flat: the training rows have only one value, so nothing could be learned from them." in dossier.weaknesses
    assert "Only 20 windows were measured" in texts
    naive = NaiveErrors(1, 1.0, 1.5), NaiveErrors(24, 3.0, 1.0), NaiveErrors(168, 3.0, 3.0)
    row = replace(facts.accuracy.channels[1], mae=2.0, rmse=2.0, naive=naive)
    worse = replace(facts, accuracy=replace(facts.accuracy, channels=(row,)))
    assert "wind: the model is worse than repeating the last value (MAE and RMSE), the last 24 steps (RMSE)." in (
        weaknesses(worse)
    )
    assert replace(row, naive=naive[2:]).worse == ()


@pytest.mark.parametrize(("error", "is_named"), [(None, False), (0.0, False), (0.25, True)])
def test_only_amounts_that_are_estimates_have_a_standard_error(
    dossier: Dossier, error: float | None, is_named: bool
) -> None:
    example = replace(dossier.facts.example, receipt=replace(dossier.facts.example.receipt, error=error))
    texts = "\n".join(weaknesses(replace(dossier.facts, example=example)))
    assert ("their largest standard error is 0.25" in texts) == is_named
    assert ("sampled" in texts) == is_named


def test_a_loss_to_the_best_yardstick_of_evaluate_is_named() -> None:
    hour = np.arange(600)
    weekly = table(600).assign(wind=40 + 5 * np.sin(2 * np.pi * hour / 168))  # the last week again is exact
    model = IBForecaster(HORIZON, LOOK_BACK, recipe="additive", epochs=1, cycle=24, device="cpu").fit(weekly)
    (row,) = (row for row in model.dossier(weekly, windows=20).facts.accuracy.channels if row.channel == "wind")
    assert [each.cycle for each in row.best] == [168, 168]
    assert "the last 168 steps (MAE and RMSE)" in row.worse
    (own,) = (own for own in model.evaluate(weekly).channels if own.channel == "wind")
    assert own.naive_cycle == 168


def test_intervals_of_few_windows_are_a_weakness(dossier: Dossier) -> None:
    coverage = dossier.facts.coverage
    assert coverage is not None
    facts = replace(dossier.facts, coverage=replace(coverage, calibrated_on=5))
    assert "The intervals were calibrated on only 5 windows, so their levels are rough." in weaknesses(facts)


def test_a_model_that_is_not_calibrated_says_so(dossier: Dossier) -> None:
    facts = dossier.facts
    assert any(text.startswith("The model is not calibrated") for text in weaknesses(replace(facts, coverage=None)))


def test_an_audit_below_the_bar_is_a_weakness(dossier: Dossier) -> None:
    audit = dossier.facts.audit
    low = replace(audit.fidelity, clipped_comprehensiveness=0.5, sufficiency=0.1)
    texts = weaknesses(replace(dossier.facts, audit=replace(audit, fidelity=low)))
    assert any(text.startswith("Audit: fidelity must be at least 0.9 (measured 0.4000") for text in texts)


def test_measuring_on_the_windows_of_the_calibration_is_a_weakness(looking: IBForecaster) -> None:
    made = looking.dossier(table(), "validation", windows=2)
    assert made.facts.coverage is not None
    assert made.facts.coverage.same_windows
    assert any("which flatters them" in text for text in made.weaknesses)
    assert any("The errors are of the validation part" in text for text in made.weaknesses)


# --- Documents ---


class Tags(HTMLParser):
    """The names of all elements, and the values of all attributes that could load something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.targets: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]
        self.targets += [str(value) for name, value in attrs if name in ("href", "src", "xlink:href", "action", "data")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_no_name_is_unescaped_and_nothing_is_loaded(of_sealed: Dossier) -> None:
    html = of_sealed.to_html()
    tags = Tags(html)
    assert not tags.names & {"script", "link", "img", "iframe", "object", "embed", "form", "base"}
    assert "<script" not in html
    assert tags.text.count(EVIL) > 10
    assert f"To try {EVIL}" in tags.text
    assert all(re.fullmatch(r"#c\d+", target) for target in tags.targets)
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", html)


def test_the_page_has_every_chapter_and_says_that_no_compliance_is_claimed(dossier: Dossier) -> None:
    html = dossier.to_html()
    assert re.findall(r'<h2 id="c(\d+)">(\d+) ', html) == [(str(n), str(n)) for n in range(1, 13)]
    assert "No compliance with any law or guidance is claimed." in html
    assert "Not stated. The owner of the model must state it" in html
    assert {number for row in HEADINGS for number in row.chapters} <= set(range(1, 12))


def test_the_json_document_has_its_fingerprint_and_a_true_explanation(looking: IBForecaster, dossier: Dossier) -> None:
    content = document.read(dossier.to_json(), FORMAT, VERSION)
    explained = ExplainedForecast.from_json(json.dumps(content["example"]["explanation"]))
    assert looking.verify(explained, table())
    assert content["use"]["claim"] == "conditional"
    assert content["accuracy"]["channels"][1]["mae"] == dossier.facts.accuracy.channels[1].mae
    assert content["limits"]["measured"] == list(dossier.weaknesses)


def test_undefined_numbers_become_null(dossier: Dossier) -> None:
    facts = dossier.facts
    row = replace(facts.accuracy.channels[0], mae=float("nan"))
    made = Dossier(replace(facts, accuracy=replace(facts.accuracy, channels=(row,))))
    assert json.loads(made.to_json())["accuracy"]["channels"][0]["mae"] is None
    assert "undefined" in made.to_html()


def test_the_same_inputs_give_the_same_document_except_the_date(looking: IBForecaster, dossier: Dossier) -> None:
    again = looking.dossier(table(), windows=20)
    one, other = (
        Dossier(replace(each.facts, audit=replace(each.facts.audit, finished="now"))) for each in (dossier, again)
    )
    assert one.to_html() == other.to_html()
    assert one.to_json() == other.to_json()


def test_a_dossier_is_saved_as_html_or_json(dossier: Dossier, tmp_path: Path) -> None:
    assert dossier.save(tmp_path / "a.html").read_text("utf8") == dossier.to_html()
    assert dossier.save(tmp_path / "a.json").read_text("utf8") == dossier.to_json()


# --- Refusals ---


def test_another_table_is_refused(looking: IBForecaster) -> None:
    with pytest.raises(
        UsageError, match=r"must be made from the table .+ \(got one that is another\); give that table"
    ):
        looking.dossier(table(ROWS - 1))


@pytest.mark.parametrize("windows", [-1, 0, 1])
def test_too_few_windows_are_refused_before_the_table_is_read(looking: IBForecaster, windows: int) -> None:
    with pytest.raises(UsageError, match=rf"needs at least 2 windows \(got windows={windows}\); try 1024"):
        looking.dossier("no-such-table.csv", windows=windows)
