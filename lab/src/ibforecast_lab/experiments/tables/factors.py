"""What the factor decomposition is worth, where drivers were planted and on real data. Paper: appendix on factors."""

from dataclasses import asdict, dataclass
from statistics import mean
from typing import Literal

from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.sheet import Sheet
from ibforecast_lab.experiments.tables.measured import NONE, NOT_RUN, Group, groups, in_words

HEADER = [
    *("data", "horizon", "model", "seeds", "read", "MSE", "MSE, loadings zeroed", "size of the base"),
    *("size of a factor", "AUROC", "alignment", "precision", "recall"),
]
TITLE = "The factor decomposition, mean over seeds"
NOTE = (
    "Sizes are root mean squares of what is added to the future deviation, a factor's being the mean of the three. "
    "AUROC, alignment (cosine of the loadings), precision and recall are those of the driver found worst, of any seed; "
    "on real data nothing was planted. The paper prints no numbers for its planted drivers, and leaves the factors out "
    "on real data."
)


@dataclass(frozen=True)
class Line:
    """A recipe on a data set; the last four are of the driver found worst, None where nothing was planted."""

    data: str
    horizon: int
    model: str
    seeds: int
    open_rate: float
    mse: float
    mse_zeroed: float
    base_size: float
    factor_size: float
    auroc: float | None
    alignment: float | None
    precision: float | None
    recall: float | None
    source: Literal["ledger"] = "ledger"


def sheet(records: list[Record]) -> Sheet:
    """Every data set and recipe of the plan; what was not run says so."""
    lines = {
        (group.data, group.horizon, group.model): _line(group)
        for group in groups(records, "factors")
        if group.measurements("worth")
    }
    planned = ((cell.data, cell.horizon, cell.recipe) for cell in PLANS["factors"].cells())
    body = []
    for data, horizon, model in dict.fromkeys((*planned, *lines)):
        line = lines.get((data, horizon, model))
        absent = [data, str(horizon), model, NONE, NONE, NOT_RUN, *[NONE] * (len(HEADER) - 6)]
        body.append(_shown(line) if line else absent)
    return Sheet(TITLE, [asdict(line) for line in lines.values()], HEADER, body, NOTE)


def _line(group: Group) -> Line:
    worth, drivers = group.measurements("worth"), group.measurements("driver")

    def least(name: str) -> float | None:
        return min((row[name] for row in drivers), default=None)

    return Line(
        data=group.data,
        horizon=group.horizon,
        model=group.model,
        seeds=group.seeds,
        open_rate=group.open_rate,
        mse=group.mse,
        mse_zeroed=mean(row["mse_zeroed"] for row in worth),
        base_size=mean(row["base_size"] for row in worth),
        factor_size=mean(size for row in worth for size in row["factor_sizes"]),
        auroc=least("auroc"),
        alignment=least("alignment"),
        precision=least("precision"),
        recall=least("recall"),
    )


def _shown(line: Line) -> list[str]:
    least = (line.auroc, line.alignment, line.precision, line.recall)
    return [
        *(line.data, str(line.horizon), line.model, str(line.seeds), f"{line.open_rate:.1%}"),
        *map(in_words, (line.mse, line.mse_zeroed, line.base_size, line.factor_size)),
        *(NONE if value is None else in_words(value) for value in least),
    ]
