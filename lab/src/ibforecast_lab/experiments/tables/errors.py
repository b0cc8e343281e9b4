"""Errors: by horizon, averaged, and with many channels. Paper: Tables "accuracy", "perhorizon" and "bigc"."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from ibforecast.zoo.recipes import DEFAULT
from ibforecast_lab.data.standin import STAND_INS, SUFFIX
from ibforecast_lab.experiments.frame import (
    LEVEL,
    Row,
    errors,
    grouped,
    lead,
    mean,
    mean_of,
    seeds,
    select,
    spread,
    summarised,
)
from ibforecast_lab.experiments.plans import FITTED, FORMER, HORIZONS, INTERPRETABLE, LARGE, MAIN, OURS, PLANS
from ibforecast_lab.experiments.published import WHOLE_BATCHES, in_print
from ibforecast_lab.experiments.sheet import PAPER, Column, Table, marked, number, share, words

OVERALL = "Overall"
KEYS = ("data", "horizon", "model", "budget", "other_budget")
"""`other_budget` is the budget of a run if it is not that of its recipe, otherwise None."""

ERRORS = ("mse", "mae", "open_rate", "validation_mse")
FIELDS = {"seeds": seeds, "mse": mean("mse"), "mae": mean("mae"), "mse_std": spread("mse"), "mae_std": spread("mae")}
FIELDS |= {"open_rate": mean("open_rate"), "validation_mse": mean("validation_mse")}
COMPARED = {"default_is": "mse", "default_is_by_mae": "mae"}
"""The fields that say how the default recipe compares with a row, and the error that each compares."""

# Flat rows keep their fields: `steady_is` is still about `steady`. The fields of the default have a name that stays
# true if the default changes again.
REFERENCES = {DEFAULT: COMPARED, FORMER: {"steady_is": "mse", "steady_is_by_mae": "mae"}}
FIELD = tuple(dict.fromkeys(model for _, _, model in in_print("field")))
"""Newer forecasters that are known only from print."""

DROPPED = " (last batch left out)"
NOTE = (
    "For a rival, the better of our run and the published number is shown, by MSE, with the MAE of the same source; "
    "the flat rows have both. Published numbers of cyclenet-linear are its authors', all others are the paper's. Bold: "
    "the best MSE. Italics: the best MSE of an interpretable model, if that is another. The last columns say how the "
    f"mean error of `{DEFAULT}`, the default, compares with that of the line. A budget is named if it is not that of "
    f"the recipe.{DROPPED}: the code of this model leaves out the last, incomplete batch of the test windows, so its "
    f"number is not of the same windows (label dropped_batch; `dropped_batch` in the flat rows). {LEVEL}"
)
GENERATED = " (generated values)"
NOTE_LARGE = (
    f"{NOTE}{GENERATED}: in place of a cell that was not run, a run on a stand-in with the size and cycle of that data "
    "set and invented values. It shows that the path works at this size; its error says nothing about the data set."
)
COLUMNS = (
    Column("data", "data"),
    Column("horizon", "horizon", lambda horizon: "mean" if horizon is None else str(horizon)),
    Column("model", "model", lambda model: "IB-Forecast, as published" if model == PAPER else str(model)),
    Column("source", "source", lambda source: "ours" if source == "ledger" else str(source)),
    Column("read", "open_rate", share),
    Column("seeds", "seeds", lambda count: words(count or None)),
    Column("MSE", "mse", number, "mse_std"),
    Column("MAE", "mae", number, "mae_std"),
    *(Column(f"{DEFAULT} is, by {metric.upper()}", field) for field, metric in COMPARED.items()),
)


def runs(tidy: list[Row], data: Iterable[str]) -> list[Row]:
    """Return the errors of all runs except those made only for a study: variants of a recipe, some other budgets."""
    return errors(
        row for row in tidy if row["data"] in data and (not row["study"] or (row["own_budget"] and not row["variant"]))
    )


def averaged(rows: list[Row], over: str, values: tuple[str, ...] | tuple[int, ...], name: str | None) -> list[Row]:
    """Return the mean over horizons or data sets, for every model or seed that has all of them."""
    keys = [key for key in ("data", "horizon", "model", "other_budget", "seed", "source") if key != over]
    return [
        group[0]
        | {over: name, "budget": group[0]["budget"] if len({row["budget"] for row in group}) == 1 else None}
        | {"seeds": min(row["seeds"] for row in group), "mse_std": None, "mae_std": None}
        | {field: mean_of([row[field] for row in group]) for field in ERRORS}
        for group in grouped([{"seed": None, "seeds": 1} | row for row in rows], keys).values()
        if sorted(row[over] for row in group) == sorted(values)
    ]


def means_of(rows: list[Row]) -> list[Row]:
    """Return the means over the four horizons, and over horizons and data sets."""
    over_horizons = averaged(rows, "horizon", HORIZONS, None)
    return [*over_horizons, *averaged(over_horizons, "data", MAIN, OVERALL)]


def by_horizon(tidy: list[Row], data: tuple[str, ...]) -> list[Row]:
    """Return a row for each data set, horizon, recipe and budget."""
    return summarised(runs(tidy, data), KEYS, FIELDS)


def over_horizons(tidy: list[Row]) -> list[Row]:
    """Return means over horizons and seeds; the spread is over seeds, of each seed's mean over horizons."""
    spreads = {
        tuple(row[key] for key in KEYS): {name: row[name] for name in ("mse_std", "mae_std")}
        for row in summarised(means_of(runs(tidy, MAIN)), KEYS, FIELDS)
    }
    return [
        {name: row[name] for name in (*KEYS, *FIELDS, "source")} | spreads.get(tuple(row[key] for key in KEYS), {})
        for row in means_of(by_horizon(tidy, MAIN))
    ]


