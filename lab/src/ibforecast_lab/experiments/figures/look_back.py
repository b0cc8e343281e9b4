"""Errors by the length of the look-back, with the same number of values read."""

from ibforecast_lab.experiments.frame import Row, frame, select
from ibforecast_lab.experiments.ledger import LOOK_BACK, Record
from ibforecast_lab.experiments.plans import LENGTHENED, LONGER, MAIN
from ibforecast_lab.experiments.tables.look_back import rows_of
from ibforecast_lab.plots.curves import Curve, Grid, Panel, draw
from ibforecast_lab.plots.records import Form

LOOK_BACKS = (LOOK_BACK, *LONGER)
ERRORS = {"mse": "test MSE", "validation_mse": "validation MSE"}


def figure(records: list[Record], form: Form) -> bytes | None:
    """Draw the test and the validation error of each data set, divided by that at the look-back of the protocol."""
    rows = rows_of(frame(records))
    if not rows:
        return None
    groups = {"benchmarks": MAIN, "other tables": tuple(data for data in LENGTHENED if data not in MAIN)}
    return draw(
        Grid(
            panels=[[_panel(rows, error, data) for data in groups.values()] for error in ERRORS],
            rows=[f"{name} / at {LOOK_BACK}" for name in ERRORS.values()],
            columns=list(groups),
            across="look-back, steps",
            names=[data for group in groups.values() for data in group],
            level=f"look-back {LOOK_BACK}",
            ticks=[[str(look_back) for look_back in LOOK_BACKS]] * len(groups),
            even=True,
        ),
        form,
    )


def _panel(rows: list[Row], error: str, data: tuple[str, ...]) -> Panel:
    curves = []
    for name in data:
        here = [row for row in select(rows, data=name) if row[f"{error}_change"] is not None]
        drawn = sorted(here, key=lambda row: LOOK_BACKS.index(row["look_back"]))
        if len(drawn) > 1:
            short = next(row[error] for row in drawn if row["look_back"] == LOOK_BACK)
            across = [float(LOOK_BACKS.index(row["look_back"])) for row in drawn]
            spreads = [row[f"{error}_std"] and row[f"{error}_std"] / short for row in drawn]
            curves.append(Curve(name, across, [1 + row[f"{error}_change"] for row in drawn], spreads))
    drawn_names = [curve.name for curve in curves]
    return Panel(curves, 1.0, [name for name in data if name not in drawn_names] if error == "mse" else ())
