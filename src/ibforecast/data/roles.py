"""The roles of columns: channels to forecast, channels that are only read, and covariates known ahead."""

import warnings
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float64, Int64, Shaped

from ibforecast.core.errors import DataError
from ibforecast.core.zones import to_wall
from ibforecast.data.columns import NAMED_AT_MOST, describe_rows, text_of
from ibforecast.data.series import Series

MOST_TIMES = 100
"""A grid of steps to fill may have up to this number of steps for each row."""


def by_role(series: Series, past: tuple[str, ...], future: tuple[str, ...], filled: bool = False) -> Series:
    """Separate the columns: channels to forecast, then `past` channels, and `future` covariates.

    With covariates the series ends at the last row in which a channel is observed; covariates may continue beyond it.
    If the table was `filled`, covariates of rows that have no value at all are those of the row before, with a warning.
    """
    columns = series.channels
    targets = tuple(name for name in columns if name not in (*past, *future))
    if not targets:
        raise DataError(
            "a table must have a channel to forecast", f"{', '.join(map(repr, columns))}, past or future", "add one"
        )
    channels = (*targets, *past)
    values = series.values if channels == columns else _chosen(series, channels)
    separated = replace(series, values=values, channels=channels, past=len(past))
    if not future:
        return separated
    known = _chosen(series, future)
    if filled and (made := np.isnan(series.values).all(axis=1)).any():
        known = known[np.maximum.accumulate(np.where(made, 0, np.arange(len(made))))]  # the first row is never made
        _warn_of_made(made, future, series.clock.wall)
    rows, ahead = _end(values) or len(values), _end(known)
    _check_known(known[: max(rows, ahead)], future, np.arange(len(known)), series.clock.wall)
    clock = replace(series.clock, stamps=series.clock.stamps[:rows])
    return replace(separated, values=values[:rows], clock=clock, covariates=future, known=known[: max(rows, ahead)])


def _warn_of_made(made: Bool[np.ndarray, " row"], names: tuple[str, ...], wall: Shaped[np.ndarray, " row"]) -> None:
    listed, count = ", ".join(map(repr, names)), int(made.sum())
    rows = f"{count} {'row' if count == 1 else 'rows'} that irregular='fill' made, the first at"
    warnings.warn(
        f"a future covariate must have a value in every row ({rows} {text_of(wall[made][0])}, take {listed} from the "
        "row before); write such rows into the table to give others",
        stacklevel=5,
    )


def with_ahead(
    series: Series,
    moments: Shaped[np.ndarray, " row"],
    ahead: Float64[np.ndarray, "row covariate"],
    filled: bool = False,
) -> Series:
    """Return the series with other covariates beyond its last row; later moments must be its next steps.

    If tables are `filled`, a step between two of them may be left out: it takes the covariates of the one before.
    """
    assert series.known is not None
    clock = series.clock
    later = np.flatnonzero(moments > clock.stamps[-1])
    if filled and len(later):
        moments, ahead = _on_grid(series, moments[later], ahead[later])
        later = np.arange(len(moments))
    expected = clock.times(series.rows, len(later))
    wall = to_wall(moments, clock.zone)
    if not clock.by_row and len(off := np.flatnonzero(moments[later] != expected)):
        details = [
            f"{text_of(wall[later[at]])} where {text_of(to_wall(expected[at : at + 1], clock.zone)[0])} belongs"
            for at in off[:NAMED_AT_MOST]
        ]
        raise DataError(
            f"covariates known ahead must continue from the table's last row in steps of {clock.frequency.words}",
            describe_rows(later[off], details),
            "give a row for every step",
        )
    _check_known(ahead[later], series.covariates, later, wall)
    return replace(series, known=np.concatenate([series.known[: series.rows], ahead[later]]))


