"""The cost of an explanation in passes and in time, and its fidelity. Paper: Figure "cost", and its text."""

from ibforecast_lab.experiments.frame import Row, mean, seeds, select, summarised
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.published import OUR_NAME, numbers
from ibforecast_lab.experiments.sheet import (
    NATIVE,
    PAPER,
    Column,
    Table,
    general,
    known,
    number,
    placed,
    places,
    run_fields,
)
from ibforecast_lab.experiments.tables.fidelity import rows_of as fidelity_rows

DEVICES = {"cuda": "GPU", "cpu": "CPU"}

COUNTS = {
    "forward_passes": ("forwards",),
    "backward_passes": ("backwards",),
    "forward_backward_passes": ("forwards", "backwards"),
    "optimisation_steps": ("optimisation_steps",),
    "forward_equivalents": ("forward_equivalents",),
}
"""The paper's counts, and the fields of ours that each fills."""

KEYS = ("data", "horizon", "model", "budget", "explainer", "device")
FIELDS = {
    "seeds": seeds,
    "forward_equivalents": mean("forward_equivalents"),
    "forwards": mean("forwards"),
    "backwards": mean("backwards"),
    "optimisation_steps": lambda rows: None,
}


def rows_of(tidy: list[Row]) -> list[Row]:
    """Return a row for each explainer and device, with the fidelity of the explainer if it was measured."""
    scores = {tuple(row[key] for key in KEYS[:-1]): row["score"] for row in fidelity_rows(tidy)}
    rows = summarised(select(tidy, study="cost", measure="cost"), KEYS, FIELDS)
    order = list(dict.fromkeys((NATIVE, *(row["explainer"] for row in rows))))
    rows = sorted(rows, key=lambda row: (row["data"], row["model"], order.index(row["explainer"])))
    return [
        {name: value for name, value in row.items() if name != "budget"}
        | {"score": scores.get(tuple(row[key] for key in KEYS[:-1]))}
        for row in rows
    ]


def _published() -> list[Row]:
    """Return the paper's numbers about explainers, one row each."""
    return [
        {"data": one.data, "horizon": one.horizon, "model": PAPER, "explainer": one.model}
        | {"device": "cuda" if one.metric == "forward_equivalents" else None}
        | {field: one.value if field in COUNTS[one.metric] else None for field in FIELDS}
        | {"seeds": 0, "score": None, "source": "published"}
        for one in numbers("cost")
        if one.model != PAPER
    ]


def _lines(rows: list[Row]) -> list[Row]:
    """Return a line for each explainer, with a field for the time on each device."""
    ours, lines = select(rows, source="ledger"), []
    printed = [OUR_NAME.get(row["explainer"], row["explainer"]) for row in rows if row["source"] == "published"]
    for place in {tuple(line[key] for key in KEYS[:3]): None for line in placed(rows, places(PLANS["cost"]))}:
        here = select(ours, **dict(zip(KEYS, place, strict=False)))
        for explainer in dict.fromkeys((NATIVE, *(row["explainer"] for row in here), *printed)):
            timed = {row["device"]: row for row in select(here, explainer=explainer)}
            line = dict(zip(KEYS, place, strict=False)) | {"explainer": explainer}
            if timed:
                line |= {name: next(iter(timed.values()))[name] for name in ("forwards", "backwards", "score")}
                line |= {device: timed[device]["forward_equivalents"] for device in timed}
            lines.append(run_fields(line))
    return lines


def _counterparts(line: Row, published: list[Row]) -> list[Row]:
    return [
        row
        for row in published
        if row["data"] in (line["data"], "any")
        and OUR_NAME.get(row["explainer"], row["explainer"]) == line["explainer"]
    ]


cost = Table(
    title="Cost of an explanation: passes, and time on each device",
    keys=("data", "horizon", "model", "explainer", "device"),
    columns=(
        *(Column(name, name) for name in ("data", "horizon", "model", "explainer")),
        Column("forward passes", "forwards", general),
        Column("backward passes", "backwards", general),
        *(Column(f"time on the {name}, in forecasts", device, known(".2f")) for device, name in DEVICES.items()),
        Column("fidelity score", "score", number),
        Column("published forward passes", "forwards", general, published=True),
        Column("published backward passes", "backwards", general, published=True),
        Column("published optimisation steps per batch", "optimisation_steps", general, published=True),
        Column("published time on a GPU, in forecasts", "forward_equivalents", general, published=True),
    ),
    rows=rows_of,
    lines=_lines,
    note=(
        "Passes are counted per window and are the same on every device. Times are ratios to the time of the plain "
        "forecast on the same device, 64 windows at once: an explanation that comes with the forecast costs about 1. A "
        "device that processes many windows at once takes less time than its passes suggest. fidelity score: of the "
        "same explainer, mean over seeds. In the flat rows the time is `forward_equivalents`, one row per device."
    ),
    missing=("forwards", "score"),
    published=_published,
    counterparts=_counterparts,
)
