"""What a table never seen gets: the default recipe, which goes by the kind of table, beside one made by hand."""

from dataclasses import asdict, dataclass
from statistics import mean
from typing import Literal

from ibforecast.experiments.ledger import Cell, Record
from ibforecast.experiments.parts import sizes_of
from ibforecast.experiments.plans import BY_HAND, PLANS
from ibforecast.experiments.sheet import Sheet
from ibforecast.experiments.tables.measured import NONE, NOT_RUN, in_words, spread_of
from ibforecast.zoo.recipes import DEFAULT, kind_of

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
    plan = PLANS["unseen"]
    lines = [_line(records, data, horizon) for horizon in plan.horizons for data in plan.data]
    return Sheet(TITLE, [asdict(line) for line in lines], HEADER, [_shown(line) for line in lines], NOTE)


def _line(records: list[Record], data: str, horizon: int) -> Line:
    errors, by_hand = (_errors(records, data, horizon, recipe) for recipe in (DEFAULT, BY_HAND))
    return Line(
        data=data,
        horizon=horizon,
        kind=kind_of(sizes_of(Cell(data, horizon, DEFAULT, 0))),
        seeds=len(errors),
        mse=mean(errors) if errors else None,
        mse_std=spread_of(errors),
        mse_by_hand=mean(by_hand) if by_hand else None,
        change=mean(errors) / mean(by_hand) - 1 if errors and by_hand else None,
    )


def _errors(records: list[Record], data: str, horizon: int, recipe: str) -> list[float]:
    """The errors of a recipe's runs by seed, whatever they were made for."""
    cells = ((record.cell, record.test.mse) for record in records)
    return list(
        {
            cell.seed: error
            for cell, error in cells
            if cell == Cell(data, horizon, recipe, cell.seed, study=cell.study)
        }.values()
    )


def _shown(line: Line) -> list[str]:
    return [
        *(line.data, str(line.horizon), line.kind, str(line.seeds)),
        NOT_RUN if line.mse is None else in_words(line.mse, line.mse_std),
        NOT_RUN if line.mse_by_hand is None else in_words(line.mse_by_hand),
        NONE if line.change is None else f"{line.change:+z.1%}",
    ]
