"""Published numbers: complete, each once, as printed, and as consistent as the paper."""

from collections import Counter
from dataclasses import FrozenInstanceError
from statistics import mean

import pytest

from ibforecast.core.errors import UsageError
from ibforecast_lab.data.catalogue import CATALOGUE
from ibforecast_lab.experiments.published import PublishedNumber, numbers
from ibforecast_lab.recipes import BOOK, names

COUNTS = {
    "accuracy": 10 * 6 * 2 - 4,  # ProtoTS has no Weather and so no overall
    "per_horizon": 5 * 4 * 10 * 2 - 8,
    "large_channels": 3 * 2 * (4 + 1),
    "fidelity": 3 * 11 * 3 + 3,  # and TIMING's default scores
    "fidelity_read": 3,
    "ablations": 7 * 6,
    "tradeoff": 3 * 2,
    "sensitivity": 3,
    "support_recovery": 3 * 10 * 3,
    "cost": 12,
    "cyclenet_linear": 5 * 4 * 2,
    "field": 5 + 6 * 2 + 4,  # and OLinear; TimeEmb only by MSE on four data sets
    "fev": 3 * (12 * 4 + 3),  # and the time to train three models
}
MAIN = ("ETTh1", "ETTh2", "ETTm1", "ETTm2", "Weather")
LARGE = ("Electricity", "Solar", "Traffic")
MODES = ("pulse", "decoy", "trend")
HORIZONS = (96, 192, 336, 720)
MODELS = {
    *("ibforecast", "patchdecomp", "tft", "dlinear", "protots"),
    *("tqnet", "cyclenet-mlp", "itransformer", "patchtst", "timesnet"),
}
POST_HOC = {"occlusion", "timing", "integrated_gradients", "saliency", "dynamask", "extremal_mask", "chance"}
ABLATIONS = {"gated-base", "hard-gates", "profile", "budget", "contiguity", "diversity"}
ROUNDING = 0.0011


def find(table: str, data: str, horizon: int | None, model: str, metric: str) -> PublishedNumber:
    place = (data, horizon, model, metric)
    (number,) = (n for n in numbers(table) if (n.data, n.horizon, n.model, n.metric) == place)
    return number


def value(table: str, data: str, horizon: int | None, model: str, metric: str) -> float:
    return find(table, data, horizon, model, metric).value


def models(table: str) -> set[str]:
    return {number.model for number in numbers(table)}


def shape(table: str) -> tuple[set[str], set[int | None], set[str]]:
    """Return the data, horizons and metrics of a table."""
    listed = numbers(table)
    return {n.data for n in listed}, {n.horizon for n in listed}, {n.metric for n in listed}


@pytest.mark.parametrize(("table", "count"), COUNTS.items())
def test_every_number_of_a_table_is_listed_once(table: str, count: int) -> None:
    listed = numbers(table)
    assert len(listed) == count
    assert {number.table for number in listed} == {table}
    assert len({(n.data, n.horizon, n.model, n.metric) for n in listed}) == count


def test_an_unpublished_table_is_refused_with_a_list_of_the_published_ones() -> None:
    with pytest.raises(UsageError, match=r"table must be one of accuracy, per_horizon.+\(got table='speed'\); choose"):
        numbers("speed")


def test_the_file_is_read_once() -> None:
    assert numbers("accuracy") is numbers("accuracy")


def test_a_number_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        numbers("accuracy")[0].value = 0.0  # type: ignore[misc]


def test_data_horizons_and_metrics_are_known() -> None:
    assert {*MAIN, *LARGE} == set(CATALOGUE)
    assert shape("accuracy") == ({*MAIN, "Overall"}, {None}, {"mse", "mae"})
    assert shape("per_horizon") == shape("cyclenet_linear") == (set(MAIN), set(HORIZONS), {"mse", "mae"})
    assert shape("large_channels") == (set(LARGE), {*HORIZONS, None}, {"mse"})
    fidelity = {"comprehensiveness", "sufficiency", "score"}
    assert shape("fidelity") == ({"ETTh1", "ETTm1", "Weather"}, {96}, fidelity)
    assert shape("ablations") == ({"ETTh1"}, {96}, {"mse", "mae", "open_rate"} | fidelity)
    assert shape("tradeoff") == ({"ETTh1", "ETTm1", "Weather"}, {None}, {"mse_over_dense", "mae_over_dense"})
    assert shape("sensitivity") == ({"ETTh1", "ETTm1", "Weather"}, {96}, {"mse_change"})
    assert shape("support_recovery") == (set(MODES), {24}, {"auroc", "aur", "aup"})
    assert shape("cost")[0] == {"ETTh1", "Weather", "Traffic", "any"}