def printed(*tables: str) -> list[Row]:
    """Return the published errors of some tables."""
    rows = []
    for table in tables:
        for (data, horizon, model), numbers in in_print(table).items():
            row: Row = dict(zip(KEYS, (data, horizon, model, None, None), strict=True)) | dict.fromkeys(FIELDS)
            row |= {metric: one.value for metric, one in numbers.items()}
            row |= {f"{metric}_std": one.spread for metric, one in numbers.items()}
            rows.append(row | {"seeds": 0, "source": "published"})
    return rows


def printed_means() -> list[Row]:
    """Return the published means; those of CycleNet's authors are computed from their horizons."""
    linear = means_of(printed("cyclenet_linear"))
    return printed("accuracy", "field") + [{name: row[name] for name in (*KEYS, *FIELDS, "source")} for row in linear]


def compared(rows: list[Row]) -> list[Row]:
    """Add to every row how the default and the former default compare with it, each at its own budget.

    `dropped_batch` is whether the row is of fewer test windows than all others.
    """
    ours = {
        (row["data"], row["horizon"], row["model"]): row for row in select(rows, source="ledger", other_budget=None)
    }

    def leads(row: Row, model: str, fields: Mapping[str, str]) -> Row:
        own = ours.get((row["data"], row["horizon"], model))
        other = row | {f"{metric}_std": 0.0 for metric in fields.values()} if row["model"] in FITTED else row
        return {field: None if row is own else lead(own, other, metric) for field, metric in fields.items()}

    return [
        row
        | {field: word for reference in REFERENCES.items() for field, word in leads(row, *reference).items()}
        | {"dropped_batch": row["source"] == "published" and row["model"] in WHOLE_BATCHES}
        for row in rows
    ]


def better_source(rows: list[Row]) -> list[Row]:
    """Return the published row of a model at one place if its MSE is below that of all our runs; otherwise ours."""
    ours, published = (select(rows, source=source) for source in ("ledger", "published"))
    return [row for row in published if all(row["mse"] < own["mse"] for own in ours)] or ours


