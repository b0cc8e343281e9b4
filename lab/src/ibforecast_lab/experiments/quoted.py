"""Every number that the pages of the documentation may quote, by name.

The numbers of the tables come from `facts`. Those that combine several records are computed here and are named
`results/…`; those of single runs are named `runs/DATA/HORIZON/RECIPE/SEED/COLUMN`; those of the benchmarks are named
`bench:FILE/MEASURE/KEY`. Numbers of trials have no names, only files.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import mean, stdev

from ibforecast_lab.experiments.facts import facts
from ibforecast_lab.experiments.frame import DEFAULT_WAY, frame, select
from ibforecast_lab.experiments.ledger import LEDGER, Ledger, Record
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.sheet import NATIVE
from ibforecast_lab.experiments.tables.fidelity import LOW, runs_by_budget
from ibforecast_lab.experiments.variants import split_name

DATA, HORIZONS = PLANS["per_horizon"].data, PLANS["per_horizon"].horizons
CELLS = tuple((data, horizon) for data in DATA for horizon in HORIZONS)
METRICS = ("mse", "mae")
OURS = ("steady", "dense", "static-fixed")
RIVALS = (
    *("tqnet", "cyclenet-linear", "cyclenet-mlp", "itransformer", "patchtst"),
    *("timesnet", "patchdecomp", "tft", "dlinear", "protots"),
)
PAPER = "ibforecast"
"""The paper's model as published; our runs of its recipe are `paper`."""

BENCH = Path("results/bench")
TRIALS = Path("results/trials")
DEFAULT_BUDGET = 0.2

Values = Mapping[str, float]
Scores = dict[tuple[str, int, str], list[dict[str, float]]]
"""The errors of each run of a recipe, by data set, horizon and recipe."""


def quoted(ledger: Path = LEDGER, bench: Path = BENCH) -> dict[str, float]:
    """Return every number by its name."""
    values = facts(ledger) | benchmarks(bench)
    return values | derived(values, Ledger(ledger).records())


def benchmarks(folder: Path) -> dict[str, float]:
    """Return the numbers of the benchmarks by their names."""
    return {
        f"bench:{path.stem}/{measure}/{key}": float(value)
        for path in sorted(folder.glob("*.json"))
        for measure, numbers in json.loads(path.read_text("utf8"))["measures"].items()
        for key, value in numbers.items()
        if isinstance(value, int | float)
    }


def trials(folder: Path) -> dict[str, list[float]]:
    """Return the numbers of each file of trials, except the errors by epoch."""
    by_epoch = re.compile(r'"hist": \[[^]]*\]')
    number = re.compile(r"(?<![\w.])\d*\.?\d+(?:e-?\d+)?")
    return {
        path.name: [float(text) for text in number.findall(by_epoch.sub("", path.read_text("utf8")))]
        for path in sorted(folder.glob("*.jsonl"))
    }


def derived(values: Values, records: list[Record]) -> dict[str, float]:
    """Return the numbers that combine several records."""
    runs = plain_runs(records)
    return {
        **_runs(records),
        **_spreads(runs),
        **_comparisons(values, runs),
        **_lead_over_tqnet(values),
        **_fidelity(records),
        **_budgets(values),
        **_promises(values, records),
    }


def plain_runs(records: Iterable[Record]) -> Scores:
    """Return the errors of every run of a recipe as it ships, each run once although it may be in several studies."""
    once = {
        (cell.data, cell.horizon, cell.recipe, cell.seed): record
        for record in records
        if (cell := record.cell).budget is None and not split_name(cell.recipe)[1] and cell.look_back == 96
    }
    runs: Scores = defaultdict(list)
    for (data, horizon, recipe, _), record in sorted(once.items(), key=lambda item: str(item[0])):
        runs[data, horizon, recipe].append({"mse": record.test.mse, "mae": record.test.mae})
    return runs


