"""What each part is worth, as dots. Paper: Table "ablations"."""

from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.tables.ablations import METRICS, OF_THE_PAPER, Line, change_in, lines_of
from ibforecast_lab.experiments.tables.measured import in_print
from ibforecast_lab.experiments.variants import parted
from ibforecast_lab.plots.dots import Dot, DotRow, draw
from ibforecast_lab.plots.records import Form

NAMES = ("MSE", "MAE", "read", "comp", "suff", "score")
SPREAD = {"mse": "mse_std", "score": "score_std"}


def figure(records: list[Record], form: Form) -> bytes | None:
    """A row per recipe and variant, a column per measure, of the plan's one data set and horizon."""
    lines, plan = lines_of(records), PLANS["ablations"]
    if not lines:
        return None
    (data,), (horizon,) = plan.data, plan.horizons
    found = {line.model: line for line in lines}
    rows = [_row(data, horizon, model, found.get(model)) for model in plan.models]
    return draw(rows, NAMES, form)


def _row(data: str, horizon: int, model: str, line: Line | None) -> DotRow:
    printed = in_print("ablations").get((data, horizon, OF_THE_PAPER.get(model, "")), {})
    dots = [
        Dot(
            own=None if line is None else getattr(line, metric),
            spread=getattr(line, SPREAD[metric], None) if metric in SPREAD else None,
            printed=printed[metric].value if metric in printed else None,
        )
        for metric in METRICS
    ]
    recipe, variant = parted(model)
    return DotRow(change_in(model) if variant else recipe, dots, heads=not variant, run=line is not None)
