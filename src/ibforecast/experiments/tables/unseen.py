"""What a table never seen gets: the default recipe by the kind of table, beside the one that knows it by name."""

from dataclasses import asdict, dataclass
from statistics import mean
from typing import Literal

from ibforecast.experiments.ledger import Cell, Record
from ibforecast.experiments.parts import sizes_of
from ibforecast.experiments.plans import PLANS
from ibforecast.experiments.run import recipe_of
from ibforecast.experiments.sheet import Sheet
from ibforecast.experiments.tables.measured import NONE, NOT_RUN, in_words, spread_of
from ibforecast.zoo.recipes import kind_of

NAMED, UNSEEN = "steady", "steady+unseen"
HEADER = ["data", "horizon", "kind", "settings", "seeds", "MSE", "MSE by name", "change"]
TITLE = "The default recipe for a table never seen, against the one that knows it by name"
NOTE = (
    "kind: what a plain fit goes by, from the number of channels, the look-back and the cycle. Where the settings are "
    "the same, so is the run. The change is of mean errors over seeds."
)


@dataclass(frozen=True)
class Line:
    """A data set under both; None is not run."""

    data: str
    horizon: int
    kind: str
    same: bool
    seeds: int
    mse: float | None
    mse_std: float | None
    mse_by_name: float | None
    change: float | None
    source: Literal["ledger"] = "ledger"


def sheet(records: list[Record]) -> Sheet:
    """Every data set and horizon of the plan."""
    plan = PLANS["unseen"]
    lines = [_line(records, data, horizon) for horizon in plan.horizons for data in plan.data]
    return Sheet(TITLE, [asdict(line) for line in lines], HEADER, [_shown(line) for line in lines], NOTE)


def _line(records: list[Record], data: str, horizon: int) -> Line:
    named, unseen = (Cell(data, horizon, model, 0) for model in (NAMED, UNSEEN))
    same = recipe_of(named).sha256 == recipe_of(unseen).sha256
    by_name = _errors(records, named)
    errors = by_name if same else _errors(records, unseen)
    return Line(
        data=data,
        horizon=horizon,
        kind=kind_of(sizes_of(named)),
        same=same,
        seeds=len(errors),
        mse=mean(errors) if errors else None,
        mse_std=spread_of(errors),
        mse_by_name=mean(by_name) if by_name else None,
        change=mean(errors) / mean(by_name) - 1 if errors and by_name else None,
    )


def _errors(records: list[Record], cell: Cell) -> list[float]:
    """The errors of a cell's runs by seed, whatever they were made for."""
    place = (cell.data, cell.horizon, cell.recipe, cell.look_back, None)
    return list(
        {
            record.cell.seed: record.test.mse
            for record in records
            if (record.cell.data, record.cell.horizon, record.cell.recipe, record.cell.look_back, record.cell.budget)
            == place
        }.values()
    )


def _shown(line: Line) -> list[str]:
    return [
        *(line.data, str(line.horizon), line.kind, "the same" if line.same else "others", str(line.seeds)),
        NOT_RUN if line.mse is None else in_words(line.mse, line.mse_std),
        NOT_RUN if line.mse_by_name is None else in_words(line.mse_by_name),
        NONE if line.change is None else f"{line.change:+z.1%}",
    ]
