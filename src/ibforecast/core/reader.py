"""Reading a window value by value, from a source that is slow, metered or remote."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float64

from ibforecast.core import running
from ibforecast.core.calendar import Clock
from ibforecast.core.errors import DataError, require
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.host import Host
from ibforecast.core.hours import covered
from ibforecast.core.running import Cell, Cells
from ibforecast.core.verification import Engine, Original


class Reader:
    """The window of one forecast of a sealed model, which is read value by value.

    `asks` are the cells that still need an answer, and `answer` takes their values. When none is left, `predict` and
    `explain` give the results of a table in which every other cell is empty. The forecast is that of the full table,
    bit for bit.

        while reader.asks:
            reader.answer({cell: fetch(cell) for cell in reader.asks})

    All cells are requested at once today. The loop is also right for a model that requests more after the first
    answers.
    """

    def __init__(
        self,
        engine: Engine,
        cells: Cells,
        clock: Clock,
        known: Float64[np.ndarray, "steps covariate"] | None = None,
        host: Host | None = None,
        deliver: Callable[[Float64[np.ndarray, "horizon channel"]], Any] = lambda forecast: forecast,
    ) -> None:
        """Start with no answers; `clock` and `known` span look-back and horizon, `deliver` makes what is returned."""
        facts = engine.facts
        self._engine, self._cells, self._host, self._deliver = engine, cells, host, deliver
        self._rows = Original(clock, np.full((facts.look_back, len(facts.channels)), np.nan), None, known)
        places = map(tuple, np.argwhere(cells).tolist())
        self._places: dict[Cell, tuple[int, ...]] = dict(zip(running.listed(facts, cells, clock), places, strict=True))
        self._open = dict(self._places)

    @property
    def asks(self) -> tuple[Cell, ...]:
        """The cells that still need an answer, oldest first; empty if a forecast can be made."""
        return tuple(self._open)

    def answer(self, values: Mapping[Cell, Any]) -> None:
        """Take the values of some cells; None or NaN says that there is none, and the cell stays closed.

        If one of the values is refused, none is taken.
        """
        numbers = {cell: self._number(cell, value) for cell, value in values.items()}
        for cell, number in numbers.items():
            self._rows.history[self._open.pop(cell)] = number

    def predict(self) -> Any:
        """Return the forecast, as the model's own `predict` returns it."""
        _, computed = running.computed(self._engine, self._answered())
        return self._deliver(self._engine.facts.limited(computed))

    def explain(self) -> ExplainedForecast:
        """Return the forecast with its explanation, whose history is NaN in every cell that was not read."""
        rows = self._answered()
        explanation, computed = running.computed(self._engine, rows)
        return ExplainedForecast.of(
            self._engine.facts, explanation, computed, rows.history, rows.clock, known=rows.known, host=self._host
        )

    def __repr__(self) -> str:
        last = self._engine.facts.look_back - 1
        answered = len(self._places) - len(self._open)
        return f"Reader(at={self._rows.clock.labels(last, 1)[0]!r}; {answered} of {len(self._places)} cells answered)"

    def _number(self, cell: Cell, value: Any) -> float:
        """Return a value as a table would read it; refuse an invalid value, and a cell that needs no answer."""
        require(cell in self._places, "only a cell that is read can be answered", cell, "answer the cells in asks")
        require(cell in self._open, "a cell must be answered once", cell, "make another reader for other values")
        try:
            if isinstance(value, str | bytes):  # float would read a text
                raise TypeError
            number = np.nan if value is None else float(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(
                "a value must be a number", f"{value!r} for {cell}", "convert it, or answer None if it is missing"
            ) from error
        if np.isinf(number):
            raise DataError("values must be finite", f"{number} for {cell}", "correct it, or answer None")
        facts, step = self._engine.facts, self._places[cell][0]
        if number == number and number not in facts.missing_values:
            return number
        return 0.0 if covered(facts.zero_at, self._rows.clock.wall[step : step + 1])[0] else np.nan

    def _answered(self) -> Original:
        """Return the rows of the window; refuse one with open cells, or with a channel that has no value."""
        require(
            not self._open,
            "a forecast needs an answer for every cell that is read",
            f"none for {len(self._open)} of {len(self._places)}, such as {next(iter(self._open), None)}",
            "answer the cells in asks, with None for a missing value",
        )
        running.require_readable(self._engine.facts, self._cells, self._rows.history, self._rows.clock)
        return self._rows
