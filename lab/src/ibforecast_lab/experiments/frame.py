"""The ledger as one tidy frame, and functions by which tables select, summarise and compare its rows."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from math import sqrt
from statistics import mean as average
from statistics import stdev
from typing import Any, Literal

from ibforecast.evaluate.fidelity import Measure
from ibforecast_lab.experiments.ledger import HOLDER, Record
from ibforecast_lab.experiments.variants import split_name

Row = dict[str, Any]
Summary = Callable[[list[Row]], Any]
Lead = Literal["ahead", "level", "behind", "one seed"]

RUN = ("data", "look_back", "horizon", "model", "budget", "seed")
"""The fields that identify a run. Records of several studies may belong to the same run."""

DEFAULT_WAY: Row = asdict(Measure()) | {"aggregate": "ratio_of_means"}
"""The way to measure fidelity in tables that show only one."""

LEVEL = (
    "Level: the means differ by no more than the larger of the standard deviations over seeds; a published number "
    "without a spread, and a model without random numbers, are compared by the spread of ours. One seed: one side was "
    "run only once and has no spread."
)
"""The rule of `lead`, for the notes of tables."""


def frame(records: Iterable[Record]) -> list[Row]:
    """Return a row for the errors of every record, and one for each of its measurements.

    A row has the coordinates of its run and its test errors. If it is a measurement, it also has the measurement's
    fields, which replace fields of the same name: a model measured at several budgets has the errors at each budget.
    `measure` names what was measured.
    """
    return [row for record in records for row in _rows(record)]


def _rows(record: Record) -> Iterable[Row]:
    cell, config = record.cell, record.recipe["config"]
    recipe, variant = split_name(cell.recipe)
    run = {
        "data": cell.data,
        "look_back": cell.look_back,
        "horizon": cell.horizon,
        "model": cell.recipe,
        "recipe": recipe,
        "variant": variant,
        "budget": config.get("budget"),
        "own_budget": cell.budget is None,
        "other_budget": cell.budget,
        "seed": cell.seed,
        "study": cell.study,
        "config": config,
        "train": record.recipe.get("train", {}),
        "mse": record.test.mse,
        "mae": record.test.mae,
        "open_rate": record.test.open_rate,
        "largest_open_rate": record.test.largest_open_rate,
        "validation_mse": record.validation.mse,
        "seconds": record.seconds,
        "source": "ledger",
    }
    yield run | {"measure": "errors"}
    for measurement in record.measurements:
        yield run | measurement | _derived(measurement)


def _derived(measurement: Row) -> Row:
    """Return fields computed from one measurement: scores of fidelity, and roots of squared shifts."""
    if "sufficiency" in measurement:
        return {
            "score": _score(measurement["comprehensiveness"], measurement["sufficiency"]),
            "score_by_window": _score(measurement["clipped_comprehensiveness"], measurement["sufficiency"]),
        }
    if measurement["measure"] == "sensitivity":
        return {
            f"{name}_root": None if measurement[name] is None else sqrt(measurement[name])
            for name in ("relative", "gates_relative")
        }
    return {}


def _score(comprehensiveness: float | None, sufficiency: float | None) -> float | None:
    """Return comprehensiveness, at most 1, less sufficiency; None if either is undefined."""
    return None if comprehensiveness is None or sufficiency is None else min(comprehensiveness, 1.0) - sufficiency


# --- Choosing rows ---


def select(rows: Iterable[Row], **where: Any) -> list[Row]:
    """Return the rows that have all these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in where.items())]


def errors(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of errors, each run once."""
    return list({tuple(row[name] for name in RUN): row for row in select(rows, measure="errors")}.values())


def of_study(rows: list[Row], study: str) -> list[Row]:
    """Return the rows of a study. For a run without this study, return rows from the study that contains it."""
    own = select(rows, study=study)
    runs = {tuple(row[name] for name in RUN) for row in own}
    return own + [
        row
        for row in select(rows, study=HOLDER.get(study))
        if (row["measure"] == "errors" or row.get("explainer") == study)
        and tuple(row[name] for name in RUN) not in runs
    ]


# --- Summaries over rows ---


def grouped(rows: Iterable[Row], keys: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows by the values of their keys, in the order in which these first occur."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    return dict(groups)


def summarised(rows: Iterable[Row], keys: Sequence[str], fields: Mapping[str, Summary]) -> list[Row]:
    """Return a flat row for each group: its keys, the summary of each field, and its source."""
    return [
        dict(zip(keys, place, strict=True))
        | {name: summary(group) for name, summary in fields.items()}
        | {"source": "ledger"}
        for place, group in grouped(rows, keys).items()
    ]


def mean_of(values: Sequence[float | None]) -> float | None:
    """Return the mean, or None if any value is undefined or there are no values."""
    known = [value for value in values if value is not None]
    return average(known) if known and len(known) == len(values) else None


def spread_of(values: Sequence[float | None]) -> float | None:
    """Return the standard deviation over seeds, or None if there is only one seed or any value is undefined."""
    known = [value for value in values if value is not None]
    return stdev(known) if len(known) == len(values) > 1 else None


def seeds(rows: list[Row]) -> int:
    """Return the number of seeds."""
    return len({row["seed"] for row in rows})


def mean(field: str, **where: Any) -> Summary:
    """Average a field over the rows that have these values."""
    return lambda rows: mean_of([row[field] for row in select(rows, **where)])


def spread(field: str, **where: Any) -> Summary:
    """Return the standard deviation of a field over the rows that have these values."""
    return lambda rows: spread_of([row[field] for row in select(rows, **where)])


def total(field: str, **where: Any) -> Summary:
    """Sum a field over the rows that have these values."""
    return lambda rows: sum(row[field] for row in select(rows, **where))


def least(field: str, **where: Any) -> Summary:
    """Return the smallest value of a field over the rows that have these values."""
    return lambda rows: min((row[field] for row in select(rows, **where) if row[field] is not None), default=None)


def most(field: str, **where: Any) -> Summary:
    """Return the largest value of a field over the rows that have these values."""
    return lambda rows: max((row[field] for row in select(rows, **where) if row[field] is not None), default=None)


# --- Comparing rows ---


def lead(ours: Row | None, other: Row | None, field: str = "mse", larger_is_better: bool = False) -> Lead | None:
    """Say how our mean compares with another, by the rule that `LEVEL` states; None if either is missing."""
    if ours is None or other is None or ours[field] is None or other[field] is None:
        return None
    spreads = [row[f"{field}_std"] for row in (ours, other) if row["source"] == "ledger" or row[f"{field}_std"]]
    if None in spreads:
        return "one seed"
    if abs(ours[field] - other[field]) <= max(spreads, default=0.0):
        return "level"
    return "ahead" if (ours[field] > other[field]) == larger_is_better else "behind"


def over(value: float | None, other: float | None) -> float | None:
    """Return the relative difference of a value from another, or None if either is missing."""
    return None if value is None or other is None else value / other - 1
