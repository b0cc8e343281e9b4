"""Every number that the pages of the documentation may quote, by name.

The numbers of the tables come from `facts`. Those that combine several records are computed here and are named
`results/…`; those of single runs are named `runs/DATA/HORIZON/RECIPE/SEED/COLUMN`; those of the benchmarks are named
`bench:FILE/MEASURE/KEY`. Numbers of trials have no names, only files.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import product
from pathlib import Path
from statistics import geometric_mean, mean
from typing import Any, get_args

from ibforecast.zoo.recipes import DEFAULT
from ibforecast_lab.data.fev import TASKS
from ibforecast_lab.data.suite import SUITE
from ibforecast_lab.experiments.derived import derived
from ibforecast_lab.experiments.facts import facts
from ibforecast_lab.experiments.frame import DEFAULT_WAY, Lead, Row, errors, frame, grouped, select
from ibforecast_lab.experiments.ledger import LOOK_BACK, Cell, Ledger, Record
from ibforecast_lab.experiments.plans import (
    BLACK_BOX,
    CHOOSING,
    EXPLAINED,
    FITTED,
    FITTED_IN_SUITE,
    FORMER,
    HORIZONS,
    INTERPRETABLE,
    LONGER,
    MAIN,
    ONE_MASK,
    OPEN,
)
from ibforecast_lab.experiments.sheet import NATIVE, PAPER, Sheet
from ibforecast_lab.experiments.tables import sheets_of
from ibforecast_lab.experiments.tables.coverage import CLOSE
from ibforecast_lab.experiments.tables.errors import COMPARED, FIELD, OVERALL
from ibforecast_lab.experiments.tables.suite import AVERAGED

CELLS = tuple((data, horizon) for data in MAIN for horizon in HORIZONS)
RIVALS = (*BLACK_BOX, *INTERPRETABLE, *FITTED, PAPER)
"""All that the default is compared with on a cell: networks, fitted models, and the paper in print."""

COMPARED_IN_SUITE = (
    *((DEFAULT, model) for model in (FORMER, *FITTED_IN_SUITE, "tqnet", "cyclenet-mlp", "choosing+open")),
    *((CHOOSING, model) for model in ("choosing+no-exchange", ONE_MASK)),
    ("additive", DEFAULT),
)
"""The pairs of models that are compared on the tables of the suite."""

NEWEST = ("olinear", "timeemb", "timexer")
"""Rivals that may have been run in a part of the cells only."""

APART = 30
"""Seconds between the ends of two cells that are taken to be of one run."""

OFFICIAL_EPOCH = {"ETTh1": 0.67, "ETTm1": 3.0, "Weather": 9.3}
"""Seconds of an epoch of the official code of TQNet on one H200, measured before the project: not in the ledger."""

OFFICIAL_DEVICE = "NVIDIA H200"
LOOK_BACKS = (LOOK_BACK, *LONGER)
BENCH = Path("results/bench")
TRIALS = Path("results/trials")

Values = Mapping[str, float]
Sheets = Mapping[str, Sheet]


def quoted(sheets: Sheets, records: list[Record], bench: Path = BENCH) -> dict[str, float]:
    """Return every number by its name."""
    values = facts(sheets) | benchmarks(bench) | compared_in_suite(records)
    values |= {
        **_runs(records),
        **_comparisons(sheets),
        **_over_the_former(sheets, values),
        **_lead_over_tqnet(sheets),
        **_fidelity(sheets),
        **_budgets(values),
        **_promises(sheets, records),
        **_speed(values),
        **_contests(records),
        **stacked(records),
        **_aimed(sheets, values),
        **_over_official(records),
        **_over_longer(values),
    }
    return values | derived(values)


def _contests(records: list[Record]) -> dict[str, float]:
    """Count the contests of the default on the benchmarks and on the tables of the suite, by winner."""
    values: dict[str, float] = {}
    for prefix, places in (("", MAIN), ("tables/", SUITE)):
        contests = [
            row
            for record in records
            if record.cell.recipe == DEFAULT
            and record.cell.data in places
            and record.cell.look_back == LOOK_BACK
            and record.cell.budget is None
            for row in record.measurements
            if row["measure"] == "contest"
        ]
        values[f"results/contest/{prefix}runs"] = float(len(contests))
        for winner in ("sealed", "additive"):
            values[f"results/contest/{prefix}{winner}"] = float(len(select(contests, winner=winner)))
    return values


def stacked(records: list[Record]) -> dict[str, float]:
    """Return the largest stacked run of our recipes on the benchmarks: its cells, and the seconds that it took.

    Records have the end of a cell and its share of the training of its stack, but not the command that it belongs to.
    Cells that end within `APART` seconds of each other are taken for one run. `span` is the time from the first end to
    the last, and `first` the training of the stack whose cell ended first. `wall` is both together: the recorded
    duration of the run, without the start of its processes. `seconds` is the training of all these cells, added up.
    """
    values: dict[str, float] = {}
    for recipe in (DEFAULT, ONE_MASK):
        own = [
            record
            for record in records
            if (record.cell.recipe, record.cell.study, record.cell.budget) == (recipe, "", None)
            and record.cell.data in MAIN
            and record.cell.look_back == LOOK_BACK
            and any(row["measure"] == "stacked" for row in record.measurements)
        ]
        run = max(_one_after_the_other(own), key=len, default=[])
        if run:
            first, last = run[0], run[-1]
            stack = [one for one in run if _stack(one) == _stack(first)]
            span = (_end(last) - _end(first)).total_seconds()
            training = sum(record.seconds for record in stack)
            numbers = {"cells": len(run), "seconds": sum(record.seconds for record in run), "span": span}
            numbers |= {"first": training, "wall": span + training}
            values |= {f"results/stacked/{recipe}/{name}": float(number) for name, number in numbers.items()}
    return values


def _end(record: Record) -> datetime:
    return datetime.fromisoformat(record.finished)


def _stack(record: Record) -> tuple[int, int, int]:
    """Return what cells of one stack have in common here: horizon, channels and cycle."""
    config = record.recipe["config"]
    return record.cell.horizon, config["channels"], config["cycle"]


def _one_after_the_other(records: list[Record]) -> Iterator[list[Record]]:
    """Yield groups of records, each of which ended soon after the one before it."""
    run: list[Record] = []
    for record in sorted(records, key=lambda record: (record.finished, record.cell.key)):
        if run and (_end(record) - _end(run[-1])).total_seconds() > APART:
            yield run
            run = []
        run.append(record)
    if run:
        yield run


def _over_official(records: list[Record]) -> dict[str, float]:
    """Return how many times as fast as by the official code of TQNet a cell of ours is trained, at horizon 96.

    The seconds of that code are those of an epoch, measured before the project, times the mean epochs of our TQNet.
    """
    figures: dict[str, float] = {}
    for recipe in (DEFAULT, ONE_MASK):
        ratios = {}
        for data, epoch in OFFICIAL_EPOCH.items():
            ours, theirs = (
                [
                    record
                    for record in records
                    if record.cell == Cell(data, 96, model, record.cell.seed) and record.device == OFFICIAL_DEVICE
                ]
                for model in (recipe, "tqnet")
            )
            if ours and theirs:
                official = epoch * mean(record.epochs for record in theirs)
                ratios[data] = official / mean(record.seconds for record in ours)
        figures |= {f"results/over_official/{recipe}/{data}": ratio for data, ratio in ratios.items()}
        if len(ratios) == len(OFFICIAL_EPOCH):
            figures[f"results/over_official/{recipe}/least"] = min(ratios.values())
    return figures


def _over_longer(values: Values) -> dict[str, float]:
    """Return the change of test errors from the longer training of the default, which results/trials has."""
    rows = [json.loads(line) for line in (TRIALS / "retired.jsonl").read_text("utf8").splitlines()]
    figures: dict[str, float] = {}
    for row in select(rows, model=DEFAULT, training="longer"):
        names = {
            "per_horizon": f"per_horizon/{row['data']}/{row.get('horizon')}/{DEFAULT}",
            "tables": f"tables/{row['data']}/{row.get('horizon')}/{DEFAULT}",
        }
        if row["table"] in names and f"{names[row['table']]}/mse" in values:
            for metric in COMPARED.values():
                over = values[f"{names[row['table']]}/{metric}"] / row[metric] - 1
                figures[f"results/over_longer/{row['data']}/{metric}"] = over
    return figures


def _aimed(sheets: Sheets, values: Values) -> dict[str, float]:
    """Return numbers that only the aims need."""
    figures: dict[str, float] = {}
    overall = [row for row in select(sheets["accuracy"].rows, data=OVERALL, other_budget=None) if _counts_all(row)]
    for metric in COMPARED.values():
        best = min(float(row[metric]) for row in overall if row[metric] is not None)
        figures[f"results/over_best_mean/{metric}"] = values[f"accuracy/{OVERALL}/{DEFAULT}/{metric}"] / best - 1
        if (ratio := values.get(f"results/tables/additive/{DEFAULT}/{metric}_ratio")) is not None:
            figures[f"results/additive/tables_over/{metric}"] = ratio - 1
    planted = grouped([row for row in sheets["support_recovery"].rows if row["aup"] is not None], ("mode",))
    largest = {mode: max(float(row["aup"]) for row in rows) for (mode,), rows in planted.items()}
    by_error = _planted_by_error()
    figures |= by_error | {
        f"results/planted/{word}": float(
            sum(numbers.get(of.format(mode), -1.0) >= most for mode, most in largest.items())
        )
        for word, of, numbers in (
            ("best_aup", f"support_recovery/{{}}/framed/{NATIVE}/aup", values),
            ("by_error/best_aup", "results/planted/by_error/{}/aup", by_error),
        )
    }
    for model in (CHOOSING, ONE_MASK):
        rows = [row for row in select(sheets["fidelity_by_budget"].rows, model=model) if row["score"] is not None]
        if rows:
            numbers = {
                "lines": len(rows),
                "sufficiency": max(float(row["sufficiency"]) for row in rows),
                "score": min(float(row["score_by_window"]) for row in rows),
            }
            figures |= {f"results/by_budget/{model}/{name}": float(number) for name, number in numbers.items()}
    longer = select(sheets["look_back"].rows, look_back=336)
    changes = [row["mse_change"] for row in longer if row.get("mse_change") is not None]
    if changes:
        figures["results/look_back/336/data"] = float(len(changes))
        figures["results/look_back/336/better"] = float(sum(change < 0 for change in changes))
    for model in NEWEST:
        own = select(sheets["per_horizon"].rows, model=model, source="ledger", other_budget=None)
        lower = [row for row in own if row["mse"] < row_of_ours(sheets, row["data"], row["horizon"], DEFAULT)["mse"]]
        figures[f"results/newest/{model}/cells"] = float(len(own))
        figures[f"results/newest/{model}/lower_mse"] = float(len(lower))
    return figures | _fev(values)


def _planted_by_error() -> dict[str, float]:
    """Return the recovery of planted truth by the settings with the smallest validation errors, from results/trials."""
    rows = [json.loads(line) for line in (TRIALS / "h200-19.jsonl").read_text("utf8").splitlines()]
    return {
        f"results/planted/by_error/{row['data'].removeprefix('framed-')}/{column}": float(row[column])
        for row in rows
        if "seeds" in row
        for column in ("auroc", "aup")
    }


def _counts_all(row: Row) -> bool:
    """Return whether the row is of a rival, run or in print, and of all test windows."""
    return row["model"] in (*RIVALS, *FIELD) and not row["dropped_batch"]


def _fev(values: Values) -> dict[str, float]:
    """Return in how many tasks the default is ahead of trained models, by look-back, if all tasks were run."""
    figures: dict[str, float] = {}
    for look_back in LOOK_BACKS:
        ours = {task: values.get(f"fev/{task}/{DEFAULT}/{look_back}/MASE") for task in TASKS}
        scores = {task: score for task, score in ours.items() if score is not None}
        if len(scores) == len(TASKS):
            ahead = sum(
                all(score < values[f"fev/{task}/{model}/published/MASE"] for model in ("PatchTST", "LightGBM"))
                for task, score in scores.items()
            )
            close = sum(
                score <= 1.03 * values[f"fev/{task}/Chronos-2/published/MASE"] for task, score in scores.items()
            )
            figures |= {f"results/fev/{look_back}/ahead": float(ahead), f"results/fev/{look_back}/close": float(close)}
    for word in ("ahead", "close"):
        counts = [value for name, value in figures.items() if name.endswith(f"/{word}")]
        if counts:
            figures |= {f"results/fev/{word}": max(counts), "results/fev/look_backs": float(len(counts))}
    return figures


def compared_in_suite(records: list[Record]) -> dict[str, float]:
    """Compare pairs of models on the tables of the suite, by the places and seeds that both have.

    Ratios are errors of the first model divided by those of the second, at each place and as geometric means over
    places. `lines` counts the places, `lower_mse` those in which the first model has the lower MSE.
    """
    own = select(errors(frame(records)), own_budget=True, look_back=LOOK_BACK)
    runs = grouped(own, ("model", "data", "horizon"))
    values: dict[str, float] = {}
    for ours, other in COMPARED_IN_SUITE:
        pair = f"results/tables/{ours}/{other}"
        both = {
            place: _of_shared_seeds(runs.get((ours, *place), []), runs.get((other, *place), []), other)
            for place in AVERAGED
        }
        for metric in COMPARED.values():
            ratios = {
                f"{pair}/{data}/{horizon}/{metric}_ratio": mean(row[metric] for row in one)
                / mean(row[metric] for row in two)
                for (data, horizon), (one, two) in both.items()
                if one and two
            }
            if ratios:
                lower = sum(ratio < 1 for ratio in ratios.values())
                values |= ratios | {f"{pair}/lines": float(len(ratios)), f"{pair}/lower_{metric}": float(lower)}
                values[f"{pair}/tables"] = float(len({data for (data, _), (one, two) in both.items() if one and two}))
                values[f"{pair}/{metric}_ratio"] = geometric_mean(ratios.values())
    return values


def _of_shared_seeds(ours: list[Row], others: list[Row], other: str) -> tuple[list[Row], list[Row]]:
    """Return the runs of two models that have the same seeds; a fitted model needs no seeds."""
    if other in FITTED:
        return ours, others
    both = {row["seed"] for row in ours} & {row["seed"] for row in others}
    return [row for row in ours if row["seed"] in both], [row for row in others if row["seed"] in both]


def benchmarks(folder: Path) -> dict[str, float]:
    """Return the numbers of the benchmarks by their names."""
    return {
        f"bench:{path.stem}/{measure}/{key}": float(value)
        for path in sorted(folder.glob("*.json"))
        for measure, numbers in json.loads(path.read_text("utf8"))["measures"].items()
        for key, value in _flat(numbers)
    }


def _flat(numbers: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a benchmark, also those of its parts; of promises that were broken, how many."""
    for key, value in numbers.items():
        if isinstance(value, Mapping):
            yield from ((f"{key}/{name}", number) for name, number in _flat(value))
        elif isinstance(value, int | float):
            yield key, value
        elif key == "broken":
            yield key, len(value)


