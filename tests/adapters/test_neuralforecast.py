"""The model for neuralforecast: same numbers as IBForecaster, the whole objective, and explanations."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("neuralforecast", reason="needs neuralforecast: pip install 'ibforecast[neuralforecast]'")

import pandas as pd
import polars as pl
from click.testing import CliRunner
from neuralforecast import NeuralForecast
from neuralforecast.losses.pytorch import MAE

from ibforecast import DataError, ExplainedForecast, IBForecaster, UsageError
from ibforecast.adapters.neuralforecast import PHASE, IBForecast, explain, to_ibforecaster, with_phase
from ibforecast.cli.main import main
from ibforecast.core.tokens import spread

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*is deprecated"),  # Lightning's own warnings
    pytest.mark.filterwarnings("ignore:The '.*_dataloader' does not have many workers"),
    pytest.mark.filterwarnings("ignore:Starting from v1.9.0"),
]

ROWS, HORIZON, LOOK_BACK, PATCH, CYCLE, HELD_BACK = 240, 6, 24, 3, 24, 24
START = pd.Timestamp("2020-01-05")


def table(rows: int = ROWS, times: Any = None) -> pd.DataFrame:
    """Make two series with a daily cycle at different levels and scales for neuralforecast; "load" comes first."""
    times = pd.date_range(START, periods=rows, freq="h") if times is None else times
    hour, noise = np.arange(rows), np.random.default_rng(5).normal(size=(rows, 2))
    rhythm = np.stack([np.sin(2 * np.pi * (hour / CYCLE + shift)) for shift in (0.0, 0.3)], axis=1)
    values = (rhythm + 0.3 * noise) * (20.0, 0.5) + (900.0, -2.0)
    series = [pd.DataFrame({"unique_id": name, "ds": times, "y": y}) for name, y in zip(NAMES, values.T, strict=True)]
    return pd.concat(series, ignore_index=True)


NAMES = ("load", "heat")
TABLE = with_phase(table(), CYCLE)


def unfitted(**settings: Any) -> NeuralForecast:
    """Make a small model; the arguments override the defaults here."""
    usual = {
        "h": HORIZON,
        "input_size": LOOK_BACK,
        "n_series": 2,
        "cycle": CYCLE,
        "patch_len": PATCH,
        "recipe": "any-budget",
        "max_steps": 5,
        "val_check_steps": 5,
    }
    return NeuralForecast(models=[IBForecast(**(usual | settings))], freq="h")


def fit(df: Any = TABLE, **settings: Any) -> NeuralForecast:
    nf = unfitted(**settings)
    nf.fit(df, val_size=HELD_BACK)
    return nf


@pytest.fixture(scope="module")
def fitted() -> NeuralForecast:
    return fit()


def by_series(forecast: Any, name: str = "IBForecast") -> Any:
    """Return a forecast with a column per series, sorted by name."""
    return forecast.pivot(index="ds", columns="unique_id", values=name).to_numpy()


# --- The same numbers ---


def test_with_the_same_weights_forecasts_and_masks_equal_those_of_ibforecaster(fitted: NeuralForecast) -> None:
    wide = table().pivot(index="ds", columns="unique_id", values="y").reset_index()
    own = IBForecaster(HORIZON, LOOK_BACK, patch_len=PATCH, recipe="any-budget", epochs=2, device="cpu").fit(wide)
    nf = fit(max_steps=1, val_check_steps=1)
    model = nf.models[0]
    model.network.load_state_dict(own.fitted.network.state_dict())
    for units, held in ((model.mean, own.fitted.standardiser.mean), (model.std, own.fitted.standardiser.std)):
        units.copy_(torch.tensor(held))

    forecast = own.predict(wide)[["heat", "load"]].to_numpy()
    np.testing.assert_allclose(by_series(nf.predict()), forecast, rtol=1e-5, atol=1e-5)
    explained, expected = explain(nf, TABLE), own.explain(wide)
    assert explained.channels == expected.channels == ("heat", "load")
    np.testing.assert_array_equal(explained.mask, expected.mask)
    np.testing.assert_array_equal(explained.phase, expected.phase)
    np.testing.assert_allclose(explained.probability, expected.probability, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(explained.evidence, expected.evidence, rtol=1e-4, atol=1e-5)
    earlier = wide["ds"].iloc[-10]
    np.testing.assert_array_equal(explain(nf, TABLE, at=earlier).mask, own.explain(wide, at=earlier).mask)


def test_the_explanation_matches_the_forecast_and_verifies(fitted: NeuralForecast) -> None:
    explained = explain(fitted, TABLE)
    assert explained.verify()
    np.testing.assert_array_equal(explained.forecast.astype(np.float32), by_series(fitted.predict()))
    assert 0 < explained.open_rate <= explained.budget <= 0.2
    assert explained.times[LOOK_BACK] == "2020-01-15 00:00"
    assert isinstance(explained.to_table(), pd.DataFrame)


def test_cross_validation_returns_the_forecasts_that_are_explained(fitted: NeuralForecast) -> None:
    windows = fitted.cross_validation(TABLE, n_windows=3, step_size=HORIZON, use_fitted=True)
    assert windows["cutoff"].nunique() == 3
    for cutoff, forecast in windows.groupby("cutoff"):
        explained = explain(fitted, TABLE, at=cutoff)
        np.testing.assert_allclose(by_series(forecast), explained.forecast, rtol=1e-6)
        np.testing.assert_allclose(by_series(forecast, "y"), explained.truth, rtol=1e-6)


def test_cross_validation_fits_an_unfitted_model() -> None:
    nf = unfitted()
    windows = nf.cross_validation(TABLE, n_windows=2, step_size=HORIZON, refit=True)
    assert windows[["IBForecast", "y"]].notna().all(axis=None)
    assert len(windows) == 2 * 2 * HORIZON


def test_row_order_and_table_kind_do_not_change_the_forecast(fitted: NeuralForecast) -> None:
    backwards = TABLE.iloc[::-1]
    pd.testing.assert_frame_equal(fitted.predict(backwards), fitted.predict(), check_exact=True)
    explained = explain(fitted, pl.from_pandas(backwards))
    assert explained.forecast.tobytes() == explain(fitted, TABLE).forecast.tobytes()
    assert isinstance(explained.to_table(), pl.DataFrame)


def test_a_polars_table_can_be_fitted_and_forecast() -> None:
    nf = unfitted()
    nf.freq = "1h"
    nf.fit(with_phase(pl.from_pandas(table()), CYCLE))
    forecast = nf.predict()
    assert isinstance(forecast, pl.DataFrame)
    assert forecast["IBForecast"].is_finite().all()


def test_the_same_seed_gives_the_same_weights_and_another_seed_does_not(fitted: NeuralForecast) -> None:
    def weights(nf: NeuralForecast) -> str:
        return to_ibforecaster(nf, TABLE).fitted.weights_sha256

    assert weights(fit()) == weights(fitted) != weights(fit(random_seed=2))


# --- Sealed models ---


@pytest.fixture(scope="module")
def sealed() -> NeuralForecast:
    return fit(recipe="sealed", patch_len=None)


def test_a_sealed_model_is_trained_explained_and_verified(sealed: NeuralForecast) -> None:
    explained = explain(sealed, TABLE)
    assert explained.sealed
    assert explained.verify().checks[-1].name == "unread"
    np.testing.assert_array_equal(explained.forecast.astype(np.float32), by_series(sealed.predict()))
    metrics = sealed.models[0].metrics
    assert metrics["train_loss"] == metrics["train_fit"] > 0
    model = to_ibforecaster(sealed, TABLE)
    assert len(model.reads()) == explained.open_count
    receipt = explained.itemised(explained.channels[0], 1)
    assert receipt.adds_up
    assert receipt.forecast == pytest.approx(explained.forecast[0, 0], abs=1e-3)


@pytest.mark.parametrize("hidden", [False, True], ids=["replaced", "unavailable"])
def test_unread_values_change_no_forecast_of_a_sealed_model(sealed: NeuralForecast, hidden: bool) -> None:
    explained, changed = explain(sealed, TABLE), TABLE.assign(available_mask=1)
    for column, name in enumerate(explained.channels):
        rows = changed.index[changed["unique_id"] == name][-LOOK_BACK:][~explained.mask[:, column]]
        changed.loc[rows, "y"] = 1e6
        changed.loc[rows, "available_mask"] = 0 if hidden else 1
    pd.testing.assert_frame_equal(sealed.predict(changed), sealed.predict(TABLE), check_exact=True)
    assert explain(sealed, changed).forecast.tobytes() == explained.forecast.tobytes()


def test_a_saved_sealed_model_loads_unchanged(sealed: NeuralForecast, tmp_path: Path) -> None:
    sealed.save(str(tmp_path / "saved"))
    loaded = NeuralForecast.load(str(tmp_path / "saved"))
    assert explain(loaded, TABLE).to_json() == explain(sealed, TABLE).to_json()


def test_the_default_recipe_forecasts_and_explains() -> None:
    usual = {"h": HORIZON, "input_size": LOOK_BACK, "n_series": 2, "cycle": CYCLE, "max_steps": 2, "val_check_steps": 2}
    nf = NeuralForecast(models=[IBForecast(**usual)], freq="h")
    nf.fit(TABLE)
    assert nf.models[0].network.config.sealed, "there is no contest here"
    assert explain(nf, TABLE).verify()


# --- The objective ---


def test_the_loss_contains_every_term_of_the_objective(tmp_path: Path) -> None:
    names = ("rate", "budget", "contiguity", "consistency", "absence", "departure")
    recipe = tmp_path / "every.toml"
    recipe.write_text("[model.objective]\n" + "".join(f"{name}_weight = 0.1\n" for name in names))
    metrics = {name: float(value) for name, value in fit(recipe=str(recipe)).models[0].metrics.items()}
    terms = [metrics[f"train_{name}"] for name in ("fit", *names)]
    assert min(terms) > 0
    assert sum(terms) == pytest.approx(metrics["train_loss"], rel=1e-5)


def test_a_term_other_than_the_error_changes_the_gates(tmp_path: Path) -> None:
    recipes = {}
    for weight in ("0.0", "2.0"):
        recipes[weight] = tmp_path / f"rate-{weight[0]}.toml"
        recipes[weight].write_text(
            f"[model]\nsealed = false\n[model.objective]\nrate_weight = {weight}\ndeparture_weight = 0\n"
            "[model.gate]\nnoise = 0.0\n[train]\nbatch = 32\n"
        )
    plain, paying = (fit(recipe=str(path), max_steps=2, val_check_steps=2).models[0] for path in recipes.values())
    assert plain.metrics["train_loss"] == pytest.approx(plain.metrics["train_fit"] + plain.metrics["train_consistency"])
    differences = [
        name
        for name, weights in plain.network.score.state_dict().items()
        if not torch.equal(weights, paying.network.score.state_dict()[name])
    ]
    assert differences


def test_training_uses_the_learning_rates_and_schedule_of_the_recipe(tmp_path: Path) -> None:
    recipe = tmp_path / "paced.toml"
    recipe.write_text("[train]\nepochs = 12\nlearning_rate = 3e-3\nconstant_epochs = 7\ndecay = 0.8\n")
    model = unfitted(max_steps=24, recipe=str(recipe)).models[0]
    chosen = model.configure_optimizers()
    readout, context = chosen["optimizer"].param_groups
    assert context["lr"] == pytest.approx(3 * readout["lr"])
    assert readout["lr"] == pytest.approx(3e-3)
    learned = [parameter for parameter in model.network.parameters() if parameter.requires_grad]
    assert len(readout["params"]) + len(context["params"]) == len(learned)
    pace = chosen["lr_scheduler"]["scheduler"].lr_lambdas[0]
    assert pace(0) == pace(13) == 1.0  # epochs 1 to 7 of 12
    assert pace(23) == pytest.approx(0.8**5)
    own = unfitted(learning_rate=1e-2, optimizer=torch.optim.SGD).models[0].configure_optimizers()
    assert isinstance(own["optimizer"], torch.optim.SGD)
    assert own["optimizer"].param_groups[0]["lr"] == 1e-2


def test_units_come_from_the_training_rows_and_validation_uses_them(fitted: NeuralForecast) -> None:
    model = fitted.models[0]
    trained_on = table().groupby("unique_id")["y"].apply(lambda y: y.iloc[:-HELD_BACK].mean())
    np.testing.assert_allclose(model.mean.numpy(), trained_on[["heat", "load"]], rtol=1e-6)
    assert 0 < model.metrics["ptl/val_loss"] < 5  # in the table's units it would be in the hundreds

    same = fit(valid_loss=MAE()).models[0]
    assert same.metrics["ptl/val_loss"] != model.metrics["ptl/val_loss"]


# --- Saving and loading ---


def test_a_saved_model_loads_unchanged(fitted: NeuralForecast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fitted.save(str(tmp_path / "saved"))
    loaded = NeuralForecast.load(str(tmp_path / "saved"))
    pd.testing.assert_frame_equal(loaded.predict(), fitted.predict(), check_exact=True)
    assert loaded.models[0].recipe == fitted.models[0].recipe
    assert explain(loaded, TABLE).to_json() == explain(fitted, TABLE).to_json()
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]  # and no logs


def test_a_loaded_model_can_be_fitted_further(fitted: NeuralForecast, tmp_path: Path) -> None:
    fitted.save(str(tmp_path / "saved"), save_dataset=False)
    loaded = NeuralForecast.load(str(tmp_path / "saved"))
    assert explain(loaded, TABLE).verify()
    before = loaded.predict(TABLE)
    loaded.fit(TABLE, val_size=HELD_BACK)
    assert not loaded.predict().equals(before)


def test_ibforecast_verify_accepts_the_explanation(fitted: NeuralForecast, tmp_path: Path) -> None:
    to_ibforecaster(fitted, TABLE).save(tmp_path / "model")
    (tmp_path / "why.json").write_text(explain(fitted, TABLE).to_json(), "utf8")
    done = CliRunner().invoke(main, ["verify", str(tmp_path / "model"), str(tmp_path / "why.json")])
    assert done.exit_code == 0, done.output


# --- The phase ---


def test_the_phase_equals_that_of_the_clock_of_ibforecast() -> None:
    assert TABLE[PHASE].tolist() == TABLE["ds"].dt.hour.tolist()
    daily = with_phase(table(times=pd.date_range("2020-01-06", periods=ROWS, freq="D")), 7)
    assert daily[PHASE].tolist() == daily["ds"].dt.dayofweek.tolist()
    zoned = table(times=pd.date_range(START, periods=ROWS, freq="h", tz="Europe/Berlin"))
    assert with_phase(zoned, CYCLE)[PHASE].tolist() == zoned["ds"].dt.hour.tolist()
    dates = pl.DataFrame({"ds": pl.date_range(pl.date(2020, 1, 6), pl.date(2020, 1, 19), eager=True)})
    assert with_phase(dates, 7)[PHASE].to_list() == [*range(7), *range(7)]


def test_a_window_with_a_clock_change_is_forecast_but_not_explained() -> None:
    df = with_phase(table(times=pd.date_range("2020-03-20", periods=ROWS, freq="h", tz="Europe/Berlin")), CYCLE)
    nf = fit(df)
    assert nf.predict()["IBForecast"].notna().all()
    changed = pd.Timestamp("2020-03-29 05:00", tz="Europe/Berlin")
    with pytest.raises(
        DataError, match=r"must not span a change of the clock: .* \(got one in the window that ends at 2020-03-29"
    ):
        explain(nf, df, at=changed)
    before = df[df["ds"] < changed.floor("D")]
    explained = explain(nf, before, at=before["ds"].max() - pd.Timedelta("1D"))
    assert explained.verify()


@pytest.mark.parametrize("step", [1, 5])
def test_times_may_be_whole_numbers(step: int) -> None:
    numbers = np.arange(100, 100 + ROWS * step, step)
    df = with_phase(table(times=numbers), CYCLE)
    assert df[PHASE].tolist() == (df["ds"] // step % CYCLE).tolist()
    nf = unfitted()
    nf.freq = step
    nf.fit(df, val_size=HELD_BACK)
    explained = explain(nf, df)
    np.testing.assert_array_equal(explained.forecast.astype(np.float32), by_series(nf.predict()))
    assert explained.times == tuple(map(str, numbers[-1] + step * np.arange(1 - LOOK_BACK, HORIZON + 1)))
    assert explained.frequency == ("1 step" if step == 1 else f"{step} steps")
    assert explained.verify()
    again = ExplainedForecast.from_json(explained.to_json())
    assert (again.times, again.frequency) == (explained.times, explained.frequency)
    assert explain(nf, df, at=int(numbers[-5])).at == str(numbers[-5])


def test_a_model_without_a_cycle_needs_no_phase() -> None:
    nf = fit(table(), cycle=1)
    assert explain(nf, table()).verify()


@pytest.mark.parametrize("scaler", ["standard", "minmax", "robust"])
def test_a_scaled_phase_is_refused(scaler: str) -> None:
    nf = unfitted()
    nf.local_scaler_type = scaler
    with pytest.raises(DataError, match=r"whole numbers from 0 to 23 \(got .*\); leave out local_scaler_type"):
        nf.fit(TABLE, val_size=HELD_BACK)


def test_a_table_without_a_phase_column_is_refused(fitted: NeuralForecast) -> None:
    with pytest.raises(DataError, match=r"no column 'phase'\); add it with .*with_phase\(table, cycle=24\)"):
        unfitted().fit(table())
    with pytest.raises(DataError, match="no column 'phase'"):
        fitted.predict(table())
    with pytest.raises(DataError, match=r"what with_phase\(table, cycle=24\) gives"):
        explain(fitted, TABLE.assign(phase=(TABLE["phase"] + 1) % CYCLE))


def test_series_that_end_at_different_times_are_refused(fitted: NeuralForecast) -> None:
    with pytest.raises(DataError, match=r"same phase at the same time .* end together"):
        fitted.predict(TABLE.iloc[:-3])


# --- Missing values ---


def test_values_marked_unavailable_are_never_read() -> None:
    gaps = TABLE.assign(available_mask=1)
    gaps.loc[[50, 100, ROWS - 1], "available_mask"] = 0
    nf = fit(gaps)
    explained = explain(nf, gaps)
    assert explained.missing[:, 1].tolist() == [False] * 7 + [True]
    assert not (explained.mask & explained.missing).any()
    assert explained.verify()
    other = gaps.assign(y=gaps["y"].where(gaps["available_mask"] == 1, 1e6))
    np.testing.assert_array_equal(nf.predict(other)["IBForecast"], nf.predict(gaps)["IBForecast"])
    assert spread(torch.tensor(explained.missing)[None], PATCH)[0, -1].tolist() == [False, True]


def test_a_series_that_starts_later_is_padded_and_keeps_its_phase(fitted: NeuralForecast) -> None:
    late = TABLE.drop(index=range(ROWS - 10))  # ten rows of the first series, all of the second
    explained = explain(fitted, late)
    assert explained.missing[:, 1].tolist() == [True] * 5 + [False] * 3
    np.testing.assert_array_equal(explained.forecast.astype(np.float32), by_series(fitted.predict(late)))


# --- Several models ---


def test_one_of_several_models_can_be_explained_by_name() -> None:
    usual = {"h": HORIZON, "input_size": LOOK_BACK, "n_series": 2, "cycle": CYCLE, "patch_len": PATCH, "max_steps": 2}
    models = [
        IBForecast(**usual, recipe="any-budget", val_check_steps=2, budget=b, alias=f"at {b}") for b in (0.2, 0.5)
    ]
    nf = NeuralForecast(models=models, freq="h")
    nf.fit(TABLE)
    assert nf.predict().columns.tolist() == ["unique_id", "ds", "at 0.2", "at 0.5"]
    explained = explain(nf, TABLE, model="at 0.5")
    assert explained.budget == 0.5
    np.testing.assert_array_equal(explained.forecast.astype(np.float32), by_series(nf.predict(), "at 0.5"))
    with pytest.raises(UsageError, match=r"got 2 among at 0\.2, at 0\.5\); give its alias as `model`"):
        explain(nf, TABLE)


# --- Invalid arguments ---


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scaler_type": "standard"}, r'scaler_type must be "identity".*\(got \'standard\'\); leave it out'),
        ({"loss": MAE()}, r"settings must be those of IBForecast or of Lightning's Trainer \(got loss\); leave"),
        ({"futr_exog_list": ["price"]}, r"\(got futr_exog_list\)"),
        ({"recipe": "tqnet"}, r"one that ships or a path to a .toml file \(got 'tqnet'\)"),
        ({"budget": 0.01}, r"at least one token"),
        ({"patch_len": 5}, r"patch_len must divide look_back"),
        ({"cycle": 0}, r"cycle must be at least 1"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
def test_an_invalid_setting_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        unfitted(**settings)


def test_invalid_tables_and_models_are_refused(fitted: NeuralForecast) -> None:
    with pytest.raises(UsageError, match=r"n_series=3, 2 in the table\); build the model with n_series=2"):
        fit(n_series=3)
    with pytest.raises(UsageError, match=r"all windows must have the same weight \(got a column 'sample_weight'\)"):
        fit(TABLE.assign(sample_weight=1.0))
    with pytest.raises(UsageError, match=r"must be fitted before it is explained"):
        explain(unfitted(), TABLE)
    with pytest.raises(DataError, match=r"no 'time'\); name it with time_col"):
        with_phase(table(), CYCLE, time_col="time")
    with pytest.raises(DataError, match=r"'ds' must hold times or whole numbers \(got String\)"):
        with_phase(table().astype({"ds": str}), CYCLE)


def test_without_neuralforecast_the_error_names_the_package_to_install() -> None:
    programme = "import sys; sys.modules['neuralforecast'] = None; import ibforecast.adapters.neuralforecast"
    done = subprocess.run([sys.executable, "-c", programme], capture_output=True, text=True, check=False)
    assert "MissingExtraError: this needs neuralforecast" in done.stderr
    assert "pip install 'ibforecast[neuralforecast]'" in done.stderr
