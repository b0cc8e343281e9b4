"""The tables of the page of results that compare errors."""

from ibforecast.zoo.recipes import DEFAULT
from ibforecast_lab.data.fev import TASKS
from ibforecast_lab.experiments.aims import NOT_RUN
from ibforecast_lab.experiments.frame import Row, select
from ibforecast_lab.experiments.page.forms import FORMS, NAMES, SOURCES, Line, both, formatted, with_spread
from ibforecast_lab.experiments.plans import (
    FORMER,
    LENGTHENED,
    MAIN,
    OPEN,
    PLANS,
    SMALL_BUDGETS,
)
from ibforecast_lab.experiments.quoted import (
    CELLS,
    COMPARED_IN_SUITE,
    LOOK_BACKS,
    NEWEST,
    RIVALS,
    Sheets,
    Values,
    best_rival,
    row_of_ours,
)
from ibforecast_lab.experiments.sheet import NONE, PAPER, words
from ibforecast_lab.experiments.tables.errors import COMPARED, OVERALL, better_source


def overall(sheets: Sheets) -> list[Line]:
    """Return the mean errors of every model, as run and in print."""
    rows, lines = select(sheets["accuracy"].rows, data=OVERALL), []
    for model, title in NAMES.items():
        here = select(rows, model=model, other_budget=None)
        ours, printed = ({} | next(iter(select(here, source=source)), {}) for source in SOURCES)
        if here:
            lines.append(
                {
                    "model": title,
                    "read": formatted(ours.get("open_rate"), "%1"),
                    "seeds": formatted(ours.get("seeds"), "n"),
                }
                | {metric.upper(): with_spread(ours, metric, ".4f") for metric in COMPARED.values()}
                | {f"published {metric.upper()}": formatted(printed.get(metric), ".3f") for metric in COMPARED.values()}
            )
    return lines


def cells(sheets: Sheets) -> list[Line]:
    """Return the errors of the default in each cell, next to those of the best rival there."""
    lines = []
    for data, horizon in CELLS:
        ours, line = row_of_ours(sheets, data, horizon, DEFAULT), {"data": data, "horizon": str(horizon)}
        for field, metric in COMPARED.items():
            rival = best_rival(sheets, data, horizon, metric)
            source = "" if rival["model"] == PAPER else f", {SOURCES[rival['source']]}"
            line |= {
                metric.upper(): with_spread(ours, metric),
                f"best rival by {metric.upper()}": f"{rival[metric]:.3f} ({NAMES[rival['model']]}{source})",
                f"by {metric.upper()}": words(rival[field]),
            }
        lines.append(line)
    return lines


def shown(sheets: Sheets, model: str, data: str) -> Row:
    """Return the mean errors of a model on a data set; for a rival, ours or those in print: the lower ones by MSE."""
    (row,) = better_source(select(sheets["accuracy"].rows, model=model, data=data, other_budget=None))
    return row


def data_sets(sheets: Sheets) -> list[Line]:
    """Return the mean errors of models on each data set."""
    models = (
        DEFAULT,
        OPEN,
        FORMER,
        "dense",
        "static-fixed",
        "static-newest",
        "paper",
        "cyclenet-linear",
        "tqnet",
        PAPER,
    )
    return [
        {"model": NAMES[model]}
        | {
            data: f"{row['mse']:.3f} / {row['mae']:.3f}"
            + (f" ({SOURCES[row['source']]})" if model in RIVALS and model != PAPER else "")
            for data in MAIN
            for row in [shown(sheets, model, data)]
        }
        for model in models
    ]


def former(values: Values) -> list[Line]:
    """Return the errors of the default, each with its change from the former default."""
    return [
        {"data": data}
        | {
            metric.upper(): f"{error:.3f} ({FORMS['%+'](error / former - 1)})"
            for metric in COMPARED.values()
            for error, former in [tuple(values[f"accuracy/{data}/{name}/{metric}"] for name in (DEFAULT, FORMER))]
        }
        for data in (*MAIN, OVERALL)
    ]


def shares(values: Values) -> list[Line]:
    """Return the lead of both defaults over TQNet, and the share of each data set in it."""
    columns = {data: data for data in MAIN} | {"ETTm": "ETTm1 and ETTm2"}
    return [
        {"lead of": f"`{model}`", "over TQNet": title}
        | {"MSE": FORMS[".4f"](values[f"results/lead_over_tqnet/{model}/{source}/mse"])}
        | {
            name: formatted(values[f"results/lead_over_tqnet/{model}/{source}/{data}/share"], "%0")
            for data, name in columns.items()
        }
        for model in (DEFAULT, FORMER)
        for source, title in (("own", "our runs"), ("better", "the better"))
    ]


