"""Numbers that only the aims need."""

import pytest

from ibforecast_lab.experiments.derived import derived
from ibforecast_lab.experiments.plans import HORIZONS, MAIN

CELLS = [(data, horizon) for data in MAIN for horizon in HORIZONS]


def test_a_number_without_its_records_is_left_out() -> None:
    assert derived({}) == {}


def test_the_change_from_the_former_default_is_of_each_data_set() -> None:
    values = {"accuracy/ETTh1/default/mse": 0.99, "accuracy/ETTh1/steady/mse": 1.0, "accuracy/ETTh2/default/mse": 1.0}
    assert derived(values) == {"results/over_former/ETTh1/mse": pytest.approx(-0.01)}


def test_the_additive_readout_is_compared_over_all_cells_by_a_geometric_mean() -> None:
    values = {f"per_horizon/{data}/{horizon}/default/mse": 1.0 for data, horizon in CELLS}
    values |= {f"per_horizon/{data}/{horizon}/additive/mse": 2.0 for data, horizon in CELLS}
    half = CELLS[: len(CELLS) // 2]
    values |= {f"per_horizon/{data}/{horizon}/additive/mse": 0.5 for data, horizon in half}
    assert derived(values) == {"results/additive/geometric/mse": pytest.approx(0.0)}
    del values["per_horizon/ETTh1/96/additive/mse"]
    assert derived(values) == {}


def test_a_table_counts_as_lower_only_if_it_is_at_every_horizon() -> None:
    pair = "results/tables/default/lightgbm"
    ratios = {"bike_dc/24": 0.9, "tetuan/24": 0.9, "tetuan/144": 1.1, "vic_elec/48": 1.2}
    values = {f"{pair}/{place}/mse_ratio": ratio for place, ratio in ratios.items()}
    assert derived(values) == {f"{pair}/tables_lower_mse": 1.0}


def test_the_larger_run_of_a_benchmark_counts() -> None:
    values = {
        "bench:cpu-naive/naive_part/tables_validation_worse": 3.0,
        "bench:cpu-naive/naive/tables_validation_worse": 5.0,
        "bench:cpu-naive/naive_part/generated_validation_worse": 1.0,
    }
    assert derived(values) == {"results/naive/tables/worse": 5.0, "results/naive/generated/worse": 1.0}


def test_a_fleet_is_compared_with_the_better_of_seasonal_naive_and_mstl() -> None:
    of = "bench:cpu-fleet/fleet_global/tables_test"
    values = {f"{of}_shared_mean": 0.9, f"{of}_last_day_mean": 1.2, f"{of}_mstl_mean": 1.0}
    assert derived(values) == {"results/fleet/shared/tables/over_best": pytest.approx(-0.1)}


def test_exponents_between_the_two_largest_sizes_are_apart() -> None:
    of = "bench:cpu-growth/growth/channels"
    values = {f"{of}_a_exponent": 0.9, f"{of}_b_exponent": 1.0, f"{of}_a_last_exponent": 2.1}
    assert derived(values) == {"results/growth/channels/most": 1.0, "results/growth/channels/last": 2.1}


def test_other_libraries_are_counted_without_ours() -> None:
    of = "bench:cpu-neighbours/neighbours"
    values = {f"{of}/ibforecast_mse": 0.3, f"{of}/darts_tide_mse": 0.3, f"{of}/neuralforecast_nhits_mse": 0.3}
    assert derived(values) == {"results/neighbours": 2.0}