def trials(folder: Path) -> dict[str, list[float]]:
    """Return the numbers of each file of trials, except the errors by epoch."""
    by_epoch = re.compile(r'"hist": \[[^]]*\]')
    number = re.compile(r"(?<![\w.])\d*\.?\d+(?:e-?\d+)?")
    return {
        path.name: [float(text) for text in number.findall(by_epoch.sub("", path.read_text("utf8")))]
        for path in sorted(folder.glob("*.jsonl"))
    }


def rows_of_rivals(sheets: Sheets, data: str, horizon: int) -> list[Row]:
    """Return the errors of every rival on a cell, in our runs and as published."""
    rows = select(sheets["per_horizon"].rows, data=data, horizon=horizon)
    return [row for row in rows if row["model"] in RIVALS]


def best_rival(sheets: Sheets, data: str, horizon: int, metric: str) -> Row:
    """Return the row with the lowest error of any rival on a cell; it says how the default compares with it."""
    return min(rows_of_rivals(sheets, data, horizon), key=lambda row: float(row[metric]))


def _runs(records: list[Record]) -> dict[str, float]:
    """Return the errors of single runs at the budget of their recipe, and the fidelity of their native maps."""
    tidy = [row for row in frame(records) if row["own_budget"] and row["look_back"] == LOOK_BACK]
    kinds = (
        (select(tidy, measure="errors"), ("mse", "mae", "open_rate", "validation_mse")),
        (select(tidy, measure="fidelity", explainer=NATIVE, **DEFAULT_WAY), ("sufficiency", "score")),
    )
    return {
        f"runs/{row['data']}/{row['horizon']}/{row['model']}/{row['seed']}/{column}": float(row[column])
        for rows, columns in kinds
        for row in rows
        for column in columns
        if row[column] is not None
    }