def test_models_and_explainers_are_known() -> None:
    assert {*MODELS, "cyclenet-linear"} <= {*BOOK.forecasters, *names()}
    assert models("accuracy") == models("per_horizon") == MODELS
    assert models("large_channels") == {"ibforecast", "tqnet"}
    assert models("fidelity") == POST_HOC | {"timing_defaults", "dlinear", "patchdecomp", "tft", "ibforecast"}
    assert models("support_recovery") == POST_HOC | {"patchdecomp", "tft", "ibforecast"}
    assert models("ablations") == {"ibforecast"} | {f"no-{part}" for part in ABLATIONS}
    assert models("cost") == POST_HOC - {"chance"} | {"ibforecast"}
    assert models("cyclenet_linear") == {"cyclenet-linear"}


def test_cells_left_empty_in_print_are_absent() -> None:
    assert {n.data for n in numbers("accuracy") if n.model == "protots"} == {"ETTh1", "ETTh2", "ETTm1", "ETTm2"}
    assert not [n for n in numbers("per_horizon") if (n.data, n.model) == ("Weather", "protots")]
    assert {n.metric for n in numbers("fidelity") if n.model == "timing_defaults"} == {"score"}


def test_numbers_are_what_is_printed() -> None:
    assert value("accuracy", "ETTm2", None, "cyclenet-mlp", "mse") == 0.266
    assert value("accuracy", "Overall", None, "ibforecast", "mae") == 0.364
    assert value("per_horizon", "ETTh1", 96, "ibforecast", "mse") == 0.382
    assert value("per_horizon", "ETTh2", 720, "dlinear", "mae") == 0.657
    assert value("per_horizon", "Weather", 336, "timesnet", "mae") == 0.306
    assert value("large_channels", "Traffic", 96, "tqnet", "mse") == 0.413
    assert value("large_channels", "Solar", None, "ibforecast", "mse") == 0.204
    assert value("fidelity", "ETTh1", 96, "tft", "sufficiency") == 2.276
    assert value("fidelity", "Weather", 96, "dlinear", "score") == 0.838
    assert value("fidelity", "ETTm1", 96, "timing_defaults", "score") == 0.450
    assert value("ablations", "ETTh1", 96, "no-hard-gates", "open_rate") == 0.099
    assert value("cost", "ETTh1", 96, "timing", "forward_equivalents") == 148
    assert value("fidelity_read", "ETTm1", 96, "ibforecast", "open_rate") == 0.168
    assert value("cyclenet_linear", "ETTm2", 720, "cyclenet-linear", "mae") == 0.3898
    aup = find("support_recovery", "decoy", 24, "patchdecomp", "aup")
    assert (aup.value, aup.spread) == (0.638, 0.055)


def test_spreads_are_listed_if_they_are_printed() -> None:
    assert all(number.spread is not None for number in numbers("support_recovery"))
    with_spread = [n for table in COUNTS if table != "support_recovery" for n in numbers(table) if n.spread is not None]
    assert with_spread == [find("per_horizon", "ETTh2", 720, "ibforecast", "mse")]
    assert with_spread[0].spread == 0.010