def better(values: Values, model: str, data: str, horizon: int, metric: str) -> tuple[float, str] | None:
    """Return the lower one of a rival's error in our runs and its published error, and which one it is."""
    name = f"per_horizon/{data}/{horizon}/{model}"
    options = [
        (values[f"{name}{infix}/{metric}"], source)
        for infix, source in (("", "our run"), ("/published", "published"))
        if f"{name}{infix}/{metric}" in values
    ]
    return min(options, default=None)


def best_rival(values: Values, data: str, horizon: int, metric: str) -> tuple[float, str, str]:
    """Return the lowest error of any rival on a cell, with its name and its source."""
    candidates = [
        (*option, rival)
        for rival in (*RIVALS, PAPER)
        if (option := better(values, rival, data, horizon, metric)) is not None
    ]
    error, source, rival = min(candidates)
    return error, rival, source


def verdict(values: Values, runs: Scores, data: str, horizon: int, metric: str) -> str:
    """Return "ahead", "behind" or "level", which means that the difference is within the spread over seeds.

    The spread is the larger of the standard deviations of our runs and of the rival's, if its runs are ours.
    """
    error, rival, source = best_rival(values, data, horizon, metric)
    own = [run[metric] for run in runs[data, horizon, "steady"]]
    theirs = [run[metric] for run in runs[data, horizon, rival]] if source == "our run" else []
    spread = max(stdev(seeds) if len(seeds) > 1 else 0.0 for seeds in (own, theirs))
    if abs(mean(own) - error) <= spread:
        return "level"
    return "ahead" if mean(own) < error else "behind"


def fidelity_by_budget(records: list[Record]) -> dict[str, dict[str, list[float]]]:
    """Return the strict score of every run of the default, by budget and by "data set, horizon"."""
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    runs = runs_by_budget(frame(records))
    for row in sorted(runs, key=lambda row: (row["data"], row["horizon"], row["seed"])):
        scores[f"{row['budget']:g}"][f"{row['data']}, {row['horizon']}"].append(row["score_by_window"])
    return {budget: dict(scores[budget]) for budget in sorted(scores, key=float)}


def _runs(records: list[Record]) -> dict[str, float]:
    """The errors of single runs at the budget of their recipe, and the fidelity of their native maps."""
    tidy = [row for row in frame(records) if row["own_budget"] and row["look_back"] == 96]
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


def _spreads(runs: Scores) -> dict[str, float]:
    """The standard deviation over seeds of the mean over all cells, of models with three seeds everywhere."""
    models = {model for _, _, model in runs}
    whole = [model for model in models if all(len(runs.get((*cell, model), [])) == 3 for cell in CELLS)]
    return {
        f"results/spread/{model}/{metric}": stdev(
            mean(runs[(*cell, model)][seed][metric] for cell in CELLS) for seed in range(3)
        )
        for model in sorted(whole)
        for metric in METRICS
    }


def _comparisons(values: Values, runs: Scores) -> dict[str, float]:
    figures: dict[str, float] = {}
    for metric in METRICS:
        verdicts = [verdict(values, runs, *cell, metric) for cell in CELLS]
        figures |= {
            f"results/cells/{word}/{metric}": float(verdicts.count(word)) for word in ("ahead", "level", "behind")
        }
        for model in ("steady", "dense"):
            close = [
                values[f"per_horizon/{data}/{horizon}/{model}/{metric}"]
                <= 1.01
                * min(
                    values[name]
                    for rival in (*RIVALS, PAPER)
                    if (name := f"per_horizon/{data}/{horizon}/{rival}/published/{metric}") in values
                )
                for data, horizon in CELLS
            ]
            figures[f"results/within_1_percent_of_published/{model}/{metric}"] = float(sum(close))
    return figures