def _comparisons(sheets: Sheets) -> dict[str, float]:
    """Return the cells in which the default is ahead, level or behind, and those close to the best published error."""
    compared_with = {row["model"] for cell in CELLS for row in rows_of_rivals(sheets, *cell)}
    figures = {"results/cells/rivals": float(len(compared_with))}
    for compared, metric in COMPARED.items():
        best = [best_rival(sheets, *cell, metric) for cell in CELLS]
        figures[f"results/cells/best_rivals/{metric}"] = float(len({row["model"] for row in best}))
        for word in get_args(Lead):
            count = len(select(best, **{compared: word}))
            figures[f"results/cells/{word.replace(' ', '_')}/{metric}"] = float(count)
        not_behind = sum(len(select(best, **{compared: word})) for word in ("ahead", "level"))
        figures[f"results/cells/not_behind/{metric}"] = float(not_behind)
        for model in (DEFAULT, FORMER, OPEN):
            close = [
                row_of_ours(sheets, *cell, model)[metric] <= 1.01 * _published(sheets, *cell, metric) for cell in CELLS
            ]
            figures[f"results/within_1_percent_of_published/{model}/{metric}"] = float(sum(close))
    return figures


def _over_the_former(sheets: Sheets, values: Values) -> dict[str, float]:
    """Return the largest change of a data set's error from the former default to the default, and the cells by lead."""
    figures: dict[str, float] = {}
    for compared, metric in COMPARED.items():
        over = [
            values[f"accuracy/{data}/{DEFAULT}/{metric}"] / values[f"accuracy/{data}/{FORMER}/{metric}"] - 1
            for data in MAIN
        ]
        figures[f"results/over_former/most/{metric}"] = max(over)
        cells = [row_of_ours(sheets, *cell, FORMER) for cell in CELLS]
        for word in ("ahead", "level", "behind"):
            figures[f"results/over_former/{word}/{metric}"] = float(len(select(cells, **{compared: word})))
    return figures


