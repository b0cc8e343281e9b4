"""Longer look-backs with the same number of values read: what sparse reading buys when the window grows."""

from ibforecast_lab.experiments.frame import Row, mean, over, seeds, select, spread, summarised
from ibforecast_lab.experiments.ledger import LOOK_BACK
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.sheet import Column, Table, change, known, marked, number, placed, share

LABEL = "look_back"
STUDY = "reach"
KEYS = ("data", "horizon", "look_back")
ERRORS = ("validation_mse", "mse", "mae")
FIELDS = {"seeds": seeds, "open_rate": mean("open_rate"), "values": mean("values"), "beyond": mean("beyond")}
FIELDS |= {error: mean(error) for error in ERRORS} | {f"{error}_std": spread(error) for error in ERRORS}


def rows_of(tidy: list[Row]) -> list[Row]:
    """Return a row for each data set and look-back, with the change from the look-back of the protocol."""
    rows = summarised(select(tidy, study=STUDY, measure="reach", model="default"), KEYS, FIELDS)
    short = {(row["data"], row["horizon"]): row for row in select(rows, look_back=LOOK_BACK)}
    return [
        row
        | {
            f"{error}_change": over(row[error], short.get((row["data"], row["horizon"]), {}).get(error))
            for error in ERRORS
        }
        for row in rows
    ]


def _lines(rows: list[Row]) -> list[Row]:
    """Return the planned lines; the smallest validation error of a data set is bold: it is what a choice would take."""
    planned = [
        {"data": data, "horizon": horizon, "look_back": plan.look_back}
        for data in dict.fromkeys(name for plan in PLANS[LABEL].also for name in plan.data)
        for plan in PLANS[LABEL].also
        if data in plan.data
        for horizon in plan.horizons
    ]
    lines = placed(rows, planned)
    for data in {line["data"] for line in lines}:
        run = [line for line in lines if line["data"] == data and "validation_mse" in line]
        best = min(run, key=lambda line: float(line["validation_mse"]), default=None)
        lines = [marked(line, validation_mse="**{}**") if line is best else line for line in lines]
    return lines


look_back = Table(
    title="Longer look-backs with the same number of values read (default; standardised)",
    keys=KEYS,
    columns=(
        Column("data", "data"),
        Column("horizon", "horizon"),
        Column("look-back", "look_back"),
        Column("read", "open_rate", share),
        Column("values read", "values", known(".0f")),
        Column(f"of them older than {LOOK_BACK} steps", "beyond", share),
        Column("seeds", "seeds"),
        Column("validation MSE", "validation_mse", number, "validation_mse_std"),
        Column("MSE", "mse", number, "mse_std"),
        Column("MAE", "mae", number, "mae_std"),
        *(Column(f"{name}, change", f"{error}_change", change) for error, name in (("mse", "MSE"), ("mae", "MAE"))),
    ),
    rows=rows_of,
    lines=_lines,
    note=(
        f"Every line reads at most the number of values that a budget of 20 % allows at look-back {LOOK_BACK}, so a "
        "longer look-back is read more sparsely. Changes are from that look-back. Bold: the smallest validation error "
        "of the data set. Longer look-backs have fewer training windows; the test windows are the same."
    ),
    missing=("mse", "mae", "validation_mse"),
    look_back=None,
)
