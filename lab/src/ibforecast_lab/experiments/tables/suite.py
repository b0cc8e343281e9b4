"""Errors on the tables of the suite, relative to a reference."""

from statistics import geometric_mean
from typing import Any

from ibforecast_lab.data.suite import KNOWN, SUITE
from ibforecast_lab.experiments.frame import Row, errors, grouped, mean, seeds, spread, summarised
from ibforecast_lab.experiments.plans import CHOOSING, FITTED_IN_SUITE, IN_SUITE, ONE_MASK
from ibforecast_lab.experiments.sheet import NONE, Column, Table, marked

REFERENCE = "seasonal-naive"
OVERALL = "Overall"
MODELS = tuple(
    model for model in ("default", ONE_MASK, CHOOSING, *IN_SUITE[1:], *FITTED_IN_SUITE) if model != REFERENCE
)
METRICS = ("mse", "mae")
KEYS = ("data", "horizon", "model")
FIELDS = {"seeds": seeds, "open_rate": mean("open_rate")}
FIELDS |= {metric: mean(metric) for metric in METRICS} | {f"{metric}_std": spread(metric) for metric in METRICS}
PLACES = [(table.name, horizon) for table in SUITE.values() for horizon in table.horizons]
AVERAGED = [(data, horizon) for data, horizon in PLACES if not data.endswith(KNOWN)]
"""The places of the mean. A table with covariates known ahead is left out: some models do not read covariates."""


def _rows(tidy: list[Row]) -> list[Row]:
    """Return a row for each table, horizon and model, and one for each model that was run on all of them."""
    runs = [row for row in errors(tidy) if row["data"] in SUITE and row["own_budget"]]
    rows = summarised(runs, KEYS, FIELDS)
    references = {(row["data"], row["horizon"]): row for row in rows if row["model"] == REFERENCE}
    return _with_means([row | _ratios(row, references.get((row["data"], row["horizon"]))) for row in rows])


def _ratios(row: Row, reference: Row | None) -> Row:
    return {f"{metric}_ratio": reference and row[metric] / reference[metric] for metric in METRICS}


def _with_means(rows: list[Row]) -> list[Row]:
    means = []
    for (model,), group in grouped(rows, ("model",)).items():
        here = [row for row in group if (row["data"], row["horizon"]) in AVERAGED and row["mse_ratio"] is not None]
        if len(here) == len(AVERAGED):
            ratios = {f"{metric}_ratio": geometric_mean(row[f"{metric}_ratio"] for row in here) for metric in METRICS}
            means.append(dict.fromkeys(here[0]) | {"data": OVERALL, "model": model, "source": "ledger"} | ratios)
    return rows + means


def _lines(rows: list[Row]) -> list[Row]:
    """Return a line for each table and horizon, with the pair of errors or ratios of each model."""
    return [_line(rows, data, horizon) for data, horizon in (*PLACES, (OVERALL, None))]


def _line(rows: list[Row], data: str, horizon: int | None) -> Row:
    here = {row["model"]: row for row in rows if (row["data"], row["horizon"]) == (data, horizon)}
    line: Row = {"data": data, "horizon": horizon} | {model: _pair(row, "_ratio") for model, row in here.items()}
    if REFERENCE in here:
        line[REFERENCE] = _pair(here[REFERENCE], "")
    ratios = {model: row["mse_ratio"] for model, row in here.items() if row["mse_ratio"] is not None}
    return marked(line, **{min(ratios, key=lambda model: ratios[model]): "**{}**"}) if ratios else line


def _pair(row: Row, kind: str) -> tuple[float, float, int | None] | None:
    """Return MSE, MAE and the number of seeds, or None for the last if the model needs no seeds."""
    count = None if row["model"] in FITTED_IN_SUITE else row["seeds"]
    return None if row[f"mse{kind}"] is None else (row[f"mse{kind}"], row[f"mae{kind}"], count)


def _text(pair: Any) -> str:
    if pair is None:
        return NONE
    mse, mae, count = pair
    return f"{mse:.3f} / {mae:.3f}" + ("" if count is None else f" ({count})")


suite = Table(
    title="Errors on ten tables that are not the usual benchmarks (standardised; look-back 96)",
    keys=KEYS,
    columns=(
        Column("data", "data"),
        Column("horizon", "horizon", lambda horizon: NONE if horizon is None else str(horizon)),
        Column(f"{REFERENCE}: MSE / MAE", REFERENCE, _text),
        *(Column(f"{model}, relative", model, _text) for model in MODELS),
    ),
    rows=_rows,
    lines=_lines,
    note=(
        f"MSE / MAE, means over seeds: of `{REFERENCE}` as they are, of the others divided by those of `{REFERENCE}`. "
        f"In brackets: the number of seeds; `{REFERENCE}` and lightgbm need none. Where it is 1, a difference of a few "
        f"percent may be chance. Below 1 is better than `{REFERENCE}`; bold: the best MSE of the line. The last line "
        f"is the geometric mean of the ratios over all lines except epf_de{KNOWN}, for models that were run on all of "
        "them. All models are measured on the same windows and channels: the 19 flows of flow_france19, only the price "
        f"of epf_de{KNOWN}, and every column of the other tables. In epf_de{KNOWN}, the models of this project and "
        "lightgbm read the covariates known ahead; the other rivals and the naive forecast do not."
    ),
    missing=(REFERENCE, *MODELS),
)
