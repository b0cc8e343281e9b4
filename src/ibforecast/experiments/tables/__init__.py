"""One file per table of the paper: a pure function from the ledger's records to a sheet."""

from collections.abc import Callable

from ibforecast.experiments.ledger import Record
from ibforecast.experiments.sheet import Sheet
from ibforecast.experiments.tables import accuracy, configuration, datasets, large_channels, per_horizon

TABLES: dict[str, Callable[[list[Record]], Sheet]] = {
    "datasets": datasets.sheet,
    "configuration": configuration.sheet,
    "accuracy": accuracy.sheet,
    "per_horizon": per_horizon.sheet,
    "large_channels": large_channels.sheet,
}