def _lines(rows: list[Row], models: tuple[str, ...]) -> list[Row]:
    places = {(row["data"], row["horizon"]) for row in rows}
    return [
        line
        for place in sorted(places, key=lambda place: (place[0] == OVERALL, place[0], place[1] or 10**6))
        for line in _at([row for row in rows if (row["data"], row["horizon"]) == place], models)
    ]


def _at(rows: list[Row], models: tuple[str, ...]) -> list[Row]:
    """Return the lines of a data set and horizon: for a rival, the better of our run and the published number."""
    place = {name: rows[0][name] for name in ("data", "horizon")}
    lines: list[Row] = []
    run = (row["model"] for row in rows if row["source"] == "ledger")
    for model in dict.fromkeys((*models, *run, *FIELD, PAPER)):
        shown = sorted(better_source(select(rows, model=model)), key=lambda row: row["other_budget"] is not None)
        lines += [_named(line) for line in shown] or ([place | {"model": model}] if model in models else [])
    known = [line for line in lines if line.get("mse") is not None and not line["dropped_batch"]]
    best = min(known, key=lambda line: line["mse"], default=None)
    interpretable = [line for line in known if line["model"] in (*OURS, *INTERPRETABLE, PAPER)]
    best_interpretable = min(interpretable, key=lambda line: line["mse"], default=None)
    return [
        marked(line, mse="**{}**") if line is best else marked(line, mse="_{}_") if line is best_interpretable else line
        for line in lines
    ]


def _named(line: Row) -> Row:
    """Add the budget to the model's name if it is not the recipe's own, and a mark if test windows were left out."""
    if line["other_budget"] is not None:
        return marked(line, model=f"{{}}, budget {line['other_budget']:g}")
    return marked(line, model=f"{{}}{DROPPED}") if line["dropped_batch"] else line


def _with_stand_ins(rows: list[Row], models: tuple[str, ...]) -> list[Row]:
    """Return the lines of each data set, or of its stand-in if it was not run, then those of the other stand-ins."""
    generated: dict[tuple[str, int | None, str], list[Row]] = {}
    for row in rows:
        if row["data"] in STAND_INS:
            place = (row["data"].removesuffix(SUFFIX), row["horizon"], row["model"])
            generated.setdefault(place, []).append(marked(_named(row), data=f"{{}}{GENERATED}"))
    lines: list[Row] = []
    for line in _lines([row for row in rows if row["data"] not in STAND_INS], models):
        place = (line["data"], line["horizon"], line["model"])
        lines += generated.pop(place, [line]) if line.get("mse") is None else [line]
    return [*lines, *(line for left in generated.values() for line in left)]


def _table(
    label: str,
    title: str,
    rows: Callable[[list[Row]], list[Row]],
    published: Callable[[], list[Row]],
    keys: tuple[str, ...] = ("data", "horizon", "model", "other_budget"),
    lines: Callable[..., list[Row]] = _lines,
    note: str = NOTE,
) -> Table:
    title, lines = f"{title} (standardised; look-back 96)", partial(lines, models=PLANS[label].models)
    return Table(title, keys, COLUMNS, rows, lines, note, ("mse",), published, compared)


accuracy = _table(
    "accuracy",
    "Errors, mean over horizons 96, 192, 336 and 720",
    over_horizons,
    printed_means,
    ("data", "model", "other_budget"),
)
per_horizon = _table(
    "per_horizon",
    "Errors by horizon",
    partial(by_horizon, data=MAIN),
    partial(printed, "per_horizon", "cyclenet_linear"),
)
large_channels = _table(
    "large_channels",
    "Errors on data sets with many channels",
    partial(by_horizon, data=(*LARGE, *STAND_INS)),
    partial(printed, "large_channels"),
    lines=_with_stand_ins,
    note=NOTE_LARGE,
)
