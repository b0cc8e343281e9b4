"""Fidelity of the native map in every run, at each budget, horizon and seed."""

from ibforecast_lab.experiments.frame import frame, select
from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.tables.fidelity import LOW, runs_by_budget
from ibforecast_lab.plots.curves import Curve, Grid, Panel, draw
from ibforecast_lab.plots.records import Form


def figure(records: list[Record], form: Form) -> bytes | None:
    """Draw a row of panels for each data set, a column for each horizon and a curve for each seed."""
    runs = sorted(runs_by_budget(frame(records)), key=lambda row: row["budget"])
    if not runs:
        return None
    cells = PLANS["fidelity_by_budget"].cells()
    data = list(dict.fromkeys(cell.data for cell in cells))
    horizons = list(dict.fromkeys(cell.horizon for cell in cells))
    seeds = sorted({row["seed"] for row in runs})

    def panel(data: str, horizon: int) -> Panel:
        here = select(runs, data=data, horizon=horizon)
        curves = []
        for seed in dict.fromkeys(row["seed"] for row in here):
            own = select(here, seed=seed)
            across, up = [100 * row["budget"] for row in own], [row["score"] for row in own]
            curves.append(Curve(f"seed {seed}", across, up, [None] * len(own)))
        return Panel(curves, LOW)

    return draw(
        Grid(
            panels=[[panel(name, horizon) for horizon in horizons] for name in data],
            rows=[f"{name}\nscore" for name in data],
            columns=[f"horizon {horizon}" for horizon in horizons],
            across="budget, % of the window",
            names=[f"seed {seed}" for seed in seeds],
            level=f"{LOW}",
            limits=(0.0, 55.0),
            even=True,
        ),
        form,
    )