def _lead_over_tqnet(values: Values) -> dict[str, float]:
    """The lead over TQNet and the share of each data set in it: over our runs of it, and over the better number."""
    figures: dict[str, float] = {}
    for source in ("own", "better"):
        leads = {
            data: mean(
                _tqnet_error(values, source, data, h) - values[f"per_horizon/{data}/{h}/steady/mse"] for h in HORIZONS
            )
            for data in DATA
        }
        total, name = sum(leads.values()), f"results/lead_over_tqnet/{source}"
        figures |= {f"{name}/{data}/share": lead / total for data, lead in leads.items()}
        fine = (leads["ETTm1"] + leads["ETTm2"]) / total
        figures |= {f"{name}/mse": total / len(DATA), f"{name}/ETTm/share": fine}
    return figures


def _tqnet_error(values: Values, source: str, data: str, horizon: int) -> float:
    if source == "own":
        return values[f"per_horizon/{data}/{horizon}/tqnet/mse"]
    option = better(values, "tqnet", data, horizon, "mse")
    assert option is not None
    return option[0]


def _fidelity(records: list[Record]) -> dict[str, float]:
    by_budget = fidelity_by_budget(records)
    scores = {budget: [score for place in places.values() for score in place] for budget, places in by_budget.items()}
    others = [score for budget, own in scores.items() if float(budget) != DEFAULT_BUDGET for score in own]
    figures = {
        f"results/fidelity/{name}/{column}": value
        for name, own in {**scores, "other_budgets": others}.items()
        for column, value in (("runs", len(own)), ("below", sum(score < LOW for score in own)), ("least", min(own)))
    }
    return {name: float(value) for name, value in figures.items()}


def _budgets(values: Values) -> dict[str, float]:
    """The error at small budgets over that of gates open, horizon 96: the least and the most over the data sets."""
    figures: dict[str, float] = {}
    for budget in ("0.1", "0.05"):
        over = [
            values[f"fixed_mask/{data}/96/{budget}/mse"] / values[f"per_horizon/{data}/96/dense/mse"] - 1
            for data in DATA
        ]
        figures |= {f"results/over_dense/{budget}/least": min(over), f"results/over_dense/{budget}/most": max(over)}
    won = [_gate_wins(values, f"fixed_mask/{data}/{horizon}/0.2") for data in DATA for horizon in (96, 336)]
    return figures | {"results/fixed_mask/cells": float(len(won)), "results/fixed_mask/won": float(sum(won))}


def _gate_wins(values: Values, name: str) -> bool:
    lead = values[f"{name}/mse_fixed"] - values[f"{name}/mse"]
    return lead > max(values[f"{name}/mse_std"], values[f"{name}/mse_fixed_std"])


def _promises(values: Values, records: list[Record]) -> dict[str, float]:
    steady = {data: f"certificate/{data}/96/steady" for data in DATA}
    shares = [values[f"{name}/sensitivity_squared"] for name in steady.values()]
    roots = [values[f"{name}/sensitivity_root"] for name in steady.values()]
    covered = [(f"coverage/{data}/96/steady/{level}", level / 100) for data in DATA for level in (80, 95)]
    plain = [abs(values[f"{name}/coverage"] - level) for name, level in covered]
    adaptive = [abs(values[f"{name}/adaptive_coverage"] - level) for name, level in covered]
    return {
        "results/certificate/windows": sum(values[f"{name}/windows"] for name in steady.values()),
        "results/certificate/bits": sum(
            values[f"{name}/{column}"] for name in steady.values() for column in ("replay_bits", "scramble_bits")
        ),
        "results/certificate/sensitivity/least": min(shares),
        "results/certificate/sensitivity/most": max(shares),
        "results/certificate/root/least": min(roots),
        "results/certificate/root/most": max(roots),
        "results/coverage/cases": float(len(plain)),
        "results/coverage/plain_missed": float(sum(miss > 0.02 for miss in plain)),
        "results/coverage/adaptive_most": max(adaptive),
        "results/verified/windows": float(sum(record.verified_windows for record in records)),
        "results/verified/broken": float(sum(record.broken_windows for record in records)),
    }


if __name__ == "__main__":
    for name, value in quoted().items():
        print(f"{name} {value:.6g}")
