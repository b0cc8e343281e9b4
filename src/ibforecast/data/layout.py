"""The layout of a table: which columns are read, and as what."""

from dataclasses import dataclass
from math import isfinite
from typing import Literal, get_args

from ibforecast.core.errors import UsageError, require_choice

Shape = Literal["auto", "wide", "long"]
Irregular = Literal["error", "by_row", "fill"]
Dates = Literal["auto", "dayfirst", "monthfirst", "s", "ms", "us", "ns", "excel", "digits"]


@dataclass(frozen=True)
class Layout:
    """How to read a table; `read` detects what is None or "auto", and fills it in.

    Wide tables have a time column and one column per channel; long ones have `id`, a time column and `target`. The
    channels in `past` are read and not forecast; the columns (or ids) in `future` are covariates known ahead, which may
    continue where the channels end.
    """

    time: str | None = None
    channels: tuple[str, ...] | None = None
    id: str = "unique_id"
    target: str = "y"
    shape: Shape = "auto"
    frequency: str | None = None
    zone: str | None = None
    irregular: Irregular = "error"
    missing_values: tuple[float, ...] = ()
    missing_texts: tuple[str, ...] = ()
    """Cells of text, such as "-", that mean a missing value."""

    past: tuple[str, ...] = ()
    future: tuple[str, ...] = ()
    dates: Dates = "auto"
    zero_at: tuple[str, ...] = ()
    """Times of the day, as "22:00..05:30", at which a missing value of a channel is read as 0."""

    numbered: bool = False
    """Whether its times are numbers of rows, given as whole seconds since a Monday at midnight."""

    def __post_init__(self) -> None:
        require_choice("shape", self.shape, get_args(Shape))
        require_choice("irregular", self.irregular, get_args(Irregular))
        require_choice("dates", self.dates, get_args(Dates))
        if odd := [number for number in self.missing_values if not isfinite(number)]:
            raise UsageError(
                "missing_values must be finite numbers", odd[0], "leave it out: empty cells and NaN are always missing"
            )
        if self.zero_at:
            from ibforecast.core.hours import minutes_of  # it needs numpy, and --help does not

            for span in self.zero_at:
                minutes_of(span)  # refuses another spelling
        named = (*self.past, *self.future)
        if len(set(named)) < len(named) or set(self.future) & set(self.channels or ()):
            raise UsageError(
                "a column must have one role: channel, past or future",
                f"past={self.past}, future={self.future}",
                "name each once",
            )
        if self.channels is not None and (not self.channels or len(set(self.channels)) < len(self.channels)):
            raise UsageError("channels must be one or more different names", self.channels, "name each once")
