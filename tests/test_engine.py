"""PyTorch as an engine: facts, runs and replays of a window, models that cheat, and every kind of calendar."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from ibforecast import DataError, ExplainedForecast, IBForecaster, Verification
from ibforecast import engine as engines
from ibforecast.core.calendar import Clock
from ibforecast.core.context import Context
from ibforecast.core.explanation import Explanation, Forecast
from ibforecast.core.sizes import Sizes
from ibforecast.core.standardiser import Standardiser
from ibforecast.core.verification import Engine
from ibforecast.core.window import Window
from ibforecast.data.layout import Layout
from ibforecast.data.splits import Split
from ibforecast.engine import TorchEngine, facts_of, tensors
from ibforecast.model.network import IBForecast
from ibforecast.model.reading import ChoosingForecast
from ibforecast.zoo.recipes import resolve_ours
from ibforecast.zoo.saved import FittedModel, TrainingSummary

ROWS, LOOK_BACK, HORIZON = 200, 24, 6


def table(zone: str | None = None, frequency: str = "h") -> pd.DataFrame:
    """Make two noisy channels; an hourly table spans the night on which the clocks of Berlin go forward."""
    when = pd.date_range("2023-03-20", periods=ROWS, freq=frequency, tz=zone)
    values = np.random.default_rng(3).normal(size=(ROWS, 2)) + np.sin(np.arange(ROWS) * 2 * np.pi / 24)[:, None]
    return pd.DataFrame({"when": when, "load": values[:, 0], "wind": values[:, 1]})


def fitted(rows: pd.DataFrame, cycle: int | str = "auto", irregular: str = "error") -> IBForecaster:
    settings = {"recipe": "static-fixed", "epochs": 1, "device": "cpu"}
    return IBForecaster(HORIZON, LOOK_BACK, 0.25, cycle=cycle, irregular=irregular, **settings).fit(rows)


@pytest.fixture(scope="module")
def model() -> IBForecaster:
    return fitted(table())


def failures(verification: Verification) -> set[str]:
    return {check.name for check in verification.checks if not check.passed}


class Remembering(IBForecast):
    """A model that adds a statistic of the last window to the forecast without explaining it."""

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        self.last = window.values.mean()
        return super().forward(window, held)

    def replay(self, explanation: Explanation) -> Tensor:
        return super().replay(explanation) + self.last


def test_a_model_that_remembers_the_window_fails_every_time(model: IBForecaster) -> None:
    network = Remembering(model.fitted.config).eval()
    network.load_state_dict(model.fitted.network.state_dict())
    sly = IBForecaster.of(replace(model.fitted, network=network), device="cpu")
    for _ in range(2):
        assert failures(sly.verify(sly.explain(table()))) == {"replay", "scramble"}


class Glancing(ChoosingForecast):
    """A model that claims to choose, and takes its level from the whole window."""

    def read(self, window: Window, held: Context | None = None) -> Explanation:
        return super().read(window, held or self.decompose(window)[0])


def test_a_choosing_model_whose_level_depends_on_unread_values_fails_only_the_check_of_its_reading() -> None:
    settings = {"choosing": True, "epochs": 1, "device": "cpu"}
    honest = IBForecaster(HORIZON, LOOK_BACK, 0.25, **settings).fit(table())
    assert honest.verify(honest.explain(table()), exact=True)
    network = Glancing(honest.fitted.config).eval()
    network.load_state_dict(honest.fitted.network.state_dict())
    sly = IBForecaster.of(replace(honest.fitted, network=network), device="cpu")
    assert failures(sly.verify(sly.explain(table()))) == {"reading"}


def moved(explained: ExplainedForecast, by: timedelta) -> Clock:
    """Return the time axis shifted by a duration."""
    return replace(explained.clock, stamps=explained.clock.stamps + np.timedelta64(by))


@pytest.mark.parametrize("by", [timedelta(hours=1), timedelta(hours=-7), timedelta(days=3, hours=5)])
def test_other_times_are_refused_with_the_old_phases_and_fail_with_new_ones(model: IBForecaster, by: timedelta) -> None:
    explained = model.explain(table())
    clock = moved(explained, by)
    with pytest.raises(DataError, match="phase of an explanation must follow from the times"):
        replace(explained, clock=clock)
    context = replace(explained.context, phase=clock.phase(0, LOOK_BACK + HORIZON, 24))
    verification = model.verify(
        replace(explained, clock=clock, explanation=replace(explained.explanation, context=context))
    )
    assert "rerun" in failures(verification)


def test_times_moved_by_whole_cycles_are_detected_only_with_the_table(model: IBForecaster) -> None:
    explained = model.explain(table(), table()["when"][150])
    later = replace(explained, clock=moved(explained, timedelta(hours=24)))
    assert model.verify(later)
    assert failures(model.verify(later, table())) == {"table"}


def test_a_single_time_off_the_grid_is_refused(model: IBForecaster) -> None:
    explained = model.explain(table())
    stamps = explained.clock.stamps.copy()
    stamps[1] += np.timedelta64(7, "h")
    with pytest.raises(DataError, match="times must"):
        replace(explained, clock=replace(explained.clock, stamps=stamps))


@pytest.mark.parametrize(
    ("made", "cycle", "irregular"),
    [
        (lambda: table("Europe/Berlin"), "auto", "error"),
        (lambda: table("Europe/Berlin", "D"), "auto", "error"),
        (lambda: table(frequency="ME"), "auto", "error"),
        (lambda: table(frequency="17min"), 5, "error"),
        (lambda: table().drop(index=[30, 31, 150]), "auto", "by_row"),
        (lambda: table().drop(index=[30, 31, 150]), "auto", "fill"),
        (lambda: table().assign(when=lambda it: it["when"] + pd.Timedelta("00:20:00.5")), "auto", "error"),
    ],
    ids=["clocks put on", "days of a zone", "ends of months", "odd steps", "rows counted", "rows filled", "fractions"],
)
def test_true_times_of_every_calendar_pass(made: Callable[[], pd.DataFrame], cycle: int | str, irregular: str) -> None:
    rows = made()
    model = fitted(rows, cycle, irregular)
    for row in (LOOK_BACK + 2, len(rows) - HORIZON - 30, len(rows) - 1):
        explained = ExplainedForecast.from_json(model.explain(rows, rows["when"].iloc[row]).to_json())
        verification = model.verify(explained, rows, exact=True)
        assert verification, str(verification)
        verdict = model.verify(explained)
        # Counted uneven rows need the table, unless the first row of training is in the window.
        assert failures(verdict) == ({"times"} if irregular == "by_row" else set()), str(verdict)


def test_counted_rows_with_even_steps_need_no_table() -> None:
    model = fitted(table(), irregular="by_row")
    explained = model.explain(table(), table()["when"][150])
    assert explained.clock.row == 150 - LOOK_BACK + 1
    assert model.verify(explained)
    assert model.verify(explained, table())
    assert model.verify(explained, table()[100:].reset_index(drop=True))


# --- The engine ---


def test_the_engine_gives_the_same_results_as_the_model(model: IBForecaster) -> None:
    engine, explained = TorchEngine(model.fitted), model.explain(table())
    assert isinstance(engine, Engine)
    explanation, forecast = engine.run(explained.history, explained.phase, None)
    assert forecast.tobytes() == explained.forecast.tobytes()
    for row, array in explanation.arrays():
        assert array.tobytes() == row.of(explained.explanation).tobytes(), row.name
    assert engine.replay(explained.explanation).tobytes() == explained.forecast.tobytes()
    assert engine.hold(explained.history, explained.explanation).tobytes() == explained.forecast.tobytes()


def test_the_deviation_of_the_open_tokens_is_the_evidence(model: IBForecaster) -> None:
    explained = model.explain(table())
    deviation = TorchEngine(model.fitted).deviation(explained.history, explained.explanation)[0].numpy()
    is_open = explained.mask.repeat(explained.patch_len, axis=0)
    assert is_open.any()
    assert deviation[is_open].tobytes() == explained.evidence[is_open].tobytes()
    assert deviation[~is_open].any()


def test_a_batch_of_one_window_shares_no_memory_with_the_explanation(model: IBForecaster) -> None:
    explained = model.explain(table())
    batch = tensors(explained.explanation)
    assert batch.mask.shape == (1, *explained.mask.shape)
    batch.evidence.fill_(9.0)
    batch.context.level.fill_(9.0)
    assert explained.verify(exact=True)


def test_every_variant_restores_the_number_of_threads(model: IBForecaster) -> None:
    before = torch.get_num_threads()
    variants = TorchEngine(model.fitted).variants()
    assert variants[0].threads == before
    assert len({variant.threads for variant in variants}) == len(variants)
    explained = model.explain(table())
    for variant in variants:
        variant.run(explained.history, explained.phase, None)
        assert torch.get_num_threads() == before


def test_the_facts_equal_those_of_the_model_and_its_explanations(model: IBForecaster) -> None:
    facts, explained = facts_of(model.fitted), model.explain(table())
    assert facts.weights_sha256 == explained.weights_sha256 == model.fitted.weights_sha256
    assert (facts.look_back, facts.horizon, facts.steps) == (LOOK_BACK, HORIZON, LOOK_BACK + HORIZON)
    assert (facts.channels, facts.cycles, facts.frequency) == (
        explained.channels,
        explained.cycles,
        explained.frequency,
    )
    assert facts.tokens == explained.mask.size
    assert explained.open_count <= facts.allowance
    assert facts.units.same_as(explained.units)


def test_forecasts_far_from_the_units_of_training_are_refused(model: IBForecaster) -> None:
    far = table().assign(load=1e300)
    with pytest.raises(DataError, match="values must be of a size the model can compute with"):
        model.explain(far)


def untrained(recipe: str, look_back: int, channels: int) -> TorchEngine:
    """Return a model with random weights, also where training starts with zeros."""
    names = tuple(f"channel {number}" for number in range(channels))
    network = resolve_ours(recipe, Sizes(look_back, 12, channels, 24)).build(0).eval()
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.05 * torch.randn(parameter.shape, generator=draw)
        if network.decompose.anchor is not None:
            network.decompose.anchor.blend.uniform_(generator=draw)
    return TorchEngine(
        FittedModel(
            network=network,
            standardiser=Standardiser(np.full(channels, 5.0), np.full(channels, 2.0)),
            layout=Layout(time="time", channels=names, shape="wide", frequency="1h"),
            origin="2016-07-01T00:00:00.000000",
            split=Split(look_back, look_back, look_back),
            summary=TrainingSummary(recipe, "", "", look_back, 0, "cpu", 0.0, 0, 0, 0, 0.0),
        ),
        threads=1,
    )


@pytest.mark.parametrize("recipe", ["sealed", "choosing", "additive", "any-budget"])
@pytest.mark.parametrize(("look_back", "channels"), [(48, 1), (36, 5)])
def test_windows_in_one_pass_get_the_bits_they_get_by_themselves(recipe: str, look_back: int, channels: int) -> None:
    assert untrained(recipe, look_back, channels).keeps_bits(8)


def test_other_bits_in_one_pass_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, together = untrained("sealed", 48, 3), TorchEngine.run_together
    assert engine.keeps_bits(4)

    def rounded(own: TorchEngine, windows: list[engines.Entering]) -> object:
        explanations, values = together(own, windows)
        values[-1, -1, -1] = np.nextafter(values[-1, -1, -1], np.inf)
        return explanations, values

    monkeypatch.setattr(TorchEngine, "run_together", rounded)
    assert not engine.keeps_bits(4)
