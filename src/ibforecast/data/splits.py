"""The borders of the training, validation and test parts, by row number."""

from dataclasses import dataclass
from typing import Literal

from ibforecast.core.errors import DataError, UsageError

Part = Literal["train", "validation", "test"]


@dataclass(frozen=True)
class Split:
    """Row numbers at which the training, validation and test parts end."""

    train_end: int
    validation_end: int
    test_end: int

    @classmethod
    def by_fractions(cls, fractions: tuple[float, float, float], rows: int) -> "Split":
        """Return the split into fractions of the rows, in order of time."""
        if len(fractions) != 3 or not (
            min(fractions[:2]) > 0 and fractions[2] >= 0 and abs(sum(fractions) - 1) <= 1e-9
        ):
            raise UsageError(
                "split must be three fractions that add up to 1, the first two positive",
                fractions,
                "try (0.7, 0.1, 0.2)",
            )
        # A product may fall just below a whole number: 0.29 * 100 is 28.999999999999996.
        train_end = int(rows * fractions[0] + 1e-9)
        test_rows = int(rows * fractions[2] + 1e-9)
        return cls(train_end, rows - test_rows, rows)

    @property
    def fractions(self) -> tuple[float, float, float]:
        """The fraction of each part; `by_fractions` with the same number of rows gives the same split."""
        training, before_test, rows = self.train_end, self.validation_end, self.test_end
        return training / rows, (before_test - training) / rows, (rows - before_test) / rows

    def rows(self, part: Part, look_back: int) -> range:
        """Return the rows of a part's windows; the look-back of later parts reaches into the previous part."""
        starts = {
            "train": 0,
            "validation": self.train_end - look_back,
            "test": self.validation_end - look_back,
        }
        ends = {"train": self.train_end, "validation": self.validation_end, "test": self.test_end}
        return range(max(starts[part], 0), ends[part])

    def starts(self, part: Part, look_back: int, horizon: int) -> range:
        """Return the first rows of all windows of a part, one row apart."""
        rows = self.rows(part, look_back)
        starts = range(rows.start, rows.stop - look_back - horizon + 1)
        if not starts:
            raise DataError(
                f"the {part} part must contain at least one window of look_back + horizon = {look_back + horizon} rows",
                f"{len(rows)} rows",
                (
                    f"give a longer table (its parts have {self.test_end} rows in all), a shorter look_back (fit "
                    "--look-back) or horizon, or another split"
                ),
            )
        return starts
