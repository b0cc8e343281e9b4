"""From records and published numbers to flat rows; a row knows where it comes from."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import mean, stdev
from typing import Literal

from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.published import PublishedNumber, numbers
from ibforecast_lab.experiments.variants import parted

HORIZONS = (96, 192, 336, 720)


@dataclass(frozen=True)
class Row:
    """One model on one data set and horizon (None: the mean over all four), over its seeds; None is not run."""

    data: str
    horizon: int | None
    model: str
    budget: float | None
    seeds: int
    mse: float | None
    mae: float | None
    mse_std: float | None
    open_rate: float | None
    source: Literal["ledger", "published"]


def ledger_rows(records: Iterable[Record]) -> list[Row]:
    """One row per data set, horizon, recipe and budget, averaged over seeds, of which none is counted twice.

    What was run for a study alone, a variant of a recipe or another budget than its own, stays in the study's table.
    """
    groups: dict[tuple[str, int, str, float | None], list[Record]] = defaultdict(list)
    once = {
        replace(record.cell, study=""): record
        for record in sorted(records, key=lambda record: record.cell.study, reverse=True)
        if not record.cell.study or (record.cell.budget is None and not parted(record.cell.recipe)[1])
    }
    for record in once.values():
        budget = record.recipe["config"].get("budget")
        groups[record.cell.data, record.cell.horizon, record.cell.recipe, budget].append(record)
    return [_row(*place, group) for place, group in sorted(groups.items(), key=lambda item: str(item[0]))]


def published_rows(table: str) -> list[Row]:
    """One row per data set, horizon and model of a table of published errors."""
    pairs: dict[tuple[str, int | None, str], dict[str, PublishedNumber]] = defaultdict(dict)
    for number in numbers(table):
        pairs[number.data, number.horizon, number.model][number.metric] = number
    return [
        Row(data, horizon, model, None, 0, _value(pair, "mse"), _value(pair, "mae"), None, None, "published")
        for (data, horizon, model), pair in pairs.items()
    ]


def averaged(rows: Iterable[Row]) -> list[Row]:
    """Means over the four horizons, of the models for which all four are there."""
    groups: dict[tuple[str, str, float | None, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.data, row.model, row.budget, row.source].append(row)
    return [
        _mean_of(group, group[0].data)
        for group in groups.values()
        if {row.horizon for row in group} == set(HORIZONS) and all(row.mse is not None for row in group)
    ]


def overall(rows: Iterable[Row], data_sets: tuple[str, ...]) -> list[Row]:
    """Means over all data sets of rows already averaged over horizons, where none is missing."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.model, row.source].append(row)
    return [
        _mean_of(group, "Overall")
        for group in groups.values()
        if sorted(row.data for row in group) == sorted(data_sets)
    ]


def _row(data: str, horizon: int, model: str, budget: float | None, records: list[Record]) -> Row:
    errors = [record.test.mse for record in records]
    return Row(
        data=data,
        horizon=horizon,
        model=model,
        budget=budget,
        seeds=len(records),
        mse=mean(errors),
        mae=mean(record.test.mae for record in records),
        mse_std=stdev(errors) if len(errors) > 1 else None,
        open_rate=mean(record.test.open_rate for record in records),
        source="ledger",
    )


def _mean_of(group: list[Row], data: str) -> Row:
    budgets = {row.budget for row in group}
    return Row(
        data=data,
        horizon=None,
        model=group[0].model,
        budget=budgets.pop() if len(budgets) == 1 else None,
        seeds=min(row.seeds for row in group),
        mse=_mean([row.mse for row in group]),
        mae=_mean([row.mae for row in group]),
        mse_std=None,
        open_rate=_mean([row.open_rate for row in group]),
        source=group[0].source,
    )


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return mean(known) if len(known) == len(values) else None


def _value(pair: dict[str, PublishedNumber], metric: str) -> float | None:
    return pair[metric].value if metric in pair else None
