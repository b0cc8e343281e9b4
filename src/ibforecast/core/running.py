"""Running a model on the rows of a table, in any runtime: the values it reads, the rows it refuses, its forecast."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64

from ibforecast.core.calendar import Clock
from ibforecast.core.errors import DataError, require
from ibforecast.core.explanation import Explanation
from ibforecast.core.facts import ModelFacts
from ibforecast.core.standardiser import too_large
from ibforecast.core.verification import Engine, Original

Cells = Bool[np.ndarray, "look_back channel"]
"""Which values of a window a model may read: those of the mask of a sealed model, and all for any other."""


@dataclass(frozen=True)
class Cell:
    """A value that a sealed model reads: its channel, how many steps before the newest it is, and its time."""

    channel: str
    steps_back: int
    time: str | None


def reads(facts: ModelFacts, cells: Cells, at: Any = None) -> list[Cell]:
    """Return the values that a sealed model reads for a forecast made at a moment, oldest first.

    Without a moment their times are None.
    """
    _require_sealed(facts)
    return listed(facts, cells, None if at is None else window_at(facts, at))


def window_at(facts: ModelFacts, at: Any) -> Clock:
    """Return the times of look-back and horizon of a forecast that a sealed model makes at a moment."""
    _require_sealed(facts)
    require(
        facts.even or not facts.by_row,
        "times of a table that is read by row are known only in the table",
        f"at={at!r}",
        "list the cells without a moment, and forecast from a table",
    )
    origin = facts.clock(np.array([facts.origin], dtype="datetime64[us]"))
    return origin.ending_at(at, facts.look_back).window(0, facts.steps)


def listed(facts: ModelFacts, cells: Cells, clock: Clock | None) -> list[Cell]:
    """Return cells of a window with their times by its clock, oldest first."""
    times = (None,) * facts.look_back if clock is None else clock.labels(0, facts.look_back)
    return [
        Cell(facts.channels[column], facts.look_back - 1 - step, times[step])
        for step, column in np.argwhere(cells).tolist()
    ]


def _require_sealed(facts: ModelFacts) -> None:
    require(
        facts.sealed,
        "only a sealed model reads places that are known before it reads",
        "a model that looks at the whole window",
        "fit with sealed=True",
    )


def require_readable(
    facts: ModelFacts, cells: Cells, history: Float64[np.ndarray, "look_back channel"], clock: Clock
) -> None:
    """Refuse a window in which a value that may be read is too large, or a channel has no value where it is read.

    `clock` is that of the window.
    """
    _require_near(cells & facts.units.too_far(history), history, facts.channels, clock)
    read = cells & ~np.isnan(history)
    if facts.sealed:  # it reads no part of a token: one with a missing step stays closed
        read = read.reshape(-1, facts.patch_len, len(facts.channels)).all(axis=1)
    silent = cells.any(axis=0) & ~read.any(axis=0)
    if silent.any():
        raise DataError(
            "every channel must be observed at least once in the window"
            + (", where it is read" if facts.sealed else ""),
            f"nothing in {facts.channels[int(silent.argmax())]!r} from {clock.labels(0, 1)[0]} to "
            f"{clock.labels(facts.look_back - 1, 1)[0]}",
            "choose another moment or leave the channel out",
        )


def _require_near(
    far: Bool[np.ndarray, "step column"],
    values: Float64[np.ndarray, "step column"],
    names: tuple[str, ...],
    clock: Clock,
) -> None:
    """Refuse values that are too far from those of training; the error names the first."""
    for step, column in np.argwhere(far).tolist():
        raise too_large(values[step, column], f"in {names[column]!r} at {clock.labels(step, 1)[0]}")


def computed(engine: Engine, rows: Original) -> tuple[Explanation[np.ndarray], Float64[np.ndarray, "horizon channel"]]:
    """Run a model on a window; return its explanation and what it computed, in the table's units and before any limits.

    Values that are read must be of a size for which single precision gives a forecast.
    """
    facts = engine.facts
    explanation, values = engine.run(*entering(facts, rows))
    require_numbers(facts, rows, values)
    return explanation, values


def entering(
    facts: ModelFacts, rows: Original
) -> tuple[
    Float64[np.ndarray, "look_back channel"], Int64[np.ndarray, " steps"], Float64[np.ndarray, "steps covariate"] | None
]:
    """Return what a model computes a window from, (history, phase, known); refuse covariates that are too large."""
    if rows.known is not None and facts.known_units is not None:
        _require_near(facts.known_units.too_far(rows.known), rows.known, facts.covariates, rows.clock)
    return rows.history, rows.clock.phase(0, facts.steps, facts.period), rows.known


def require_numbers(facts: ModelFacts, rows: Original, values: Float64[np.ndarray, "horizon channel"]) -> None:
    """Refuse a window from which a model did not compute numbers."""
    if not np.isfinite(values[:, : len(facts.channels) - len(facts.past)]).all():
        raise DataError(
            "values must be of a size the model can compute with",
            f"no number after {rows.clock.labels(facts.look_back - 1, 1)[0]}",
            "give them in the units of training",
        )