def row_of_ours(sheets: Sheets, data: str, horizon: int, model: str) -> Row:
    """Return the errors of our runs of a model on a cell, at its own budget."""
    rows = select(sheets["per_horizon"].rows, data=data, horizon=horizon, model=model, source="ledger")
    (row,) = select(rows, other_budget=None)
    return row


def _published(sheets: Sheets, data: str, horizon: int, metric: str) -> float:
    return min(float(row[metric]) for row in select(rows_of_rivals(sheets, data, horizon), source="published"))


def _lead_over_tqnet(sheets: Sheets) -> dict[str, float]:
    """Return the lead of both defaults over TQNet, our runs and its better number, and the share of each data set."""
    figures: dict[str, float] = {}
    sources_by_name = {"own": ("ledger",), "better": ("ledger", "published")}
    for model, (name, sources) in product((DEFAULT, FORMER), sources_by_name.items()):
        leads = {
            data: mean(
                min(
                    row["mse"]
                    for row in select(rows_of_rivals(sheets, data, horizon), model="tqnet")
                    if row["source"] in sources
                )
                - row_of_ours(sheets, data, horizon, model)["mse"]
                for horizon in HORIZONS
            )
            for data in MAIN
        }
        total = sum(leads.values())
        shares = {data: lead / total for data, lead in leads.items()}
        shares |= {"ETTm": shares["ETTm1"] + shares["ETTm2"]}
        figures |= {f"results/lead_over_tqnet/{model}/{name}/{data}/share": share for data, share in shares.items()}
        figures[f"results/lead_over_tqnet/{model}/{name}/mse"] = total / len(MAIN)
    return figures


