"""What turning one hyper-parameter does. Paper: Figure "hp"."""

from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.tables.sensitivity import DEFAULT, KNOBS, Line, groups_of, lines_of, turned, value_of
from ibforecast_lab.experiments.variants import parted
from ibforecast_lab.plots.curves import Curve, Grid, Panel, draw
from ibforecast_lab.plots.records import Form

MEASURES = {"mse_change": "change of MSE, %", "open_rate": "read, %", "score": "fidelity"}
PERCENT = ("mse_change", "open_rate")
Own = dict[tuple[str, str, str], float]
"""What each setting is in a recipe as it is, by recipe, data set and setting."""


def figure(records: list[Record], form: Form) -> bytes | None:
    """Three rows of panels per recipe, a column per hyper-parameter, a curve per data set, once anything was turned."""
    lines = lines_of(records)
    if all(line.setting == DEFAULT for line in lines):
        return None
    plan, own = PLANS["sensitivity"], _own(records)
    planned = [(parted(cell.recipe)[0], cell.data, *turned(cell)) for cell in plan.cells()]
    values = {
        knob: sorted(
            {value for _, _, setting, value in planned if setting == knob and value is not None}
            | {value for place, value in own.items() if place[2] == knob}
        )
        for knob in KNOBS
    }
    rows = [(recipe, measure) for recipe in dict.fromkeys(place[0] for place in planned) for measure in MEASURES]

    def panel(recipe: str, measure: str, knob: str) -> Panel:
        curves, not_run = [], []
        for data in plan.data:
            here = [line for line in lines if (line.recipe, line.data) == (recipe, data)]
            curve = _curve(here, knob, measure, values[knob], own.get((recipe, data, knob)))
            run = {(line.setting, line.value) for line in here}
            asked = [place[2:] for place in planned if place[:2] == (recipe, data) and place[2] in (knob, DEFAULT)]
            absent = [
                DEFAULT if value is None else short(value) for setting, value in asked if (setting, value) not in run
            ]
            curves += [curve] if curve else []
            if absent:
                not_run.append(f"{data} at {'/'.join(absent)}" if curve else data)
        return Panel(curves, not_run=not_run if measure == next(iter(MEASURES)) else ())

    return draw(
        Grid(
            panels=[[panel(recipe, measure, knob) for knob in KNOBS] for recipe, measure in rows],
            rows=[f"{recipe}\n{MEASURES[measure]}" for recipe, measure in rows],
            columns=[f"{symbol}\n{knob.replace('_', ' ')}" for knob, symbol in KNOBS.items()],
            across="",
            names=plan.data,
            default="the recipe as it is",
            ticks=[[short(value) for value in values[knob]] for knob in KNOBS],
            even=True,
        ),
        form,
    )


def short(value: float) -> str:
    """A value in few letters: 0.0001 is 1e-4."""
    return f"{value:.0e}".replace("e-0", "e-") if 0 < value < 0.01 else f"{value:g}"


def _own(records: list[Record]) -> Own:
    found: Own = {}
    for group in groups_of(records):
        if turned(group.records[0].cell) == (DEFAULT, None):
            config = group.records[0].recipe["config"]
            found |= {(group.model, group.data, knob): value_of(knob, config) for knob in KNOBS}
    return found


def _curve(lines: list[Line], knob: str, measure: str, values: list[float], own: float | None) -> Curve | None:
    """One data set's curve over the values of a setting, the recipe as it is among them."""
    here = [line for line in lines if line.setting in (knob, DEFAULT)]
    points = {own if line.setting == DEFAULT else line.value: getattr(line, measure) for line in here}
    known = {value: points[value] for value in values if points.get(value) is not None}
    if not known:
        return None
    unit = 100 if measure in PERCENT else 1
    return Curve(
        lines[0].data,
        [float(values.index(value)) for value in known],
        [unit * told for told in known.values()],
        [None] * len(known),
        list(known).index(own) if own in known else None,
    )
