"""The drivers of each channel: amounts of receipts, averaged over many windows of a table, or over groups of them."""

from ibforecast.drivers.groups import NAMES, By, chosen_starts
from ibforecast.drivers.measuring import WINDOWS, drivers, drivers_of
from ibforecast.drivers.results import LINES, Driver, Drivers, Group, Grouped, Moves, Source, source_in_words

__all__ = [
    "LINES",
    "NAMES",
    "WINDOWS",
    "By",
    "Driver",
    "Drivers",
    "Group",
    "Grouped",
    "Moves",
    "Source",
    "chosen_starts",
    "drivers",
    "drivers_of",
    "source_in_words",
]