def _fidelity(sheets: Sheets) -> dict[str, float]:
    """Return the smallest and the largest strict score of the choosing model's mask and of the best explainer."""
    native = select(rows_of(sheets, "fidelity", CHOOSING), explainer=NATIVE)
    figures: dict[str, float] = {}
    for name, rows in (("native", native), ("best_explainer", best_explainers(sheets))):
        strict = [float(row["score_by_window"]) for row in rows]
        figures |= {f"results/fidelity/{name}/least": min(strict), f"results/fidelity/{name}/most": max(strict)}
    return figures


def best_explainers(sheets: Sheets) -> list[Row]:
    """Return for each data set the explainer of the choosing model, except its mask, with the highest strict score."""
    rows = [row for row in rows_of(sheets, "fidelity", CHOOSING) if row["explainer"] != NATIVE]
    return [max(here, key=lambda row: float(row["score_by_window"])) for here in grouped(rows, ["data"]).values()]


def _budgets(values: Values) -> dict[str, float]:
    """Return the mean error at a tenth over that at a fifth."""
    own = f"accuracy/{OVERALL}/{DEFAULT}"
    return {
        f"results/over_own/0.1/{metric}": values[f"{own}/0.1/{metric}"] / values[f"{own}/{metric}"] - 1
        for metric in COMPARED.values()
    }


