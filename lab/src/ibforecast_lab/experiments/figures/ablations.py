"""The effect of each part, as dots. Paper: Table "ablations"."""

from ibforecast_lab.experiments.frame import Row, frame
from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.tables.ablations import (
    KEYS,
    METRICS,
    change_in,
    counterparts,
    places,
    published,
    rows_of,
)
from ibforecast_lab.experiments.variants import split_name
from ibforecast_lab.plots.dots import Dot, DotRow, draw
from ibforecast_lab.plots.records import Form

DATA = "ETTh1"


def figure(records: list[Record], form: Form) -> bytes | None:
    """Draw a row for each recipe and variant and a column for each measure, for the data set of the paper."""
    runs = {row["model"]: row for row in rows_of(frame(records)) if row["data"] == DATA}
    planned = [dict(zip(KEYS, place, strict=True)) for place in places() if place[0] == DATA]
    rows = [_row(place, runs.get(place["model"], {})) for place in planned]
    return draw(rows, tuple(METRICS.values()), form) if runs else None


def _row(place: Row, run: Row) -> DotRow:
    printed = (counterparts(place, published()) or [{}])[0]
    dots = [Dot(run.get(metric), run.get(f"{metric}_std"), printed.get(metric)) for metric in METRICS]
    recipe, variant = split_name(place["model"])
    return DotRow(change_in(place["model"]) if variant else recipe, dots, heads=not variant, run=bool(run))
