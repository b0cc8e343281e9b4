"""From the measurements of studies to tables: means over seeds, ranks, and the published numbers next to them."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from click.testing import CliRunner

from ibforecast.cli.main import main
from ibforecast_lab.experiments.ledger import Cell, Ledger, Record, Scores
from ibforecast_lab.experiments.sheet import FORMATS, Sheet
from ibforecast_lab.experiments.tables import TABLES
from ibforecast_lab.experiments.tables.fidelity_rankings import WAYS

Measurements = list[dict[str, Any]]
LABELS = [
    "fidelity",
    "fidelity_by_budget",
    "fidelity_rankings",
    "certificate",
    "support_recovery",
    "cost",
    "gate_map",
    "gate_frequency",
]
FIDELITY = [
    "data",
    "horizon",
    "model",
    "budget",
    "explainer",
    "seeds",
    "comprehensiveness",
    "sufficiency",
    "score",
    "score_std",
]
RECOVERY = [
    *("mode", "model", "mse", "open_rate", "explainer", "seeds"),
    *("auroc", "aup", "aur", "auroc_std", "aup_std", "aur_std"),
]
EXPLAINERS = {
    "occlusion": (0.9, 0.2),
    "chance": (0.2, 0.9),
    "native": (1.1, 0.1),
    "timing_defaults": (0.8, 0.4),
    "timing_ten": (0.9, 0.3),
    "timing_twenty": (0.7, 0.3),
}


def record(cell: Cell, measurements: Measurements, open_rate: float = 0.2) -> Record:
    scores = Scores(10, 0.3, 0.4, open_rate, open_rate)
    numbers = (10, 0, 1, 2, 1, 1.0, 10.0)
    recipe = {"config": {"budget": 0.2} if cell.recipe == "choosing" else {}, "train": {}}
    proof = ("r", "d", 1, "c", "CPU", {}, "now")
    return Record(cell, "ibforecast", scores, scores, *numbers, recipe, *proof, measurements)


def fidelity_rows(explainer: str, comp: float | None, suff: float | None, frozen: bool = True) -> Measurements:
    """Return rows that are equal for every way to measure, except with frozen masks."""
    rows = []
    for measure, aggregate in WAYS:
        is_frozen = measure.gating == "frozen"
        if is_frozen and not frozen:
            continue
        values = ((1.0, 0.0) if explainer == "native" else (0.5, 0.5)) if is_frozen else (comp, suff)
        rows.append(
            {
                "measure": "fidelity",
                "explainer": explainer,
                "gating": measure.gating,
                "space": measure.space,
                "shift": measure.shift,
                "aggregate": aggregate,
                "left_out": 0,
                "comprehensiveness": values[0],
                "clipped_comprehensiveness": None if values[0] is None else min(values[0], 1.0) - 0.05,
                "sufficiency": values[1],
            }
        )
    return rows


def explained(
    data: str = "ETTh1",
    recipe: str = "choosing",
    seed: int = 2024,
    shift: float = 0.0,
    extra: Measurements | None = None,
) -> Record:
    rows = [row for name, (c, s) in EXPLAINERS.items() for row in fidelity_rows(name, c, s + shift)]
    return record(Cell(data, 96, recipe, seed, study="explanations"), [*rows, *(extra or [])])


def promises(replay_bits: int = 0) -> Measurements:
    return [
        {"measure": "windows", "of": 10, "indices": "0 9"},
        {
            "measure": "certificate",
            "windows": 2785,
            "replay_bits": replay_bits,
            "scramble_bits": 0,
            "compared": 1000,
            "scrambled": 2000,
        },
        {"measure": "sensitivity", "windows": 2785, "relative": 0.25, "gates_relative": None, "masks_changed": 0.9},
        {"measure": "rate", "windows": 2785, "prior": 0.2, "bits": 31.25},
    ]


def recovered(mode: str, recipe: str, seed: int, **auroc: float) -> Record:
    rows = []
    for explainer, value in auroc.items():
        areas = {"auroc": value, "aup": 0.4, "aur": 0.5}
        areas |= {f"{name}_by_window": area + 0.01 for name, area in areas.items()}
        rows.append({"measure": "recovery", "explainer": explainer, **areas})
    return record(Cell(f"framed-{mode}", 24, recipe, seed, study="recovery"), rows)


def costs(*devices: str) -> Record:
    rows = [
        {
            "measure": "cost",
            "explainer": explainer,
            "device": device,
            "windows": 64,
            "forward_equivalents": taken,
            "forwards": forwards,
            "backwards": 0.0,
        }
        for device in devices
        for explainer, taken, forwards in (("native", 1.02, 1.0), ("occlusion", 44.0, 57.0), ("saliency", 2.4, 1.0))
    ]
    return record(Cell("ETTh1", 96, "choosing", 2024, study="cost"), rows)


def lines(sheet: Sheet, **where: str) -> list[dict[str, str]]:
    every = [dict(zip(sheet.header, line, strict=True)) for line in sheet.body]
    return [line for line in every if all(line[name] == value for name, value in where.items())]


def rows(sheet: Sheet, **where: Any) -> Measurements:
    return [row for row in sheet.rows if all(row[name] == value for name, value in where.items())]


# --- Every label ---


def some_of_each() -> list[Record]:
    return [explained(extra=promises()), recovered("pulse", "framed", 2024, native=0.9), costs("cpu")]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "ledger.jsonl.zst")
    for one in some_of_each():
        ledger.write(one)
    return ledger


@pytest.mark.parametrize("label", LABELS)
def test_every_label_is_shown_in_every_format_with_records_and_without(
    ledger: Ledger, tmp_path: Path, label: str
) -> None:
    for form, packed in product(FORMATS, (ledger.packed, tmp_path / "none.zst")):
        shown = CliRunner().invoke(main, ["show", label, "--format", form, "--ledger", str(packed)])
        assert shown.exit_code == 0, shown.output
        if form == "json":
            keys = [list(row) for row in json.loads(shown.stdout)]
            assert all(key == keys[0] for key in keys)


@pytest.mark.parametrize("label", LABELS)
def test_every_line_of_a_table_has_a_cell_for_each_of_its_columns(label: str) -> None:
    sheet = TABLES[label](some_of_each())
    assert {len(line) for line in sheet.body} == {len(sheet.header)}


# --- Fidelity ---


def test_fidelity_is_averaged_over_seeds_and_the_score_limits_comprehensiveness_to_one() -> None:
    sheet = TABLES["fidelity"]([explained(seed=2024), explained(seed=2025, shift=0.2)])
    (row,) = rows(sheet, data="ETTh1", explainer="native", source="ledger")
    assert list(row)[: len(FIDELITY)] == FIDELITY
    assert (row["seeds"], row["budget"], row["horizon"]) == (2, 0.2, 96)
    assert row["comprehensiveness"] == pytest.approx(1.1)
    assert row["sufficiency"] == pytest.approx(0.2)
    assert row["score"] == pytest.approx(0.8)
    assert row["score_std"] == pytest.approx(0.2 / 2**0.5)
    assert row["clipped_comprehensiveness"] == pytest.approx(0.95)
    assert row["score_by_window"] == pytest.approx(0.75)
    assert (row["frozen_comprehensiveness"], row["frozen_sufficiency"]) == (1.0, 0.0)
    (line,) = lines(sheet, data="ETTh1", model="choosing", explainer="native")
    assert line["score"] == "**0.800 ± 0.141**"
    assert (line["read"], line["comp"], line["comp clipped"], line["suff"]) == ("20.0%", "1.100", "0.950", "0.200")


def test_published_fidelity_is_next_to_ours_and_never_in_our_columns() -> None:
    sheet = TABLES["fidelity"]([explained(recipe="paper-sparse"), explained(recipe="static-newest")])
    (ours,) = lines(sheet, data="ETTh1", model="paper-sparse", explainer="native")
    assert (ours["published comp"], ours["published suff"], ours["published score"]) == ("1.019", "0.069", "0.950")
    assert (ours["read"], ours["published read"]) == ("20.0%", "13.9%")
    absent = lines(sheet, data="ETTm1", model="paper-sparse")
    assert {line["score"] for line in absent} == {"not run"}
    assert {line["comp"] for line in absent} == {"–"}
    assert next(line for line in absent if line["explainer"] == "native")["published score"] == "0.923"
    (tft,) = lines(sheet, data="ETTh1", model="tft")
    assert (tft["explainer"], tft["score"], tft["published score"]) == ("native", "not run", "-1.478")
    static = lines(sheet, data="ETTh1", model="static-newest")
    assert {line["published score"] for line in static} == {"–"}
    published = rows(sheet, source="published")
    assert {row["seeds"] for row in published} == {0}
    assert {row["model"] for row in published} == {"ibforecast", "dlinear", "patchdecomp", "tft"}
    assert {row["open_rate"] for row in published if row["explainer"] == "native" and row["model"] != "ibforecast"} == {
        None
    }


def test_published_timing_is_next_to_the_best_of_three_and_its_defaults_next_to_the_defaults() -> None:
    sheet = TABLES["fidelity"]([explained(recipe="paper-sparse")])
    timing = {line["explainer"]: line["published score"] for line in lines(sheet, data="ETTh1", model="paper-sparse")}
    assert timing["timing_ten"] == "0.660"
    assert timing["timing_defaults"] == "0.404"
    assert timing["timing_twenty"] == "–"


def test_if_the_defaults_are_best_both_published_numbers_are_next_to_them() -> None:
    best = [
        row for name, comp in (("timing_defaults", 0.9), ("timing_ten", 0.5)) for row in fidelity_rows(name, comp, 0.1)
    ]
    sheet = TABLES["fidelity"]([record(Cell("ETTh1", 96, "paper-sparse", 1, study="explanations"), best)])
    (line,) = lines(sheet, model="paper-sparse", data="ETTh1", explainer="timing_defaults")
    assert (line["published comp"], line["published score"]) == ("0.939", "0.660 / 0.404")


def test_a_perfect_score_by_construction_is_marked_and_not_called_the_best() -> None:
    fixed = [*fidelity_rows("native", 1.0, 0.0), *fidelity_rows("occlusion", 0.9, 0.2)]
    sheet = TABLES["fidelity"]([record(Cell("ETTh1", 96, "static-fixed", 1, study="explanations"), fixed)])
    native, occlusion = lines(sheet, model="static-fixed", data="ETTh1")
    assert native["score"] == "1.000 (by construction)"
    assert occlusion["score"] == "0.700"


def test_an_undefined_value_is_marked_and_a_forecaster_without_masks_has_none_to_freeze() -> None:
    measured = fidelity_rows("native", None, None, frozen=False)
    sheet = TABLES["fidelity"]([record(Cell("ETTh1", 96, "dlinear", 1, study="explanations"), measured)])
    (line,) = lines(sheet, model="dlinear", data="ETTh1")
    assert (line["comp"], line["score"], line["frozen comp"]) == ("undefined", "undefined", "–")
    assert line["published score"] == "0.387"


def test_a_data_set_beyond_the_plan_is_shown_with_what_was_run_on_it() -> None:
    sheet = TABLES["fidelity"]([explained("ETTh2")])
    assert {line["model"] for line in lines(sheet, data="ETTh2")} == {"choosing"}
    assert {line["published score"] for line in lines(sheet, data="ETTh2")} == {"–"}


def test_a_lead_of_the_native_map_within_the_spread_of_seeds_is_level() -> None:
    records = [explained(seed=2024), explained(seed=2025, shift=0.3)]
    here = lines(TABLES["fidelity"](records), data="ETTh1", model="choosing")
    native = {line["explainer"]: line["native is"] for line in here}
    assert (native["native"], native["occlusion"], native["chance"]) == ("–", "level", "ahead")
    (one,) = rows(TABLES["fidelity"](records[:1]), model="choosing", explainer="occlusion", source="ledger")
    assert one["native_is"] == "one seed"


# --- Fidelity at every budget ---


def native_run(budget: float | None, horizon: int, comp: float, seed: int = 2024) -> Record:
    own = record(Cell("ETTh1", horizon, "sealed", seed, budget, study="native"), fidelity_rows("native", comp, 0.0))
    return replace(own, recipe={"config": {"budget": budget or 0.2}, "train": {}})


def test_fidelity_by_budget_counts_the_low_runs_at_other_budgets_and_horizons() -> None:
    runs = [native_run(None, 96, 0.1), native_run(0.05, 96, 0.98), native_run(0.05, 96, 0.8, 2025)]
    sheet = TABLES["fidelity_by_budget"]([*runs, native_run(0.5, 336, 0.7)])
    (line,) = lines(sheet, data="ETTh1", horizon="96", model="sealed", budget="5.0%")
    assert (line["runs"], line["lowest score"], line["runs below 0.9"]) == ("2", "0.800", "1")
    assert (line["lowest score by window"], line["runs below 0.9 by window"]) == ("0.750", "1")
    (others,) = rows(sheet, data="all")
    assert (others["runs"], others["below"], others["lowest"]) == (3, 2, 0.7)
    assert others["below_by_window"] == 2
    (absent,) = lines(sheet, data="ETTh1", horizon="192", budget="20.0%")
    assert (absent["score"], absent["runs"]) == ("not run", "–")


# --- Rankings ---


def test_ranks_follow_the_scores_under_each_of_the_24_ways() -> None:
    sheet = TABLES["fidelity_rankings"]([explained()])
    assert len(rows(sheet, explainer="native")) == len(WAYS) == 24
    regated = {row["explainer"]: row["rank"] for row in rows(sheet, gating="regated", space="frame", shift="squared")}
    assert regated == {
        "native": 1,
        "occlusion": 2,
        "timing_ten": 3,
        "timing_defaults": 4,
        "timing_twenty": 4,
        "chance": 6,
    }
    assert {row["rank"] for row in rows(sheet, gating="frozen") if row["explainer"] != "native"} == {2}


def test_rankings_have_a_line_for_each_way_and_the_range_of_ranks() -> None:
    sheet = TABLES["fidelity_rankings"]([explained()])
    assert sheet.header[:2] == ["data", "model"]
    assert sheet.header[6] == "**native**"
    assert len(lines(sheet, data="ETTh1", model="choosing")) == 24 + 2
    (line,) = lines(sheet, data="ETTh1", gating="regated", space="output", shift="l2", aggregate="mean_of_ratios")
    assert (line["**native**"], line["occlusion"]) == ("**1 (0.900)**", "2 (0.700)")
    (over_all,) = lines(sheet, data="ETTh1", gating="regated", space="all")
    assert (over_all["**native**"], over_all["chance"]) == ("1", "6")


def test_each_model_is_ranked_separately_and_a_missing_one_is_marked() -> None:
    other = explained(recipe="paper-sparse", shift=0.4)
    for row in other.measurements:
        if row["explainer"] == "occlusion":
            row["sufficiency"] = 0.0
    unranked = explained(recipe="static-newest")
    sheet = TABLES["fidelity_rankings"]([other, explained(), unranked, explained("ETTm1"), explained("ETTh2")])
    models = ["sealed", "choosing", "paper-sparse"]
    assert list(dict.fromkeys(line["model"] for line in lines(sheet, data="ETTh1"))) == models
    assert list(dict.fromkeys(row["model"] for row in rows(sheet, data="ETTh1"))) == ["choosing", "paper-sparse"]
    native = {line["model"]: line["**native**"] for line in lines(sheet, data="ETTh1", gating="regated", space="all")}
    assert native == {"choosing": "1", "paper-sparse": "2"}
    (absent,) = lines(sheet, data="ETTm1", model="paper-sparse")
    assert (absent["gating"], absent["**native**"]) == ("not run", "–")
    assert [line["gating"] for line in lines(sheet, data="Weather")] == ["not run"] * 3
    assert {line["model"] for line in lines(sheet, data="ETTh2")} == {"choosing"}


def test_a_rank_that_depends_on_the_way_is_a_range() -> None:
    one = explained()
    for row in one.measurements:
        if row["explainer"] == "native" and row["space"] == "output" and row["gating"] == "regated":
            row["sufficiency"] = 0.5
    (line,) = lines(TABLES["fidelity_rankings"]([one]), data="ETTh1", gating="regated", space="all")
    assert (line["**native**"], line["occlusion"]) == ("1–3", "1–2")


def test_an_undefined_score_has_no_rank_and_takes_none() -> None:
    undefined = [*fidelity_rows("native", None, None), *fidelity_rows("chance", 0.2, 0.9)]
    sheet = TABLES["fidelity_rankings"]([record(Cell("ETTh1", 96, "choosing", 1, study="explanations"), undefined)])
    regated = {row["explainer"]: row["rank"] for row in rows(sheet, gating="regated")}
    assert regated == {"native": None, "chance": 1}


# --- Certificate ---


def test_the_certificate_is_next_to_what_it_does_not_promise_in_named_units() -> None:
    sheet = TABLES["certificate"]([explained(seed=seed, extra=promises(bits)) for seed, bits in ((1, 0), (2, 3))])
    (line,) = lines(sheet, data="ETTh1", model="choosing")
    assert (line["windows"], line["bits changed on replay"], line["bits changed on scramble"]) == ("5,570", "3", "0")
    assert (line["values compared"], line["closed points scrambled"]) == ("2,000", "4,000")
    assert (line["end to end, of the squared shift"], line["end to end, root of it"]) == ("25.00%", "50.00%")
    assert line["by gates only, of the squared shift"] == line["by gates only, root of it"] == "undefined"
    assert (line["masks changed"], line["rate in bits"]) == ("90.00%", "31.2")
    (row,) = sheet.rows
    assert (row["seeds"], row["sensitivity_squared"], row["sensitivity_root"]) == (2, 0.25, 0.5)
    assert (row["gates_sensitivity_squared"], row["gates_sensitivity_root"], row["rate_bits"]) == (None, None, 31.25)


def unread(kind: str, changed: int = 0) -> dict[str, Any]:
    counts = {"masks": 0, "contexts": changed, "forecasts": changed, "changed": changed}
    return {"measure": "unread", "kind": kind, "windows": 2785, **counts}


def test_a_sealed_row_counts_windows_that_change_with_nothing_held_and_prints_exact_zeros() -> None:
    still = {"measure": "sensitivity", "windows": 2785, "relative": 0.0, "gates_relative": 0.0, "masks_changed": 0.0}
    sealed = [*promises()[:2], still, *promises()[3:], unread("noise"), unread("NaN")]
    records = [explained(recipe="sealed", seed=seed, extra=sealed) for seed in (1, 2)]
    moved = [*promises(), unread("noise", changed=2784), unread("NaN", changed=1)]
    sheet = TABLES["certificate"]([*records, explained(extra=moved)])
    (line,) = lines(sheet, data="ETTh1", model="sealed")
    assert (line["bits changed on scramble"], line["end to end, of the squared shift"]) == ("0", "0%")
    assert (line["end to end, root of it"], line["masks changed"]) == ("0%", "0%")
    assert (line["windows scrambled, nothing held"], line["windows changed by it"]) == ("11,140", "0")
    (line,) = lines(sheet, data="ETTh1", model="choosing")
    assert (line["contexts changed by it"], line["masks changed by it"]) == ("2,785", "0")
    assert (line["forecasts changed by it"], line["windows changed by it"]) == ("2,785", "2,785")
    (row,) = rows(sheet, model="sealed")
    assert (row["unread_windows"], row["unread_changed"], row["sensitivity_squared"]) == (11140, 0, 0)


def test_counts_with_nothing_held_are_not_run_unless_every_seed_has_them() -> None:
    with_counts, without = explained(seed=1, extra=[*promises(), unread("noise")]), explained(seed=2, extra=promises())
    sheet = TABLES["certificate"]([with_counts, without])
    (line,) = lines(sheet, data="ETTh1", model="choosing")
    assert (line["windows"], line["windows changed by it"]) == ("5,570", "not run")
    (line,) = lines(sheet, data="ETTh1", model="sealed")
    assert line["windows"] == line["windows scrambled, nothing held"] == line["windows changed by it"] == "not run"


def test_a_data_set_without_a_certificate_is_not_run_and_other_models_follow() -> None:
    sheet = TABLES["certificate"]([explained(recipe="paper-sparse", extra=promises()), explained("ETTm1")])
    assert lines(sheet, data="Weather")[0]["windows"] == "not run"
    assert lines(sheet, data="ETTm1")[0]["windows"] == "not run"
    assert [line["model"] for line in lines(sheet, data="ETTh1")] == ["sealed", "choosing", "paper-sparse"]


# --- Recovery ---


def test_recovery_is_averaged_over_seeds_next_to_the_published_numbers() -> None:
    seeds = [recovered("pulse", "framed", seed, native=0.8 + seed / 10, timing_defaults=0.5) for seed in (0, 1, 2)]
    sheet = TABLES["support_recovery"](seeds)
    (row,) = rows(sheet, mode="pulse", model="framed", explainer="native")
    assert list(row) == [*RECOVERY, "auroc_by_window", "aup_by_window", "aur_by_window", "source"]
    assert (row["seeds"], row["source"]) == (3, "ledger")
    assert row["mse"] == pytest.approx(mean(one.test.mse for one in seeds))
    assert row["auroc"] == pytest.approx(0.9)
    assert row["auroc_std"] == pytest.approx(0.1)
    assert row["auroc_by_window"] == pytest.approx(0.91)
    native, timing = lines(sheet, mode="pulse", model="framed")
    assert (native["AUROC"], native["published auroc"]) == ("**0.900 ± 0.100**", "0.912 ± 0.003")
    assert (timing["AUROC"], timing["published auroc"]) == ("0.500 ± 0.000", "0.524 ± 0.000")
    (published,) = rows(sheet, mode="pulse", model="ibforecast", explainer="native")
    assert (published["source"], published["seeds"], published["aup"]) == ("published", 0, 0.471)
    assert (published["mse"], published["open_rate"]) == (None, None)


def test_rivals_have_their_own_published_numbers_and_missing_runs_are_marked() -> None:
    sheet = TABLES["support_recovery"]([recovered("decoy", "patchdecomp", 1, native=0.7)])
    (rival,) = lines(sheet, mode="decoy", model="patchdecomp")
    assert (rival["AUROC"], rival["published auroc"]) == ("**0.700**", "0.815 ± 0.008")
    absent = {line["explainer"]: line for line in lines(sheet, mode="decoy", model="framed")}
    assert {line["AUROC"] for line in absent.values()} == {"not run"}
    assert absent["native"]["published auroc"] == "0.878 ± 0.005"
    assert absent["timing_defaults"]["published auroc"] == "0.530 ± 0.000"
    assert len(absent) == 8
    (paper,) = lines(sheet, mode="decoy", model="paper-sparse")
    assert (paper["AUROC"], paper["published auroc"]) == ("not run", "0.878 ± 0.005")


# --- Cost ---


def test_passes_and_the_time_on_each_device_have_separate_columns() -> None:
    records = [costs("cuda", "cpu"), explained()]
    for row in records[0].measurements:
        if row["device"] == "cuda":
            row["forward_equivalents"] /= 4
    sheet = TABLES["cost"](records)
    (line,) = lines(sheet, data="ETTh1", model="choosing", explainer="occlusion")
    assert (line["forward passes"], line["published forward passes"]) == ("57", "56")
    assert (line["time on the GPU, in forecasts"], line["time on the CPU, in forecasts"]) == ("11.00", "44.00")
    assert (line["fidelity score"], line["published time on a GPU, in forecasts"]) == ("0.700", "46")
    (saliency,) = lines(sheet, data="ETTh1", model="choosing", explainer="saliency")
    assert (saliency["fidelity score"], saliency["published backward passes"]) == ("not run", "1")
    (dynamask,) = lines(sheet, data="ETTh1", model="choosing", explainer="dynamask")
    assert (dynamask["forward passes"], dynamask["published optimisation steps per batch"]) == ("not run", "500")
    (weather,) = lines(sheet, data="Weather", model="choosing", explainer="occlusion")
    assert (weather["forward passes"], weather["published forward passes"]) == ("not run", "168")


def test_a_device_that_was_not_timed_has_no_time() -> None:
    (line,) = lines(TABLES["cost"]([costs("cpu")]), data="ETTh1", model="choosing", explainer="occlusion")
    assert (line["time on the GPU, in forecasts"], line["time on the CPU, in forecasts"]) == ("–", "44.00")


def test_the_flat_rows_of_cost_have_their_source() -> None:
    sheet = TABLES["cost"]([costs("cpu"), explained()])
    (native,) = rows(sheet, explainer="native", source="ledger")
    assert (native["device"], native["forward_equivalents"], native["score"]) == ("cpu", 1.02, pytest.approx(0.9))
    (timed,) = rows(sheet, explainer="timing", source="published", data="ETTh1")
    assert (timed["device"], timed["forward_equivalents"], timed["forwards"]) == ("cuda", 148.0, None)
    (counted,) = rows(sheet, explainer="timing", source="published", data="any")
    assert (counted["forwards"], counted["backwards"]) == (50.0, 50.0)
    assert {row["model"] for row in rows(sheet, source="published")} == {"ibforecast"}


# --- Gates ---


def gates(table: list[list[float]]) -> Measurements:
    return [
        {"measure": "gate_frequency", "windows": 512, "frequency": table},
        {"measure": "gate_map", "window": 1392, "probability": table, "mask": [[0, 1], [0, 1]]},
    ]


def test_gates_are_tables_of_lags_by_channels_for_each_recipe() -> None:
    choosing, paper = gates([[0.1, 0.9], [0.25, 0.75]]), gates([[0.2, 0.8], [0.35, 0.65]])
    records = [explained(recipe="paper-sparse", extra=paper), explained(extra=choosing)]
    frequency, one = TABLES["gate_frequency"](records), TABLES["gate_map"](records)
    assert frequency.header == one.header == ["model", "lags", "channel 1", "channel 2"]
    assert frequency.body == [
        ["sealed", "not run", "–", "–"],
        ["choosing", "-96 to -49", "0.10", "0.90"],
        ["choosing", "-48 to -1", "0.25", "0.75"],
        ["paper-sparse", "-96 to -49", "0.20", "0.80"],
        ["paper-sparse", "-48 to -1", "0.35", "0.65"],
    ]
    assert one.body[1] == ["choosing", "-96 to -49", "0.10", "**0.90**"]
    assert one.body[3] == ["paper-sparse", "-96 to -49", "0.20", "**0.80**"]
    assert [(row["patch"], row["channel"], row["frequency"]) for row in rows(frequency, model="choosing")][1] == (
        1,
        2,
        0.9,
    )
    assert [row["frequency"] for row in rows(frequency, model="paper-sparse")] == [0.2, 0.8, 0.35, 0.65]
    assert [row["open"] for row in one.rows] == [False, True] * 4
    assert "choosing: 512 test windows of ETTh1, horizon 96, seed 2024." in frequency.note
    assert "paper-sparse: test window 1,392 of ETTh1, horizon 96, seed 2024." in one.note


def test_a_recipe_whose_gates_were_not_measured_is_not_run() -> None:
    table = [[0.1, 0.9], [0.25, 0.75]]
    for label in ("gate_map", "gate_frequency"):
        sheet = TABLES[label]([explained(extra=gates(table)), explained(recipe="paper-sparse")])
        assert sheet.body[3:] == [["paper-sparse", "not run", "–", "–"]]
        assert {row["model"] for row in sheet.rows} == {"choosing"}
        elsewhere = TABLES[label]([explained("Weather", extra=gates(table))])
        assert elsewhere.body == [["sealed", "not run"], ["choosing", "not run"], ["paper-sparse", "not run"]]


def test_the_gates_of_the_smallest_seed_are_shown() -> None:
    one, other = gates([[0.1, 0.9], [0.25, 0.75]]), gates([[0.2, 0.8], [0.35, 0.65]])
    sheet = TABLES["gate_frequency"]([explained(seed=2026, extra=other), explained(seed=2025, extra=one)])
    assert {row["seed"] for row in sheet.rows} == {2025}
    assert sheet.body[1] == ["choosing", "-96 to -49", "0.10", "0.90"]