def rows_of(sheets: Sheets, label: str, model: str) -> list[Row]:
    """Return the rows of a model at horizon 96 on the main data sets, in their order."""
    rows = select(sheets[label].rows, model=model, horizon=96, source="ledger")
    return [row for data in MAIN for row in select(rows, data=data)]


def _promises(sheets: Sheets, records: list[Record]) -> dict[str, float]:
    """Return the promises of choosing models under `certificate`, of sealed ones under `sealed`, and of intervals."""
    certified, sealed = (rows_of(sheets, "certificate", model) for model in (CHOOSING, ONE_MASK))
    covered = rows_of(sheets, "coverage", DEFAULT)
    roots = [row["sensitivity_root"] for row in certified]
    plain, adaptive = (
        [abs(row[f"{prefix}coverage"] - row["level"] / 100) for row in covered] for prefix in ("", "adaptive_")
    )
    return {
        "results/certificate/bits": float(sum(row["replay_bits"] + row["scramble_bits"] for row in certified)),
        "results/certificate/shift/least": min(roots),
        "results/certificate/shift/most": max(roots),
        "results/sealed/windows": float(sum(row["windows"] for row in sealed)),
        "results/sealed/unread_windows": float(sum(row["unread_windows"] for row in sealed)),
        "results/sealed/unread_changed": float(sum(row["unread_changed"] for row in sealed)),
        "results/coverage/cases": float(len(covered)),
        "results/coverage/plain_missed": float(sum(miss > CLOSE for miss in plain)),
        "results/coverage/adaptive_most": max(adaptive),
        "results/coverage/adaptive_wider": float(sum(row["adaptive_width"] > row["width"] for row in covered)),
        "results/verified/windows": float(sum(record.verified_windows for record in records)),
        "results/verified/broken": float(sum(record.broken_windows for record in records)),
    }


def _speed(values: Values) -> dict[str, float]:
    """Return the most that an explained forecast costs in any shape, over the same readout of everything."""
    return {
        f"results/explanation/{recipe}/most": max(
            values[f"bench:cpu/explanation/{data}_{batch}_{recipe}_over_open"]
            for data in EXPLAINED
            for batch in (1, 64)
        )
        for recipe in (ONE_MASK, CHOOSING)
    }


if __name__ == "__main__":
    every = Ledger().records()
    for name, value in quoted(sheets_of(every), every).items():
        print(f"{name} {value:.6g}")
