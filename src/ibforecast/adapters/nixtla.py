"""Forecasts as the tidy tables of Nixtla's libraries: unique_id, ds, y and a column per model."""

import re
from functools import reduce
from typing import Any

import narwhals as nw

from ibforecast.core.errors import DataError

KEY, NAME = ["unique_id", "ds"], "IBForecast"
ENDS = re.compile(r"-(lo|hi)-[\d.]+$")
"""How the column of an interval's end is told from that of a forecast."""


def with_truth(forecast: Any, table: Any, *, time: str | None = None, id: str = "unique_id", target: str = "y") -> Any:
    """Join a forecast with the observed values, as one long table that utilsforecast's `evaluate` takes as it is.

    `forecast` is what `predict` gave, wide or long, and `table` holds what followed, laid out like it and of its kind.
    `time`, `id` and `target` are the names in them; in what comes out they are ds, unique_id and y, and the forecast
    and the ends of its intervals are called IBForecast, IBForecast-lo-80 and so on. Steps without truth are left out.
    """
    told, known = (nw.from_native(some, eager_only=True) for some in (forecast, table))
    told = told.drop("open_rate", strict=False)
    long = id in told.columns
    moment = time or told.columns[1 if long else 0]
    needed = [id, moment, target] if long else [name for name in told.columns if not ENDS.search(name)]
    if absent := [name for name in needed if name not in known.columns]:
        raise DataError(
            "the table must hold what followed, laid out like the forecast", f"one without {absent}", "give both"
        )
    if long:
        told = told.rename({id: KEY[0], moment: KEY[1]})
        known = known.select(needed).rename({id: KEY[0], moment: KEY[1], target: "y"})
    else:
        channels = [name for name in needed if name != moment]
        ends = [end[0] for name in told.columns if name.startswith(f"{channels[0]}-") and (end := ENDS.search(name))]
        told = reduce(_joined, (_tall(told, moment, channels, end, f"{NAME}{end}") for end in ("", *ends)))
        known = _tall(known, moment, channels, "", "y")
    both = _joined(told, known)
    return both.filter(~nw.col("y").is_null() & (nw.col("y") == nw.col("y"))).to_native()


def _tall(table: nw.DataFrame[Any], time: str, channels: list[str], end: str, name: str) -> nw.DataFrame[Any]:
    """One row per channel and moment of a wide table, with what stands in the columns that end so."""
    chosen = table.select(time, *(nw.col(f"{channel}{end}").alias(channel) for channel in channels))
    tall = chosen.unpivot(channels, index=time, variable_name=KEY[0], value_name=name)
    return tall.rename({time: KEY[1]}).select(*KEY, name)


def _joined(one: nw.DataFrame[Any], other: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    return one.join(other, on=KEY, how="inner")
