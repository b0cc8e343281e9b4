"""What a table never seen gets: the default recipe, which goes by the kind of table, beside one made by hand."""

from dataclasses import asdict, dataclass
from typing import Literal

from ibforecast.zoo.recipes import DEFAULT, kind_of
from ibforecast_lab.experiments.ledger import Cell, Record
from ibforecast_lab.experiments.parts import sizes_of
from ibforecast_lab.experiments.plans import BY_HAND, PLANS
from ibforecast_lab.experiments.rows import Row, ledger_rows
from ibforecast_lab.experiments.sheet import Sheet
from ibforecast_lab.experiments.tables.measured import NONE, NOT_RUN, in_words

HEADER = ["data", "horizon", "kind", "seeds", "MSE", "MSE by hand", "change"]
TITLE = "The default recipe, which knows none of these tables by name, against one made by hand for each"
NOTE = (
    "kind: what a plain fit goes by, from the number of channels, the look-back and the cycle. By hand: recipe "
    f"`{BY_HAND}`, whose settings were chosen for each data set by its name. The change is of mean errors over seeds."
)


@dataclass(frozen=True)
class Line:
    """A data set under both; None is not run."""

    data: str
    horizon: int
    kind: str
    seeds: int
    mse: float | None
    mse_std: float | None
    mse_by_hand: float | None
    change: float | None
    source: Literal["ledger"] = "ledger"


def sheet(records: list[Record]) -> Sheet:
    """Every data set and horizon of the plan."""
    plan, rows = PLANS["by_kind"], ledger_rows(record for record in records if record.cell.budget is None)
    found = {(row.data, row.horizon, row.model): row for row in rows}
    lines = [
        _line(data, horizon, *(found.get((data, horizon, recipe)) for recipe in (DEFAULT, BY_HAND)))
        for horizon in plan.horizons
        for data in plan.data
    ]
    return Sheet(TITLE, [asdict(line) for line in lines], HEADER, [_shown(line) for line in lines], NOTE)


def _line(data: str, horizon: int, default: Row | None, by_hand: Row | None) -> Line:
    error, other = (row.mse if row else None for row in (default, by_hand))
    return Line(
        data=data,
        horizon=horizon,
        kind=kind_of(sizes_of(Cell(data, horizon, DEFAULT, 0))),
        seeds=default.seeds if default else 0,
        mse=error,
        mse_std=default.mse_std if default else None,
        mse_by_hand=other,
        change=error / other - 1 if error and other else None,
    )


def _shown(line: Line) -> list[str]:
    return [
        *(line.data, str(line.horizon), line.kind, str(line.seeds)),
        NOT_RUN if line.mse is None else in_words(line.mse, line.mse_std),
        NOT_RUN if line.mse_by_hand is None else in_words(line.mse_by_hand),
        NONE if line.change is None else f"{line.change:+z.1%}",
    ]
