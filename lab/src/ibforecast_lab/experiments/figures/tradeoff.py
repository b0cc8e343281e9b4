"""Errors by the share read. Paper: Figure "pareto"."""

from ibforecast_lab.experiments.frame import Row, frame, select
from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.tables.tradeoff import DENSE, LABEL, ORDER, Place, places, rows_of
from ibforecast_lab.plots.curves import Curve, Grid, Panel, draw
from ibforecast_lab.plots.records import Form

MEASURES = {"mse": "MSE", "mae": "MAE"}
SWEPT = tuple(model for model in ORDER if model not in (DENSE, "dense"))
LARGEST = 0.55
"""Models that read more are not drawn; their errors are in the table."""


def figure(records: list[Record], form: Form) -> bytes | None:
    """Draw two rows of panels for each data set, a column for each horizon and a curve with spread for each model."""
    rows, plan = rows_of(frame(records)), PLANS[LABEL]
    if not rows:
        return None
    planned, shown = places(), [(data, measure) for data in plan.data for measure in MEASURES]
    return draw(
        Grid(
            panels=[
                [
                    _panel(
                        select(rows, data=data, horizon=horizon),
                        [place for place in planned if place[:2] == (data, horizon)],
                        measure,
                    )
                    for horizon in plan.horizons
                ]
                for data, measure in shown
            ],
            rows=[f"{data}, {MEASURES[measure]}" for data, measure in shown],
            columns=[f"horizon {horizon}" for horizon in plan.horizons],
            across="read, % of the window",
            names=SWEPT,
            level="gates open",
            limits=(0.0, 100 * LARGEST),
        ),
        form,
    )


def _panel(rows: list[Row], planned: list[Place], measure: str) -> Panel:
    curves, not_run = [], []
    for model in SWEPT:
        here = {row["budget"]: row for row in select(rows, model=model)}
        drawn = [row for row in here.values() if row["open_rate"] <= LARGEST]
        if drawn:
            across, up = [100 * row["open_rate"] for row in drawn], [row[measure] for row in drawn]
            curves.append(Curve(model, across, up, [row[f"{measure}_std"] for row in drawn]))
        absent = [f"{100 * budget:g}" for _, _, name, budget in planned if name == model and budget not in here]
        if absent:
            not_run.append(f"{model} at {'/'.join(absent)} %" if here else model)
    dense = select(rows, model=DENSE, budget=1.0)
    not_run += [] if dense else [DENSE]
    level = dense[0][measure] if dense else None
    return Panel(curves, level, not_run if measure == next(iter(MEASURES)) else ())
