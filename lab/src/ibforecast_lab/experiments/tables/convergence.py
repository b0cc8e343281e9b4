"""Convergence of the mask optimisers: recovery of the planted support by the number of steps."""

from ibforecast_lab.experiments.frame import Row, mean, seeds, select, summarised
from ibforecast_lab.experiments.sheet import Column, Table, measured, placed, share
from ibforecast_lab.experiments.studies.convergence import OPTIMISERS, STEPS

KEYS = ("data", "model", "explainer", "steps")
METRICS = ("auroc", "aup", "aur")
FIELDS = {"seeds": seeds, "agreement": mean("agreement")} | {metric: mean(metric) for metric in METRICS}


def _lines(rows: list[Row]) -> list[Row]:
    return placed(
        rows,
        [
            dict(zip(KEYS, ("framed-pulse", "framed", explainer, steps), strict=True))
            for explainer in OPTIMISERS
            for steps in STEPS
        ],
    )


convergence = Table(
    title="Recovery of the planted support by mask optimisers, by the number of steps",
    keys=KEYS,
    columns=(
        Column("data", "data"),
        Column("model", "model"),
        Column("explainer", "explainer"),
        Column("steps", "steps"),
        Column("seeds", "seeds"),
        *(Column(metric.upper(), metric, measured) for metric in METRICS),
        Column(f"as after {STEPS[-1]:,} steps", "agreement", share),
    ),
    rows=lambda tidy: summarised(select(tidy, measure="convergence"), KEYS, FIELDS),
    lines=_lines,
    note=(
        "Both optimisers take 500 steps elsewhere. The last column: of the points that a map names, as many as the "
        "truth has, the share that the map after the most steps names as well."
    ),
    missing=("auroc",),
)
