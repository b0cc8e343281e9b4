"""Does choosing window by window pay? The learned gate beside one mask for all windows, at the same share read."""

from collections import defaultdict
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Literal

from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.run import recipe_of
from ibforecast_lab.experiments.sheet import Sheet
from ibforecast_lab.experiments.tables.measured import NONE, NOT_RUN, Measurement, in_words, mean_of, spread_of

LEARNED, FIXED = "steady", "static-fixed"
HEADER = [
    *("data", "horizon", "budget", "read", "seeds", "MSE", "MSE of a fixed mask", "change", "better"),
    *("unusual", "MSE with another's mask", "MSE with the usual mask"),
]
TITLE = "The learned gate against one mask for all windows, at the same budget"
NOTE = (
    f"The learned gate is `{LEARNED}`, the fixed mask `{FIXED}`: the same network with a mask that is learned as one "
    "for all windows and never looks at any. Both read as much. Better is whose mean error is smaller by more than "
    "either's standard deviation over seeds; `neither` says that the difference is not. The last three tell whether "
    "the learned gate chooses at all: what share of what it reads is not among the tokens it reads most often, and the "
    "error of the very same model when every window is read through another window's mask, or through those tokens."
)
STUDY = "choice"
Place = tuple[str, int, float]


@dataclass(frozen=True)
class Line:
    """A data set, horizon and budget under both; None is not run."""

    data: str
    horizon: int
    budget: float
    seeds: int
    open_rate: float | None
    mse: float | None
    mse_std: float | None
    mse_fixed: float | None
    mse_fixed_std: float | None
    change: float | None
    better: Literal["learned", "fixed", "neither"] | None
    unusual: float | None
    mse_another: float | None
    mse_usual: float | None
    source: Literal["ledger"] = "ledger"


def sheet(records: list[Record]) -> Sheet:
    """Every data set, horizon and budget of the plan."""
    found: dict[tuple[str, Place], dict[int, Record]] = defaultdict(dict)
    chosen: dict[Place, list[Measurement]] = defaultdict(list)
    for record in records:
        cell = record.cell
        if cell.recipe in (LEARNED, FIXED):
            place = (cell.data, cell.horizon, record.recipe["config"]["budget"])
            found[cell.recipe, place][cell.seed] = record
            if cell.study == STUDY:
                chosen[place] += [row for row in record.measurements if row["part"] == "test"]
    cells = PLANS["fixed_mask"].cells()
    planned = [(cell.study, (cell.data, cell.horizon, recipe_of(cell).config.budget)) for cell in cells]
    order = sorted({place for _, place in planned}, key=lambda place: (place[1], -place[2], place[0]))
    lines, body = [], []
    for place in order:
        learned, fixed = (list(found[model, place].values()) for model in (LEARNED, FIXED))
        lines.append(_line(place, learned, fixed, chosen[place]))
        body.append(_shown(lines[-1], NOT_RUN if (STUDY, place) in planned else NONE))
    return Sheet(TITLE, [asdict(line) for line in lines], HEADER, body, NOTE)


def _line(place: Place, learned: list[Record], fixed: list[Record], chosen: list[Measurement]) -> Line:
    data, horizon, budget = place
    (mse, spread), (other, other_spread) = _error(learned), _error(fixed)
    return Line(
        data=data,
        horizon=horizon,
        budget=budget,
        seeds=len(learned),
        open_rate=mean(record.test.open_rate for record in learned) if learned else None,
        mse=mse,
        mse_std=spread,
        mse_fixed=other,
        mse_fixed_std=other_spread,
        change=mse / other - 1 if mse and other else None,
        better=_better(mse, other, spread, other_spread),
        unusual=mean_of([row["unusual"] for row in chosen]),
        mse_another=mean_of([row["another"] for row in chosen]),
        mse_usual=mean_of([row["usual"] for row in chosen]),
    )


def _error(records: list[Record]) -> tuple[float | None, float | None]:
    errors = [record.test.mse for record in records]
    return (mean(errors), spread_of(errors)) if errors else (None, None)


def _better(
    learned: float | None, fixed: float | None, *spreads: float | None
) -> Literal["learned", "fixed", "neither"] | None:
    known = [spread for spread in spreads if spread is not None]
    if learned is None or fixed is None or len(known) < len(spreads):
        return None
    if abs(learned - fixed) <= max(known):
        return "neither"
    return "learned" if learned < fixed else "fixed"


def _shown(line: Line, absent: str) -> list[str]:
    return [
        *(line.data, str(line.horizon), f"{line.budget:.0%}"),
        *(NONE if line.open_rate is None else f"{line.open_rate:.1%}", str(line.seeds)),
        NOT_RUN if line.mse is None else in_words(line.mse, line.mse_std),
        NOT_RUN if line.mse_fixed is None else in_words(line.mse_fixed, line.mse_fixed_std),
        NONE if line.change is None else f"{line.change:+z.1%}",
        *(line.better or NONE, absent if line.unusual is None else f"{line.unusual:.1%}"),
        *(absent if error is None else in_words(error) for error in (line.mse_another, line.mse_usual)),
    ]
