"""Five hyper-parameters turned one at a time: what errors, reading and fidelity make of it. Paper: Figure "hp"."""

from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any, Literal

from ibforecast_lab.experiments.ledger import Cell, Record
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.published import numbers
from ibforecast_lab.experiments.sheet import Sheet
from ibforecast_lab.experiments.tables import fidelity
from ibforecast_lab.experiments.tables.measured import NONE, NOT_RUN, PAPER, Group, groups, in_words
from ibforecast_lab.experiments.variants import SWEEPS, parted

STUDY = "native"
BUDGET, DEFAULT = "budget", "default"
KNOBS = {
    "rate_weight": "β",
    "contiguity_weight": "λ_tv",
    "budget_weight": "λ_b",
    BUDGET: "ρ",
    "prior": "π",
}
"""The paper's hyper-parameters by our names, in its order, with its symbols."""

HEADER = [
    *("data", "horizon", "recipe", "setting", "value", "seeds", "MSE", "change of MSE", "MAE", "read", "comp"),
    *("suff", "score", "published change of MSE"),
]
TITLE = "Sensitivity to the five hyper-parameters, one at a time"
NOTE = (
    "Everything but the one setting is the recipe's own; the change of MSE is against that recipe as it is, on the "
    "same seeds. The fidelity is that of the model's own mask, gates run again. Recipe steady has no budget term and "
    "no contiguity term of its own and cannot read more than its budget, and on ETTm1 no rate term to feel the "
    "prior by; paper-sparse has the defaults the paper sweeps about. The values are ours: the paper draws its sweeps "
    "and does not print them. Published: within about so much, for every setting but the budget."
)


@dataclass(frozen=True)
class Line:
    """A recipe with one setting turned, or as it is (`setting` "default"), mean over seeds; None is undefined."""

    data: str
    horizon: int | None
    recipe: str
    setting: str
    value: float | None
    seeds: int
    mse: float | None
    mse_change: float | None
    mae: float | None
    open_rate: float | None
    comprehensiveness: float | None
    sufficiency: float | None
    score: float | None
    source: Literal["ledger", "published"]


def sheet(records: list[Record]) -> Sheet:
    """Every cell of the plan; what was not run says so."""
    lines, plan = lines_of(records), PLANS["sensitivity"]
    found = {(line.data, line.horizon, line.recipe, line.setting, line.value): line for line in lines}
    places = sorted(
        dict.fromkeys((cell.data, cell.horizon, parted(cell.recipe)[0], *turned(cell)) for cell in plan.cells()),
        key=_order,
    )
    body = [_shown(place, found.get(place)) for place in places]
    return Sheet(TITLE, [asdict(line) for line in (*lines, *_published_lines())], HEADER, body, NOTE)


def turned(cell: Cell) -> tuple[str, float | None]:
    """Which setting a cell turns and to what, or that it turns none."""
    setting, _, value = parted(cell.recipe)[1].partition("=")
    if setting:
        return setting, float(value)
    return (DEFAULT, None) if cell.budget is None else (BUDGET, cell.budget)


def value_of(setting: str, config: dict[str, Any]) -> float:
    """What a setting is in a record's recipe."""
    return float(config[BUDGET] if setting == BUDGET else config["objective"][setting])


def groups_of(records: list[Record]) -> list[Group]:
    """What was run of the plan, over seeds."""
    planned = {(cell.data, cell.horizon, cell.recipe, cell.budget) for cell in PLANS["sensitivity"].cells()}
    own = [one for one in records if (one.cell.data, one.cell.horizon, one.cell.recipe, one.cell.budget) in planned]
    return groups(own, STUDY)


def lines_of(records: list[Record]) -> list[Line]:
    """The plan's cells as far as they were run, over seeds, each beside its recipe as it is."""
    found = groups_of(records)
    defaults = {
        (group.data, group.horizon, group.model): group
        for group in found
        if turned(group.records[0].cell) == (DEFAULT, None)
    }
    lines = [_line(group, defaults.get((group.data, group.horizon, parted(group.model)[0]))) for group in found]
    return sorted(lines, key=lambda line: _order((line.data, line.horizon, line.recipe, line.setting, line.value)))


def _line(group: Group, default: Group | None) -> Line:
    (told,) = fidelity.lines_of(group)
    setting, value = turned(group.records[0].cell)
    return Line(
        data=group.data,
        horizon=group.horizon,
        recipe=parted(group.model)[0],
        setting=setting,
        value=value,
        seeds=group.seeds,
        mse=mean(record.test.mse for record in group.records),
        mse_change=_change(group, default),
        mae=mean(record.test.mae for record in group.records),
        open_rate=group.open_rate,
        comprehensiveness=told.comprehensiveness,
        sufficiency=told.sufficiency,
        score=told.score,
        source="ledger",
    )


def _change(group: Group, default: Group | None) -> float | None:
    """Mean over the seeds that both have of how much larger the error is, as a share."""
    before = {} if default is None else {record.cell.seed: record.test.mse for record in default.records}
    shares = [record.test.mse / before[record.cell.seed] - 1 for record in group.records if record.cell.seed in before]
    return mean(shares) if shares else None


def _published_lines() -> list[Line]:
    found = []
    for number in numbers("sensitivity"):
        found.append(
            Line(
                data=number.data,
                horizon=number.horizon,
                recipe=PAPER,
                setting="any but budget",
                value=None,
                seeds=0,
                mse=None,
                mse_change=number.value,
                mae=None,
                open_rate=None,
                comprehensiveness=None,
                sufficiency=None,
                score=None,
                source="published",
            )
        )
    return found


def _order(place: tuple[str, int | None, str, str, float | None]) -> tuple[str, str, int, int, float]:
    data, horizon, recipe, setting, value = place
    rank = -1 if setting == DEFAULT else list(KNOBS).index(setting)
    return recipe, data, horizon or 0, rank, value or 0.0


def _shown(place: tuple[str, int | None, str, str, float | None], line: Line | None) -> list[str]:
    data, horizon, recipe, setting, value = place
    own = [NONE, NOT_RUN, *[NONE] * 6]
    if line is not None:
        own = [
            *(str(line.seeds), in_words(line.mse), NONE if line.mse_change is None else f"{line.mse_change:+z.1%}"),
            *(in_words(line.mae), NONE if line.open_rate is None else f"{line.open_rate:.1%}"),
            *map(in_words, (line.comprehensiveness, line.sufficiency, line.score)),
        ]
    within = {number.data: f"± {number.value:.0%}" for number in numbers("sensitivity")}
    beside = within.get(data, NONE) if setting in SWEEPS else NONE
    told = setting if setting == DEFAULT else f"{setting} ({KNOBS[setting]})"
    return [data, str(horizon), recipe, told, NONE if value is None else f"{value:g}", *own, beside]
