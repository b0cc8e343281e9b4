"""Past covariates, covariates known ahead and several cycles, from the table to the checked explanation."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.core.samples import changed

from ibforecast import DataError, ExplainedForecast, IBForecaster, UsageError, VerificationError
from ibforecast.cli.main import run
from ibforecast.core.standardiser import Standardiser
from ibforecast.report import to_html

ROWS, LOOK_BACK, HORIZON = 400, 48, 12
TINY = """
[model.gate]
width = 8
heads = 2
[model.readout]
width = 16
[train]
epochs = 2
batch = 64
"""
BARE = """
[model]
context_rate = {context_rate}
[model.objective]
consistency_weight = 0.0
[model.gate]
attention = "none"
recent = 1
[model.readout]
kind = "linear"
[train]
epochs = {epochs}
batch = 64
learning_rate = {rate}
constant_epochs = 5
decay = 0.5
"""


def hours(rows: int) -> pd.DatetimeIndex:
    return pd.date_range("2024-01-01", periods=rows, freq="h")


def table(rows: int = ROWS, ahead: int = HORIZON) -> pd.DataFrame:
    """Make load and heat to forecast, wind as a past channel, and plan and holidays for `ahead` more rows."""
    random, hour = np.random.default_rng(5), np.arange(rows + ahead)
    values = np.sin(2 * np.pi * hour / 24)[:, None] * (20, 3, 1) + random.normal(size=(rows + ahead, 3))
    values[rows:] = np.nan
    columns = dict(zip(("load", "wind", "heat"), values.T, strict=True))
    known = {"holiday": np.repeat(random.random(rows) < 0.2, 24)[: rows + ahead], "plan": random.normal(size=len(hour))}
    return pd.DataFrame({"when": hours(len(hour))} | columns | known)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    folder = tmp_path_factory.mktemp("recipes")

    def write(text: str = TINY) -> str:
        path = folder / f"{abs(hash(text))}.toml"
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture(scope="module")
def model(recipe: Callable[..., str]) -> IBForecaster:
    return unfitted(recipe()).fit(table())


def unfitted(recipe: str, **settings: Any) -> IBForecaster:
    usual = {"cycle": (24, 168), "past": ["wind"], "future": ["holiday", "plan"], "budget": 0.25, "device": "cpu"}
    return IBForecaster(HORIZON, LOOK_BACK, recipe=recipe, **usual | settings)


# --- From the table to the forecast ---


def test_past_and_future_covariates_have_no_forecast_and_the_other_columns_do(model: IBForecaster) -> None:
    forecast = model.predict(table())
    assert forecast.columns.tolist() == ["when", "load", "heat"]
    assert forecast["when"].tolist() == hours(ROWS + HORIZON)[ROWS:].tolist()
    assert np.isfinite(forecast[["load", "heat"]].to_numpy()).all()
    fitted = model.fitted
    assert fitted.channels == ("load", "heat", "wind")
    assert (fitted.config.past, fitted.config.future, fitted.config.cycles) == (1, 2, (24, 168))
    assert fitted.config.readout.cross_channel


def test_past_channels_are_read_and_count_towards_the_budget(model: IBForecaster) -> None:
    explained = model.explain(table())
    assert explained.mask.shape == (4, 3)
    assert explained.open_count <= 3
    assert {token.channel for token in explained.tokens()} == {"load", "heat", "wind"}
    assert np.isnan(explained.forecast[:, 2]).all()
    assert np.isfinite(explained.forecast[:, :2]).all()


def test_the_explanation_contains_the_covariates_step_by_step(model: IBForecaster) -> None:
    explained, known = model.explain(table()), table()[["holiday", "plan"]].to_numpy(dtype=np.float64)
    assert explained.covariates == ("holiday", "plan")
    np.testing.assert_array_equal(explained.known, known[ROWS - LOOK_BACK :])
    rows = explained.known_to_table()
    assert rows.columns.tolist() == ["time", "covariate", "value", "channel", "effect"]
    assert len(rows) == (LOOK_BACK + HORIZON) * 2 * 2
    usual = rows[(rows["covariate"] == "holiday") & (rows["value"] == 0)]
    assert (usual["effect"] == 0).all()
    assert rows["effect"].any()


def test_covariates_may_be_in_a_separate_table(model: IBForecaster) -> None:
    whole, known = table(), table()[["plan", "when", "holiday"]]
    expected = model.predict(whole)
    pd.testing.assert_frame_equal(model.predict(whole[:ROWS], future=known[ROWS:]), expected, check_exact=True)
    pd.testing.assert_frame_equal(model.predict(whole[:ROWS], future=known), expected, check_exact=True)
    source = model.open(whole[:ROWS], known)
    assert model.explain(source).forecast.tobytes() == model.explain(whole).forecast.tobytes()


def test_another_plan_changes_the_forecast_and_another_past_only_through_the_window(model: IBForecaster) -> None:
    planned, before = table(), table()
    planned.loc[ROWS:, "plan"] += 1
    before.loc[: ROWS - LOOK_BACK - 1, ["plan", "load"]] += 100
    expected = model.predict(table())[["load", "heat"]].to_numpy()
    assert (model.predict(planned)[["load", "heat"]].to_numpy() != expected).all()
    assert model.predict(before)[["load", "heat"]].to_numpy().tobytes() == expected.tobytes()


def test_the_order_of_columns_does_not_matter(model: IBForecaster) -> None:
    shuffled = table()[["plan", "heat", "when", "holiday", "load", "wind"]].assign(note="text")
    pd.testing.assert_frame_equal(model.predict(shuffled), model.predict(table()), check_exact=True)


def test_at_a_moment_of_the_table_covariates_come_from_its_rows(model: IBForecaster) -> None:
    whole = table()
    at = whole["when"][200]
    whole_table, cut = (
        model.explain(whole, at),
        model.explain(whole[:201], future=whole[["when", "holiday", "plan"]][201:]),
    )
    assert whole_table.forecast.tobytes() == cut.forecast.tobytes()
    np.testing.assert_array_equal(whole_table.truth, whole.loc[201:212, ["load", "heat", "wind"]])


def test_a_long_table_has_covariates_under_their_own_ids(model: IBForecaster, recipe: Callable[..., str]) -> None:
    melted = table().astype({"holiday": float}).melt("when", var_name="unique_id", value_name="y").dropna()
    fitted = unfitted(recipe(), channels=["load", "heat"]).fit(melted)
    forecast, expected = fitted.predict(melted), model.predict(table())
    assert forecast["unique_id"].unique().tolist() == ["load", "heat"]
    assert forecast["IBForecast"].to_numpy().tobytes() == expected[["load", "heat"]].to_numpy().T.tobytes()


def test_a_recipe_that_reads_channels_separately_is_refused_for_past_covariates(recipe: Callable[..., str]) -> None:
    text = TINY.replace("width = 16", 'width = 16\nkind = "linear"')
    with pytest.raises(
        UsageError, match=r"cross_channel and by_channel need the \"phase\" or the \"additive\" readout"
    ):
        unfitted(recipe(text)).fit(table())


# --- Verification ---


def test_an_explanation_and_its_document_are_verified(model: IBForecaster) -> None:
    explained = model.explain(table())
    assert explained.verify()
    verification = model.verify(explained.to_json(), table(), exact=True)
    assert verification, str(verification)
    assert all("bit for bit" in check.detail for check in verification.checks if check.name == "replay")
    separate = model.verify(explained, table()[:ROWS], future=table()[["when", "holiday", "plan"]][ROWS:])
    assert separate, str(separate)


def other_values(explained: ExplainedForecast, known: np.ndarray, units: Standardiser) -> ExplainedForecast:
    """Return a copy with other covariates, standardised as an explanation requires."""
    context = replace(explained.context, known=units.standardise(known).astype(np.float32))
    return replace(
        explained, known=known, known_units=units, explanation=replace(explained.explanation, context=context)
    )


def test_a_document_with_false_covariates_is_not_verified(model: IBForecaster) -> None:
    explained = model.explain(table())
    known, units = explained.known, explained.known_units
    assert known is not None
    assert units is not None
    lies = {
        "values": (other_values(explained, known + 1, units), {"replay", "scramble", "rerun"}),
        "usual values": (other_values(explained, known, Standardiser(units.mean + 1, units.std)), {"names"}),
        "spreads": (other_values(explained, known, Standardiser(units.mean, units.std * 2)), {"names"}),
        "names": (replace(explained, covariates=("plan", "holiday")), {"names"}),
        "response": (
            changed(explained, response=explained.response * np.float32(1.5)),
            {"replay", "scramble", "rerun"},
        ),
    }
    for name, (lie, expected) in lies.items():
        verification = model.verify(lie.to_json())
        assert {check.name for check in verification.checks if not check.passed} == expected, name
    bare = replace(explained.explanation, context=replace(explained.context, known=None, response=None))
    without = replace(explained, explanation=bare, covariates=(), known=None, known_units=None)
    assert not model.verify(without.to_json())
    with pytest.raises(VerificationError):
        lies["values"][0].verify()


def test_covariates_are_compared_with_the_table(model: IBForecaster) -> None:
    explained, other = model.explain(table()), table()
    other.loc[ROWS + 3, "plan"] += 1
    verification = model.verify(explained, other)
    assert [check.detail for check in verification.checks if not check.passed] == ["not the table's: known"]
    consistent = model.explain(other)
    assert model.verify(consistent)
    assert not model.verify(consistent, table())


def test_the_audit_passes_and_the_evaluation_counts_only_forecast_channels(model: IBForecaster) -> None:
    audit = model.audit(table(), "all", windows=20)
    assert (audit.replay_bits, audit.scramble_bits) == (0, 0)
    measured = model.evaluate(table()[:ROWS], "all")
    assert measured.windows == ROWS - LOOK_BACK - HORIZON + 1
    last = table()[ROWS - LOOK_BACK - HORIZON : ROWS].reset_index(drop=True)
    changed = last.copy()
    changed.loc[LOOK_BACK:, "wind"] = 1e6
    assert model.evaluate(last, "all").mse == model.evaluate(changed, "all").mse
    changed.loc[LOOK_BACK:, "heat"] = 1e6
    assert model.evaluate(last, "all").mse < model.evaluate(changed, "all").mse


def test_a_saved_model_loads_with_covariates_and_cycles(model: IBForecaster, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    again = IBForecaster.load(tmp_path / "model")
    assert again.cycle == (24, 168)
    assert again.fitted.layout == model.fitted.layout
    explained, loaded = model.explain(table()), again.explain(table())
    assert loaded.to_json() == explained.to_json()
    assert again.verify(explained)


# --- Invalid arguments ---


def broken(change: Callable[[pd.DataFrame], Any]) -> pd.DataFrame:
    rows = table()
    made = change(rows)
    return rows if made is None else made


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            broken(lambda t: t[: ROWS + 5]),
            r"needs 'holiday', 'plan' up to its last step, 2024-01-18 03:00 \(got no values for its last 7 steps\); "
            r"give a table that continues to that step, or all 12 rows after its end as another table, with future=",
        ),
        (broken(lambda t: t.drop(columns="plan")), r"the covariate 'plan' must be in the table"),
        (broken(lambda t: t.drop(columns="wind")), r"the channel 'wind' must be in the table"),
        (
            broken(lambda t: t.__setitem__("plan", t["plan"].where(t.index != 7))),
            r"future covariate must have a value in every row \(got row 7: none at 2024-01-01 07:00 in 'plan'\); fill",
        ),
        (
            broken(lambda t: t.__setitem__("plan", t["plan"].where(t.index != ROWS + 3))),
            r"row 403: none at 2024-01-17 19:00 in 'plan'",
        ),
    ],
    ids=["too short", "no covariate", "no past channel", "a gap", "a gap ahead"],
)
def test_a_table_without_the_required_covariates_is_refused(
    model: IBForecaster, rows: pd.DataFrame, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        model.predict(rows)


@pytest.mark.parametrize(
    ("future", "message"),
    [
        (broken(lambda t: t[ROWS : ROWS + 5]), r"got no values for its last 7 steps"),
        (
            broken(lambda t: t[ROWS + 1 :]),
            r"must continue from the table's last row in steps of 1h \(got row 0: 2024-01-17 17:00 where "
            r"2024-01-17 16:00 belongs; .+ and 8 more\); give a row for every step",
        ),
        (broken(lambda t: t[ROWS::2]), r"in steps of 1h \(got row 1: 2024-01-17 18:00 where 2024-01-17 17:00 belongs"),
        (broken(lambda t: t[ROWS:].drop(columns="plan")), r"the channel 'plan' must be in the table"),
        (broken(lambda t: t[ROWS:].assign(plan=np.nan)), r"must have a value in every row \(got row 0: none at"),
        (broken(lambda t: t[ROWS:][::-1]), r"timestamps must increase"),
        (broken(lambda t: t[ROWS:].drop(columns="when")), r"the time column 'when' must be in the table"),
    ],
    ids=["too short", "a hole", "another frequency", "no covariate", "gaps", "backwards", "no times"],
)
def test_a_future_that_does_not_follow_the_table_is_refused(
    model: IBForecaster, future: pd.DataFrame, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        model.predict(table()[:ROWS], future=future)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"past": ["wind"], "future": ["wind"]}, r"a column must have one role.+name each once"),
        ({"past": ["wind", "wind"]}, r"a column must have one role"),
        ({"channels": ["load", "plan"]}, r"a column must have one role"),
        ({"past": "wind"}, r"past must be a list of names \(got 'wind'\); write \['wind'\]"),
        ({"future": "plan"}, r"future must be a list of names"),
        ({"cycle": (24, 0)}, r"cycle must be a positive number of steps"),
        ({"cycle": ()}, r"cycle must be a positive number of steps"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        unfitted("any-budget", **settings)


def test_a_table_without_a_channel_to_forecast_is_refused(recipe: Callable[..., str]) -> None:
    with pytest.raises(DataError, match=r"must have a channel to forecast \(got 'wind', 'plan', past or future\)"):
        unfitted(recipe(), future=["plan"]).fit(table()[["when", "wind", "plan"]])


def test_a_model_without_covariates_refuses_a_future(recipe: Callable[..., str]) -> None:
    plain = table()[["when", "load"]][:ROWS]
    fitted = unfitted(recipe(), cycle=24, past=[], future=[]).fit(plain)
    with pytest.raises(UsageError, match="only a model with future covariates takes a future table"):
        fitted.predict(plain, future=table())


def test_the_service_and_onnx_support_covariates_and_several_cycles(model: IBForecaster, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    from ibforecast.adapters.onnx import OnnxForecaster
    from ibforecast.serve.metrics import Metrics
    from ibforecast.serve.models import Models

    model.save(tmp_path / "model")
    Models({"one": tmp_path / "model"}, 1, Metrics())
    model.to_onnx(tmp_path / "model.onnx")
    explained = model.explain(table())
    verification = OnnxForecaster(tmp_path / "model.onnx").verify(explained.to_json())
    assert verification, str(verification)


# --- Benefits ---


def test_a_known_holiday_reduces_the_error_to_the_noise_and_an_unknown_one_does_not(
    recipe: Callable[..., str],
) -> None:
    random, days = np.random.default_rng(3), 150
    hour = np.arange(24 * days)
    holiday = np.repeat(random.random(days) < 0.1, 24)
    effect = -15 * (1 + 0.5 * np.sin(np.pi * np.arange(24) / 24))
    load = 100 + 10 * np.sin(2 * np.pi * hour / 24) + holiday * effect[hour % 24] + random.normal(0, 1, len(hour))
    rows = pd.DataFrame({"when": hours(len(hour)), "load": load, "holiday": holiday})
    bare = recipe(BARE.format(context_rate=3.0, epochs=6, rate=0.01))
    errors = []
    for future in ([], ["holiday"]):
        settings = {"channels": ["load"], "future": future, "recipe": bare, "budget": 0.25, "device": "cpu"}
        fitted = IBForecaster(24, 48, **settings).fit(rows)
        errors.append(fitted.evaluate(rows).mse * fitted.fitted.standardiser.std[0] ** 2)
    assert errors[0] > 8
    assert errors[1] < 1.5
    explained = fitted.explain(rows, rows["when"].iloc[-25])
    learned = explained.response[:, 0, 0] * explained.units.std[0] / explained.known_units.std[0]
    np.testing.assert_allclose(learned, effect, atol=1.5)


def test_the_shapes_of_day_and_week_are_recovered_separately(recipe: Callable[..., str]) -> None:
    random, hour = np.random.default_rng(3), np.arange(24 * 7 * 14)
    day = 10 * np.sin(2 * np.pi * np.arange(24) / 24)
    week = np.where(np.arange(168) >= 120, -7, 0) + 4 * np.sin(2 * np.pi * np.arange(168) / 56)
    load = 100 + day[hour % 24] + week[hour % 168] + random.normal(0, 1, len(hour))
    rows = pd.DataFrame({"when": hours(len(hour)), "load": load})
    bare = recipe(BARE.format(context_rate=30.0, epochs=9, rate=0.001))
    explained = IBForecaster(24, 168, 0.1, (24, 168), recipe=bare, device="cpu").fit(rows).explain(rows)
    scale = float(explained.units.std[0] * explained.scale[0])
    found_day, found_week = explained.profile[:24, 0] * scale, explained.profile[24:, 0].reshape(7, 24) * scale
    usual = week.reshape(7, 24).mean(axis=0)  # the common part of all days belongs to the daily cycle
    expected = day + usual
    np.testing.assert_allclose(found_day - found_day.mean(), expected - expected.mean(), atol=1.0)
    assert np.abs(found_week - (week.reshape(7, 24) - usual)).mean() < 0.5
    np.testing.assert_allclose(found_week.sum(axis=0), 0, atol=1e-4)


# --- Figures, reports and the command line ---


@pytest.mark.parametrize("suffix", [".png", ".svg", ".html"])
def test_a_figure_shows_the_covariates_and_every_cycle(model: IBForecaster, tmp_path: Path, suffix: str) -> None:
    path = model.explain(table()).plot(tmp_path / f"why{suffix}")
    if suffix != ".png":
        assert all(word in path.read_text() for word in ("holiday", "cycles of 24 and 168", "known ahead", "response"))


def test_the_figure_has_a_row_for_every_channel_and_covariate(model: IBForecaster) -> None:
    from ibforecast.plots.explanation import figure

    explained = model.explain(table())
    main, profiles = (figure(explained).axes[first : first + 5] for first in (0, 5))
    assert [len(axes.texts) for axes in main] == [1] * 5
    forecasts = [[line for line in axes.lines if line.get_color() == "#D55E00"] for axes in main]
    assert [bool(lines) and np.isfinite(lines[0].get_ydata()).all() for lines in forecasts] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert [len(line.get_xdata()) for line in profiles[0].lines if len(line.get_xdata()) > 2] == [24, 168]
    np.testing.assert_allclose(main[4].lines[0].get_ydata(), explained.known[:, 1], atol=1e-5)


def test_the_responses_of_several_channels_are_distinct_and_named(model: IBForecaster) -> None:
    from ibforecast.plots.explanation import figure
    from ibforecast.plots.scene import scene_of

    explained = replace(model.explain(table()), host=None)  # without its model, so without a receipt
    drawing = figure(explained)
    lines = [line for line in drawing.axes[-1].lines if len(line.get_xdata()) > 2]
    colours = [line.get_color() for line in lines]
    assert len(set(colours)) == len(colours) == 2
    assert [line.get_color() for line in drawing.artists if hasattr(line, "get_color")][-2:] == colours
    assert [text.get_text() for text in drawing.texts if text.get_text() in explained.channels] == ["load", "heat"]
    entries = [entry.text for entry in scene_of(explained).legend]
    assert [entry for entry in entries if "known ahead" in entry] == ["known ahead"]
    assert "profile at this level + effects" in entries


def test_a_report_contains_the_unchanged_documents(model: IBForecaster) -> None:
    page = to_html(model, table()[:ROWS], [None], "m", "t", future=table()).decode()
    assert '\\"covariates\\":[\\"holiday\\",\\"plan\\"]' in page


def test_the_commands_fit_forecast_explain_and_verify(tmp_path: Path, recipe: Callable[..., str]) -> None:
    whole, (known, history) = table(), (tmp_path / "known.csv", tmp_path / "table.csv")
    whole[:ROWS].to_csv(history, index=False)
    whole[["when", "holiday", "plan"]][ROWS:].to_csv(known, index=False)

    def code(*words: Any) -> Any:
        with pytest.raises(SystemExit) as stopped:
            run([str(word) for word in words])
        return stopped.value.code

    sizes = [
        "--horizon",
        HORIZON,
        "--look-back",
        LOOK_BACK,
        "--budget",
        0.25,
        "--recipe",
        recipe(),
        "--cycle",
        "24,168",
    ]
    model, why = tmp_path / "model", tmp_path / "why.json"
    assert code("fit", history, *sizes, "--past", "wind", "--future", "holiday, plan", "--out", model) == 0
    assert IBForecaster.load(model).fitted.layout.future == ("holiday", "plan")
    assert code("predict", model, history, "--future", known, "--out", tmp_path / "forecast.csv") == 0
    forecast = pd.read_csv(tmp_path / "forecast.csv")
    assert forecast.columns.tolist() == ["when", "load", "heat"]
    rows = tmp_path / "known-rows.csv"
    assert code("explain", model, history, "--future", known, "--out", why, "--known", rows) == 0
    assert set(pd.read_csv(rows)["covariate"]) == {"holiday", "plan"}
    assert code("verify", model, why) == 0
    assert code("evaluate", model, history) == 0
    assert code("report", model, history, "--future", known, "--out", tmp_path / "report.html") == 0
    assert code("predict", model, history) == 3
    assert code("fit", history, *sizes[:-1], "24,day", "--out", tmp_path / "other") == 2


def test_intervals_and_backtests_cover_only_forecast_channels(model: IBForecaster) -> None:
    columns = model.predict(table(), level=50).columns
    assert {"load-lo-50", "heat-hi-50"} <= set(columns)
    assert not [name for name in columns if name.startswith("wind")]
    assert set(model.cross_validation(table(), 1)["unique_id"]) == {"load", "heat"}
