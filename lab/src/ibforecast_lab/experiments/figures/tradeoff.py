"""Errors against what is read. Paper: Figure "pareto"."""

from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.tables.tradeoff import BUDGETS, DENSE, LABEL, Line, Place, lines_of
from ibforecast_lab.plots.curves import Curve, Grid, Panel, draw
from ibforecast_lab.plots.records import Form

MEASURES = {"mse": "MSE", "mae": "MAE"}
SWEPT = tuple(model for model in BUDGETS if model != DENSE)
LARGEST = 0.55
"""What reads more is not drawn: its error stands in the table, beside that of the dense model."""


def figure(records: list[Record], form: Form) -> bytes | None:
    """Two rows of panels per data set, a column per horizon, a curve per model with its spread over seeds."""
    found, plan = lines_of(records), PLANS[LABEL]
    if not found:
        return None
    places = [(data, measure) for data in plan.data for measure in MEASURES]
    return draw(
        Grid(
            panels=[[_panel(found, data, horizon, measure) for horizon in plan.horizons] for data, measure in places],
            rows=[f"{data}, {MEASURES[measure]}" for data, measure in places],
            columns=[f"horizon {horizon}" for horizon in plan.horizons],
            across="read, % of the window",
            names=SWEPT,
            level=f"{DENSE}, reads everything",
            limits=(0.0, 100 * LARGEST),
        ),
        form,
    )


def _panel(found: dict[Place, Line], data: str, horizon: int, measure: str) -> Panel:
    curves, not_run = [], []
    for model in SWEPT:
        here = {place[3]: line for place, line in found.items() if place[:3] == (data, horizon, model)}
        drawn = [line for line in here.values() if (line.open_rate or 0.0) <= LARGEST]
        if drawn:
            across, up = [100 * (line.open_rate or 0.0) for line in drawn], [getattr(line, measure) for line in drawn]
            curves.append(Curve(model, across, up, [getattr(line, f"{measure}_std") for line in drawn]))
        absent = [f"{100 * budget:g}" for budget in BUDGETS[model] if budget not in here]
        if absent:
            not_run.append(f"{model} at {'/'.join(absent)} %" if here else model)
    dense = found.get((data, horizon, DENSE, 1.0))
    not_run += [] if dense else [DENSE]
    level = None if dense is None else getattr(dense, measure)
    return Panel(curves, level, not_run if measure == next(iter(MEASURES)) else ())