def _on_grid(
    series: Series, moments: Shaped[np.ndarray, " row"], ahead: Float64[np.ndarray, "row covariate"]
) -> tuple[Shaped[np.ndarray, " step"], Float64[np.ndarray, "step covariate"]]:
    """Return the covariates of all steps after a series up to the last moment, or as they are if one is no step.

    A step that is left out takes the covariates of the one before.
    """
    assert series.known is not None
    clock = series.clock
    ends = np.append(clock.stamps[-1], moments[-1])
    last, latest = to_wall(ends, clock.zone) if clock.frequency.by_date else ends
    steps = int(clock.frequency.count(last, np.array([latest]))[0])
    if not 0 < steps <= MOST_TIMES * len(moments):
        return moments, ahead
    grid = clock.times(series.rows, steps)
    if not np.isin(moments, grid).all() or len(np.unique(moments)) < len(moments):
        return moments, ahead
    if (made := ~np.isin(grid, moments)).any():
        _warn_of_made(made, series.covariates, to_wall(grid, clock.zone))
    before = np.concatenate([series.known[series.rows - 1 : series.rows], ahead])
    return grid, before[np.searchsorted(moments, grid, side="right")]


def known_in(series: Series, first: int, steps: int) -> Float64[np.ndarray, "steps covariate"] | None:
    """Return the covariates known ahead for the steps of one window; None if the series has none."""
    if series.known is None:
        return None
    known = series.known[first : first + steps]
    if len(known) < steps:
        missing, needed, clock = first + steps - len(series.known), first + steps - series.rows, series.clock
        until = clock.labels(first + steps - 1, 1)[0]
        names = ", ".join(map(repr, series.covariates))
        raise DataError(
            f"a forecast needs {names} up to its last step, {until}",
            f"no values for its last {'step' if missing == 1 else f'{missing} steps'}",
            f"give a table that continues to that step, or all {needed} rows after its end as another table, with "
            "future=… (--future FILE)",
        )
    return known


def known_at(
    series: Series, moments: Shaped[np.ndarray, " row"], values: Float64[np.ndarray, "row covariate"], steps: int
) -> Float64[np.ndarray, "steps covariate"]:
    """Return covariates of other rows at the times of the first `steps` steps of a series; refuse a missing one."""
    wanted = series.clock.times(0, steps)
    rows = np.searchsorted(moments, wanted).clip(max=len(moments) - 1)
    known = np.where((moments[rows] == wanted)[:, None], values[rows], np.nan)
    if (gaps := np.isnan(known)).any():
        step, column = np.argwhere(gaps)[0]
        labels = series.clock.labels(0, steps)
        raise DataError(
            f"a forecast needs {', '.join(map(repr, series.covariates))} from {labels[0]} to {labels[-1]}",
            f"no {series.covariates[column]!r} at {labels[step]}, gaps in {gaps.any(axis=1).sum()} of {steps} steps",
            "give a row for every step of look-back and horizon",
        )
    return known


def _chosen(series: Series, names: tuple[str, ...]) -> Float64[np.ndarray, "row column"]:
    """Return some columns, contiguous by row as in a table: the last bits of a sum depend on the memory order."""
    return np.ascontiguousarray(series.values[:, [series.channels.index(name) for name in names]])


def _end(values: Float64[np.ndarray, "row column"]) -> int:
    """Return the number of rows up to the last one with a value."""
    filled = np.flatnonzero(~np.isnan(values).all(axis=1))
    return int(filled[-1]) + 1 if len(filled) else 0


def _check_known(
    known: Float64[np.ndarray, "row covariate"],
    names: tuple[str, ...],
    rows: Int64[np.ndarray, " row"],
    wall: Shaped[np.ndarray, " any_row"],
) -> None:
    """Refuse gaps; `rows` are the row numbers for the error, and `wall` the times of all rows."""
    for name, column in zip(names, known.T, strict=True):
        if len(gaps := np.flatnonzero(np.isnan(column))):
            details = [f"none at {text_of(wall[rows[at]])}" for at in gaps[:NAMED_AT_MOST]]
            raise DataError(
                "a future covariate must have a value in every row",
                f"{describe_rows(rows[gaps], details)} in {name!r}",
                "fill them in, or name it as past",
            )