def test_every_number_has_a_source() -> None:
    assert all(number.source for table in COUNTS for number in numbers(table))
    for table in ("accuracy", "per_horizon"):
        sources = {number.model: number.source for number in numbers(table)}
        assert sources["ibforecast"] == "the paper, mean of three seeds"
        assert {sources[model] for model in ("patchdecomp", "tft", "protots")} == {"the paper's own run, seed 2024"}
        assert sources["tqnet"] == sources["dlinear"] == "the paper, quoting TQNet's consolidated table"
    assert {n.source for n in numbers("cyclenet_linear")} == {"CycleNet's authors, five seeds"}
    assert "release defaults" in find("support_recovery", "pulse", 24, "timing", "aur").source
    assert "best of three settings" in find("fidelity", "ETTh1", 96, "timing", "score").source


def test_every_average_is_the_mean_of_its_four_horizons() -> None:
    for number in numbers("accuracy"):
        if number.data != "Overall":
            cells = [value("per_horizon", number.data, h, number.model, number.metric) for h in HORIZONS]
            assert number.value == pytest.approx(mean(cells), abs=ROUNDING), number
    for number in numbers("large_channels"):
        if number.horizon is None:
            cells = [value("large_channels", number.data, h, number.model, "mse") for h in HORIZONS]
            assert number.value == pytest.approx(mean(cells), abs=ROUNDING), number


def test_every_overall_is_the_mean_of_its_five_data_sets() -> None:
    overall = [number for number in numbers("accuracy") if number.data == "Overall"]
    assert Counter(number.model for number in overall) == dict.fromkeys(MODELS - {"protots"}, 2)
    for number in overall:
        averages = [value("accuracy", data, None, number.model, number.metric) for data in MAIN]
        assert number.value == pytest.approx(mean(averages), abs=ROUNDING), number


@pytest.mark.parametrize("table", ["fidelity", "ablations"])
def test_every_score_is_comprehensiveness_minus_sufficiency(table: str) -> None:
    for number in numbers(table):
        if number.metric == "score" and number.model != "timing_defaults":
            place = (number.data, number.horizon, number.model)
            difference = value(table, *place, "comprehensiveness") - value(table, *place, "sufficiency")
            assert number.value == pytest.approx(difference, abs=ROUNDING), number


def test_if_the_paper_contradicts_itself_the_number_is_the_printed_one() -> None:
    def score(data: str, model: str) -> float:
        return value("fidelity", data, 96, model, "score")

    # Its per-horizon table prints 0.346, the mean of the twenty cells.
    assert value("accuracy", "Overall", None, "cyclenet-mlp", "mse") == 0.347
    # "Occlusion is the strongest" of the post-hoc explainers.
    assert score("Weather", "occlusion") < score("Weather", "integrated_gradients") < score("Weather", "timing")
    # On ETTh1, post-hoc explainers trail "by 0.13 to 0.37".
    assert score("ETTh1", "ibforecast") - score("ETTh1", "integrated_gradients") == pytest.approx(0.383)
    # The mask optimisers trail "by more than 0.5".
    assert score("Weather", "ibforecast") - score("Weather", "dynamask") == pytest.approx(0.459)
    # "TFT and PatchDecomp score negative fidelity."
    assert score("Weather", "tft") > 0 < score("Weather", "patchdecomp")
    # Bold, "the best performance", and yet below chance.
    recovered, by_chance = (value("support_recovery", "trend", 24, model, "aur") for model in ("ibforecast", "chance"))
    assert recovered < by_chance
    # Ablations of gates stay "within 2.5%"; and the full model is not the one of the fidelity table.
    full, ungated = (value("ablations", "ETTh1", 96, model, "mae") for model in ("ibforecast", "no-gated-base"))
    assert ungated / full == pytest.approx(0.959, abs=0.001)
    assert value("ablations", "ETTh1", 96, "ibforecast", "score") != score("ETTh1", "ibforecast")
    # Occlusion takes "about 46" forward-equivalent passes, and "56 to 168" forward passes.
    assert value("cost", "ETTh1", 96, "occlusion", "forward_equivalents") == 46
    assert value("cost", "ETTh1", None, "occlusion", "forward_passes") == 56
    # Two columns, one cell: presumably copied.
    for metric in ("mse", "mae"):
        cells = {value("per_horizon", "ETTh1", 96, model, metric) for model in ("protots", "patchtst")}
        assert len(cells) == 1
