"""What the tables of studies share: measurements brought together over seeds, and words for what is not there."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import mean, stdev
from typing import Any, Protocol, TypeVar, runtime_checkable

from ibforecast_lab.experiments.ledger import HOLDER, Record
from ibforecast_lab.experiments.plans import Plan
from ibforecast_lab.experiments.published import PublishedNumber, numbers

NOT_RUN, NONE, UNDEFINED = "not run", "–", "undefined"
NATIVE, PAPER = "native", "ibforecast"
"""The explainer that is a forecaster's own, and the name our forecaster goes by in print."""

Measurement = dict[str, Any]
Place = tuple[str, int | None, str]
"""Data set, horizon and model."""


@runtime_checkable
class Placed(Protocol):
    """A line of a table that says where it belongs."""

    @property
    def data(self) -> str:
        """Its data set."""

    @property
    def horizon(self) -> int | None:
        """Its horizon."""

    @property
    def model(self) -> str:
        """Its recipe."""


Line = TypeVar("Line", bound=Placed)


@dataclass(frozen=True)
class Group:
    """One recipe on one data set and horizon: the records of a study, one per seed."""

    data: str
    horizon: int
    model: str
    budget: float | None
    records: tuple[Record, ...]

    @property
    def seeds(self) -> int:
        """How many there are."""
        return len(self.records)

    @property
    def open_rate(self) -> float:
        """Share of the test windows that was read."""
        return mean(record.test.open_rate for record in self.records)

    @property
    def mse(self) -> float:
        """Squared error over the test windows."""
        return mean(record.test.mse for record in self.records)

    def measurements(self, measure: str) -> list[Measurement]:
        """Every row of one measure, seed by seed."""
        return [row for record in self.records for row in record.measurements if row["measure"] == measure]

    def by_explainer(self, measure: str) -> dict[str, list[Measurement]]:
        """The rows of one measure by explainer, the native one first."""
        found: dict[str, list[Measurement]] = defaultdict(list)
        for row in sorted(self.measurements(measure), key=lambda row: row["explainer"] != NATIVE):
            found[row["explainer"]].append(row)
        return dict(found)


def groups(records: Iterable[Record], study: str) -> list[Group]:
    """Put the records of a study together over seeds."""
    found: dict[tuple[str, int, str, float | None], list[Record]] = defaultdict(list)
    for record in _answering(records, study):
        cell = record.cell
        found[cell.data, cell.horizon, cell.recipe, record.recipe["config"].get("budget")].append(record)
    return [
        Group(*place, tuple(sorted(group, key=lambda record: record.cell.seed)))
        for place, group in sorted(found.items(), key=lambda item: str(item[0]))
    ]


def _answering(records: Iterable[Record], study: str) -> Iterable[Record]:
    """The records of a study; where there is none, that part of the study that holds it."""
    own, held = {}, {}
    for record in records:
        run = replace(record.cell, study="")
        if record.cell.study == study:
            own[run] = record
        elif record.cell.study == HOLDER.get(study):
            held[run] = replace(
                record, measurements=[row for row in record.measurements if row.get("explainer") == study]
            )
    return (held | own).values()


def by_place(plan: Plan, lines: Iterable[Line]) -> dict[Place, list[Line]]:
    """Lines by place: first every one of the plan, in its order and also where there is no line, then the others."""
    found: dict[Place, list[Line]] = {
        (data, horizon, model): [] for horizon in plan.horizons for data in plan.data for model in plan.models
    }
    for line in lines:
        found.setdefault((line.data, line.horizon, line.model), []).append(line)
    return found


def shown_by_place(
    plan: Plan, lines: Iterable[Line], shown: Callable[[Line], list[str]], width: int
) -> list[list[str]]:
    """The body of a table so wide whose lines begin with their place and their seeds; what was not run says so."""
    body: list[list[str]] = []
    for (data, horizon, model), here in by_place(plan, lines).items():
        absent = [data, str(horizon), model, NONE, NOT_RUN, *[NONE] * (width - 5)]
        body += [shown(line) for line in here] or [absent]
    return body


def in_print(table: str) -> dict[tuple[str, int | None, str], dict[str, PublishedNumber]]:
    """The published numbers of a table: by data set, horizon and model, then by metric."""
    found: dict[tuple[str, int | None, str], dict[str, PublishedNumber]] = defaultdict(dict)
    for number in numbers(table):
        found[number.data, number.horizon, number.model][number.metric] = number
    return dict(found)


def mean_of(values: Sequence[float | None]) -> float | None:
    """Average, or None where any is undefined or there is none."""
    known = [value for value in values if value is not None]
    return mean(known) if known and len(known) == len(values) else None


def spread_of(values: Sequence[float | None]) -> float | None:
    """Standard deviation over seeds, or None where there is one seed only or any value is undefined."""
    known = [value for value in values if value is not None]
    return stdev(known) if len(known) == len(values) > 1 else None


def in_words(value: float | None, spread: float | None = None) -> str:
    """Write a number that was measured, with its spread if it has one."""
    if value is None:
        return UNDEFINED
    return f"{value:.3f}" + ("" if spread is None else f" ± {spread:.3f}")


def as_printed(number: PublishedNumber | None) -> str:
    """Write a published number, or a dash where there is none."""
    return NONE if number is None else in_words(number.value, number.spread)
