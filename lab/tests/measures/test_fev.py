"""The scores of fev-bench, compared with loops and with the published scores of the seasonal naive forecast."""

import numpy as np
import pytest

from ibforecast_lab.data import catalogue
from ibforecast_lab.data.fev import FEV, TASKS, WINDOWS
from ibforecast_lab.experiments.published import in_print
from ibforecast_lab.measures.fev import LEVELS, Losses, losses, scores

SEASON, HORIZON, CHANNELS, ROWS = 4, 3, 2, 40


def made(seed: int) -> tuple[Losses, dict[str, list[np.ndarray]]]:
    random = np.random.default_rng(seed)
    history, first = random.normal(size=(ROWS, CHANNELS)), np.array([20, 31])
    forecast = random.normal(size=(2, HORIZON, CHANNELS))
    quantiles = forecast + np.array(LEVELS)[:, None, None, None]
    inputs = {"history": [history], "first": [first], "forecast": [forecast], "quantiles": [quantiles]}
    return losses(history, first, SEASON, forecast, quantiles), inputs


def test_scaled_scores_are_those_of_a_loop_over_windows_channels_and_steps() -> None:
    measured, inputs = made(0)
    history, first = inputs["history"][0], inputs["first"][0]
    scaled, pinball = [], []
    for window, row in enumerate(first):
        for channel in range(CHANNELS):
            scale = np.mean([abs(history[t, channel] - history[t - SEASON, channel]) for t in range(SEASON, row)])
            for step in range(HORIZON):
                truth = history[row + step, channel]
                scaled.append(abs(truth - inputs["forecast"][0][window, step, channel]) / scale)
                for level, quantile in zip(LEVELS, inputs["quantiles"][0][:, window, step, channel], strict=True):
                    above = truth - quantile
                    pinball.append(2 * max(level * above, (level - 1) * above) / scale)
    assert scores([measured])["MASE"] == pytest.approx(np.mean(scaled))
    assert scores([measured])["SQL"] == pytest.approx(np.mean(pinball))


def test_weighted_scores_divide_by_the_mean_value_of_all_items() -> None:
    one = Losses(*(np.array([[value]]) for value in (2.0, 1.0, 10.0, 1.0)))
    other = Losses(*(np.array([[value]]) for value in (4.0, 3.0, 30.0, 1.0)))
    assert scores([one, other])["WAPE"] == pytest.approx(3 / 20)
    assert scores([one, other])["WQL"] == pytest.approx(2 / 20)
    assert scores([one, other])["MASE"] == pytest.approx(3)
    tiny = Losses(*(np.array([[value]]) for value in (2.0, 1.0, 0.1, 1.0)))
    assert scores([tiny])["WAPE"] == 2.0


def test_if_all_quantiles_are_the_forecast_the_quantile_loss_is_the_absolute_error() -> None:
    _, inputs = made(1)
    forecast = inputs["forecast"][0]
    same = losses(inputs["history"][0], inputs["first"][0], SEASON, forecast, np.stack([forecast] * len(LEVELS)))
    assert np.allclose(same.quantile_loss, same.absolute_error)


@pytest.mark.parametrize("task", TASKS)
def test_the_test_rows_of_a_task_are_its_last_windows(task: str) -> None:
    for item in TASKS[task]:
        split = item.parts
        starts = split.starts("test", 96, item.horizon)[:: item.horizon]
        assert len(starts) == WINDOWS
        assert starts[-1] + 96 + item.horizon == item.source.rows == split.test_end
        assert (split.validation_end - split.train_end) * 8 == pytest.approx(split.validation_end, abs=8)
    assert in_print("fev")[task, item.horizon, "Chronos-2"]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.skipif(any(catalogue.find(item.source.name) is None for item in FEV.values()), reason="needs the files")
def test_our_seasonal_naive_has_the_published_scores(task: str) -> None:
    items = []
    for item in TASKS[task]:
        history = catalogue.load(item.source.name).values
        first = np.arange(item.parts.validation_end, len(history), item.horizon)
        steps = first[:, None] - item.cycle + np.arange(item.horizon) % item.cycle
        forecast = history[steps]
        items.append(losses(history, first, item.cycle, forecast, np.stack([forecast] * len(LEVELS))))
    printed = in_print("fev")[task, item.horizon, "Seasonal Naive"]
    for score in ("MASE", "WAPE"):
        assert scores(items)[score] == pytest.approx(printed[score].value, abs=5e-4)
