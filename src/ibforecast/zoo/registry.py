"""Every forecaster by name: a literal table, so that nothing is found by searching."""

from typing import Any, NamedTuple

from ibforecast.core.contracts import Forecaster
from ibforecast.core.errors import UsageError
from ibforecast.model.config import ModelConfig
from ibforecast.model.network import IBForecast


class Entry(NamedTuple):
    """A forecaster's configuration and the network built from it."""

    config: type[Any]
    forecaster: type[Forecaster]


FORECASTERS: dict[str, Entry] = {
    "ibforecast": Entry(ModelConfig, IBForecast),
}


def entry(name: str) -> Entry:
    """Look a forecaster up by name."""
    if name not in FORECASTERS:
        raise UsageError(f"forecaster must be one of {', '.join(FORECASTERS)} (got {name!r}); correct the recipe")
    return FORECASTERS[name]
