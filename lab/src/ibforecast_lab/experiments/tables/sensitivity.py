"""The effect of settings, changed one at a time, on errors, share read and fidelity. Paper: Figure "hp"."""

from typing import Any

from ibforecast_lab.experiments.frame import DEFAULT_WAY, Row, mean, mean_of, of_study, seeds, select, summarised
from ibforecast_lab.experiments.ledger import Cell
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.published import numbers
from ibforecast_lab.experiments.sheet import NATIVE, PAPER, Column, Table, change, general, measured, placed, share
from ibforecast_lab.experiments.variants import SWEEPS, split_name

STUDY = "native"
BUDGET, DEFAULT = "budget", "default"
SYMBOLS = {
    "rate_weight": "β",
    "contiguity_weight": "λ_tv",
    "budget_weight": "λ_b",
    BUDGET: "ρ",
    "prior": "π",
}
"""The paper's hyper-parameters by our names, in its order, with its symbols."""

KNOBS = tuple(dict.fromkeys((*SYMBOLS, *SWEEPS)))
"""All settings that are changed, in the order of the table."""

KEYS = ("data", "horizon", "recipe", "setting", "value")
FIELDS = {"seeds": seeds} | {
    name: mean(name) for name in ("mse", "mse_change", "mae", "open_rate", "comprehensiveness", "sufficiency", "score")
}


def changed(cell: Cell) -> tuple[str, float | None]:
    """Return the setting that a cell changes and its new value, or `DEFAULT` and None."""
    setting, _, value = split_name(cell.recipe)[1].partition("=")
    if setting:
        return setting, float(value)
    return (DEFAULT, None) if cell.budget is None else (BUDGET, cell.budget)


def value_of(setting: str, row: Row) -> float:
    """Return the value of a setting in the recipe of a run."""
    part = SWEEPS[setting].part if setting in SWEEPS else "model"
    settings: Any = {"model": row["config"], "train": row["train"]}
    for name in (*part.split("."), setting):
        settings = settings[name]
    return float(settings)


def runs_of(tidy: list[Row]) -> list[Row]:
    """Return the runs of the plan, with the setting each changes and its error relative to the unchanged recipe."""
    planned = {
        (cell.data, cell.horizon, cell.recipe, cell.budget): changed(cell) for cell in PLANS["sensitivity"].cells()
    }
    runs = []
    for row in select(of_study(tidy, STUDY), measure="fidelity", explainer=NATIVE, **DEFAULT_WAY):
        place = (row["data"], row["horizon"], row["model"], None if row["own_budget"] else row["budget"])
        if place in planned:
            runs.append(row | dict(zip(("setting", "value"), planned[place], strict=True)))
    run = ("data", "horizon", "recipe", "seed")
    before = {tuple(row[name] for name in run): row["mse"] for row in select(runs, setting=DEFAULT)}
    return [
        row
        | {"mse_change": row["mse"] / error - 1 if (error := before.get(tuple(row[name] for name in run))) else None}
        for row in runs
    ]


def rows_of(tidy: list[Row]) -> list[Row]:
    """Return the cells of the plan that were run, averaged over seeds."""
    changes = {"mse_change": lambda rows: mean_of([row["mse_change"] for row in rows if row["mse_change"] is not None])}
    return sorted(summarised(runs_of(tidy), KEYS, FIELDS | changes), key=_order)


def _published() -> list[Row]:
    return [
        dict.fromkeys((*KEYS, *FIELDS))
        | {"data": one.data, "horizon": one.horizon, "recipe": PAPER, "setting": "any but budget", "seeds": 0}
        | {"mse_change": one.value, "source": "published"}
        for one in numbers("sensitivity")
    ]


def _order(row: Row) -> tuple[str, str, int, int, float]:
    rank = -1 if row["setting"] == DEFAULT else KNOBS.index(row["setting"])
    return row["recipe"], row["data"], row["horizon"], rank, row["value"] or 0.0


def _lines(rows: list[Row]) -> list[Row]:
    planned = [
        dict(zip(KEYS, (cell.data, cell.horizon, split_name(cell.recipe)[0], *changed(cell)), strict=True))
        for cell in PLANS["sensitivity"].cells()
    ]
    return placed(rows, sorted(planned, key=_order))


sensitivity = Table(
    title="Sensitivity to settings, changed one at a time",
    keys=KEYS,
    columns=(
        *(Column(name, name) for name in ("data", "horizon", "recipe")),
        Column("setting", "setting", lambda name: f"{name} ({SYMBOLS[name]})" if name in SYMBOLS else str(name)),
        Column("value", "value", general),
        Column("seeds", "seeds"),
        Column("MSE", "mse", measured),
        Column("change of MSE", "mse_change", change),
        Column("MAE", "mae", measured),
        Column("read", "open_rate", share),
        Column("comp", "comprehensiveness", measured),
        Column("suff", "sufficiency", measured),
        Column("score", "score", measured),
        Column("published change of MSE", "mse_change", "± {:.0%}".format, published=True),
    ),
    rows=rows_of,
    lines=_lines,
    note=(
        "All other settings are the recipe's own; the change of MSE is relative to the unchanged recipe, on the same "
        "seeds. The fidelity is that of the model's own mask, gates run again. The settings of `paper-sparse` are "
        "those that the paper varies; `sealed` has a fixed mask and none of their terms, so its own are changed. The "
        "values are ours: the paper shows its sweeps only as curves. Published: the change is within about this "
        "share, for every setting but the budget."
    ),
    missing=("mse",),
    published=_published,
    counterparts=lambda line, published: (
        select(published, data=line["data"]) if line["setting"] in SYMBOLS and line["setting"] != BUDGET else []
    ),
)
