"""Forecasts as the long tables of Nixtla's libraries: unique_id, ds, y and a column per model."""

import re
from functools import reduce
from typing import Any

import narwhals as nw

from ibforecast.core.errors import DataError

KEY, NAME = ["unique_id", "ds"], "IBForecast"
ENDS = re.compile(r"-(lo|hi)-[\d.]+$")
"""The end of the name of a column with a bound of an interval."""


def with_truth(forecast: Any, table: Any, *, time: str | None = None, id: str = "unique_id", target: str = "y") -> Any:
    """Join a forecast with the observed values in one long table, ready for utilsforecast's `evaluate`.

    `forecast` is the result of `predict`, wide or long; `table` contains the values that followed, in the same layout
    and of the same library. `time`, `id` and `target` are the names of their columns. In the result these are called
    ds, unique_id and y; the forecast and the bounds of its intervals are called IBForecast, IBForecast-lo-80 and so on.
    Steps without an observed value are left out.
    """
    predicted, known = (nw.from_native(one, eager_only=True) for one in (forecast, table))
    predicted = predicted.drop("open_rate", strict=False)
    long = id in predicted.columns
    moment = time or predicted.columns[1 if long else 0]
    needed = [id, moment, target] if long else [name for name in predicted.columns if not ENDS.search(name)]
    if absent := [name for name in needed if name not in known.columns]:
        raise DataError(
            "the table must contain the values that followed, in the layout of the forecast",
            f"one without {absent}",
            "pass both in one layout",
        )
    if long:
        predicted = predicted.rename({id: KEY[0], moment: KEY[1]})
        known = known.select(needed).rename({id: KEY[0], moment: KEY[1], target: "y"})
    else:
        channels = [name for name in needed if name != moment]
        ends = [
            end[0] for name in predicted.columns if name.startswith(f"{channels[0]}-") and (end := ENDS.search(name))
        ]
        predicted = reduce(_joined, (_tall(predicted, moment, channels, end, f"{NAME}{end}") for end in ("", *ends)))
        known = _tall(known, moment, channels, "", "y")
    both = _joined(predicted, known)
    # A missing value is null in polars and NaN in pandas; NaN differs from itself.
    return both.filter(~nw.col("y").is_null() & (nw.col("y") == nw.col("y"))).to_native()


def _tall(table: nw.DataFrame[Any], time: str, channels: list[str], end: str, name: str) -> nw.DataFrame[Any]:
    """Return one row per channel and moment of a wide table, with the values of the columns named channel and `end`."""
    chosen = table.select(time, *(nw.col(f"{channel}{end}").alias(channel) for channel in channels))
    tall = chosen.unpivot(channels, index=time, variable_name=KEY[0], value_name=name)
    return tall.rename({time: KEY[1]}).select(*KEY, name)


def _joined(one: nw.DataFrame[Any], other: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    return one.join(other, on=KEY, how="inner")
