"""The effect of each setting. Paper: Figure "hp"."""

from ibforecast_lab.experiments.frame import Row, frame, select
from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.tables.sensitivity import DEFAULT, KNOBS, SYMBOLS, changed, rows_of, runs_of, value_of
from ibforecast_lab.experiments.variants import split_name
from ibforecast_lab.plots.curves import Curve, Grid, Panel, draw
from ibforecast_lab.plots.records import Form

MEASURES = {"mse_change": "change of MSE, %", "open_rate": "read, %", "score": "fidelity"}
PERCENT = ("mse_change", "open_rate")
Own = dict[tuple[str, str, str], float]
"""The value of each setting in the unchanged recipe, by recipe, data set and setting."""


def figure(records: list[Record], form: Form) -> bytes | None:
    """Draw a row of panels for each recipe and setting, a column for each measure and a curve for each data set."""
    tidy = frame(records)
    rows_run = rows_of(tidy)
    if all(row["setting"] == DEFAULT for row in rows_run):
        return None
    plan = PLANS["sensitivity"]
    planned = [(split_name(cell.recipe)[0], cell.data, *changed(cell)) for cell in plan.cells()]
    recipes = dict.fromkeys(place[0] for place in planned)
    swept = {(recipe, setting) for recipe, _, setting, _ in planned}
    rows = [(recipe, knob) for recipe in recipes for knob in KNOBS if (recipe, knob) in swept]
    own = _own(tidy, rows)
    values = {
        (recipe, knob): sorted(
            {value for place in planned if (place[0], place[2]) == (recipe, knob) and (value := place[3]) is not None}
            | {value for place, value in own.items() if (place[0], place[2]) == (recipe, knob)}
        )
        for recipe, knob in rows
    }

    def panel(recipe: str, knob: str, measure: str) -> Panel:
        curves, not_run = [], []
        for data in plan.data:
            here = select(rows_run, recipe=recipe, data=data)
            curve = _curve(here, knob, measure, values[recipe, knob], own.get((recipe, data, knob)))
            run = {(row["setting"], row["value"]) for row in here}
            wanted = [place[2:] for place in planned if place[:2] == (recipe, data) and place[2] in (knob, DEFAULT)]
            absent = [
                DEFAULT if value is None else short(value) for setting, value in wanted if (setting, value) not in run
            ]
            curves += [curve] if curve else []
            if absent:
                not_run.append(f"{data} at {'/'.join(absent)}" if curve else data)
        return Panel(curves, not_run=not_run if measure == next(iter(MEASURES)) else ())

    return draw(
        Grid(
            panels=[[panel(recipe, knob, measure) for measure in MEASURES] for recipe, knob in rows],
            rows=[f"{recipe}\n{_words(knob)}" for recipe, knob in rows],
            columns=list(MEASURES.values()),
            across="",
            names=plan.data,
            default="the unchanged recipe",
            ticks=[[short(value) for value in values[row]] for row in rows],
            by_row=True,
        ),
        form,
    )


def short(value: float) -> str:
    """Return a value in few characters: 0.0001 is 1e-4."""
    return f"{value:.0e}".replace("e-0", "e-") if 0 < value < 0.01 else f"{value:g}"


def _words(knob: str) -> str:
    words = knob.replace("_", " ")
    return f"{words} {SYMBOLS[knob]}" if knob in SYMBOLS else words


def _own(tidy: list[Row], swept: list[tuple[str, str]]) -> Own:
    unchanged = select(runs_of(tidy), setting=DEFAULT)
    return {
        (recipe, row["data"], knob): value_of(knob, row)
        for recipe, knob in swept
        for row in select(unchanged, recipe=recipe)
    }


def _curve(rows: list[Row], knob: str, measure: str, values: list[float], own: float | None) -> Curve | None:
    """Return the curve of one data set over the values of a setting, with that of the unchanged recipe."""
    here = [row for row in rows if row["setting"] in (knob, DEFAULT)]
    points = {own if row["setting"] == DEFAULT else row["value"]: row[measure] for row in here}
    known = {value: points[value] for value in values if points.get(value) is not None}
    if known.keys() <= {own}:
        return None
    unit = 100 if measure in PERCENT else 1
    return Curve(
        rows[0]["data"],
        [float(values.index(value)) for value in known],
        [unit * value for value in known.values()],
        [None] * len(known),
        list(known).index(own) if own in known else None,
    )