def budgets(sheets: Sheets) -> list[Line]:
    """Return the mean errors of the default at two budgets, next to those of reading everything."""
    lines = []
    for data in (*MAIN, OVERALL):
        rows = select(sheets["accuracy"].rows, data=data, source="ledger")
        (everything,) = select(rows, model=OPEN)
        line = {"data": data, "everything": both(everything)}
        for budget in (None, max(SMALL_BUDGETS)):
            for row in select(rows, model=DEFAULT, other_budget=budget):
                change = FORMS["%+"](row["mse"] / everything["mse"] - 1)
                line["a fifth" if budget is None else "a tenth"] = f"{both(row)} ({change})"
        lines.append(line)
    return lines


def newest_rivals(sheets: Sheets) -> list[Line]:
    """Return the errors of the newest rivals where they were run, and of the default there."""
    lines = []
    for data, horizon in CELLS:
        rows = select(sheets["per_horizon"].rows, data=data, horizon=horizon, source="ledger", other_budget=None)
        run = {model: row for model in NEWEST for row in select(rows, model=model)}
        if run:
            ours = {NAMES[DEFAULT]: row_of_ours(sheets, data, horizon, DEFAULT)}
            theirs = {NAMES[model]: run.get(model) for model in NEWEST}
            cells = {name: f"{both(row)} ({row['seeds']})" if row else NONE for name, row in (ours | theirs).items()}
            lines.append({"data": data, "horizon": str(horizon)} | cells)
    return lines


def pairs(values: Values) -> list[Line]:
    """Return how the errors of pairs of models compare over the tables of the suite."""
    lines = []
    for ours, other in COMPARED_IN_SUITE:
        pair = {
            name: values[f"results/tables/{ours}/{other}/{name}"]
            for name in ("mse_ratio", "mae_ratio", "lower_mse", "lower_mae", "lines")
        }
        lines.append(
            {"model": f"`{ours}`", "divided by": f"`{other}`"}
            | {metric.upper(): FORMS[".3f"](pair[f"{metric}_ratio"]) for metric in COMPARED.values()}
            | {
                f"lower {metric.upper()} on": f"{pair[f'lower_{metric}']:.0f} of {pair['lines']:.0f}"
                for metric in COMPARED.values()
            }
        )
    return lines


def fev(sheets: Sheets) -> list[Line]:
    """Return the MASE in each task: ours at every look-back, then those in print."""
    rows = sheets["fev"].rows
    ours = [(DEFAULT, look_back) for look_back in LOOK_BACKS if look_back in _look_backs_of(DEFAULT)]
    run = [(row["model"], row["look_back"]) for row in select(rows, source="ledger")]
    printed = [(row["model"], None) for row in select(rows, source="published")]
    run.sort(key=lambda place: (place[0] != DEFAULT, place))
    return [
        {"model": f"`{model}`" if look_back else model, "look-back": formatted(look_back, "n")}
        | {
            task: next(
                (
                    FORMS[".3f"](row["MASE"])
                    for row in select(rows, task=task, model=model, look_back=look_back)
                    if row["MASE"] is not None
                ),
                NOT_RUN,
            )
            for task in TASKS
        }
        for model, look_back in dict.fromkeys((*ours, *run, *printed))
    ]


def _look_backs_of(model: str) -> set[int]:
    return {plan.look_back for plan in PLANS["fev"].also if model in plan.models}


def look_backs(sheets: Sheets) -> list[Line]:
    """Return the MSE at every look-back, with the change from that of the protocol."""
    lines = []
    for data in LENGTHENED:
        rows = {row["look_back"]: row for row in select(sheets["look_back"].rows, data=data)}
        cells = {str(look_back): NOT_RUN for look_back in LOOK_BACKS}
        for look_back, row in rows.items():
            change = row["mse_change"]
            cells[str(look_back)] = FORMS[".3f"](row["mse"]) + (f" ({FORMS['%+'](change)})" if change else "")
        taken = min(rows.values(), key=lambda row: float(row["validation_mse"]), default=None)
        seeds = {row["seeds"] for row in rows.values()}
        of = f"{min(seeds)}" if seeds else NONE
        lines.append({"data": data} | cells | {"smallest validation error": str(taken["look_back"]) if taken else NONE})
        lines[-1]["seeds"] = of
    return lines
