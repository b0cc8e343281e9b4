"""Opening what a user names as a table: a path, a table in memory, or a data set of the catalogue."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from ibforecast.data import catalogue, tables
from ibforecast.data.catalogue import DataSet
from ibforecast.data.sources import files_become
from ibforecast.data.tables import Layout, Table

CATALOGUE_TIME = "date"
"""The time column of a data set of the catalogue."""


def catalogued(table: Any) -> DataSet | None:
    """Return the data set of the catalogue with this name, in any case; None for a table or a file."""
    named = isinstance(table, str) and table.lower() in {name.lower() for name in catalogue.CATALOGUE}
    return catalogue.lookup(table) if named and not Path(table).exists() else None


def open_table(table: Any, layout: Layout, fitted: bool = False) -> tuple[Table, DataSet | None]:
    """Read a table, or a data set by its name, which is read by row number unless the layout says otherwise.

    `fitted` says that the layout is that of a training table: a data set is then read as that table was.
    """
    facts = catalogued(table)
    if facts is None:
        return tables.read(table, layout), None
    series = catalogue.load(facts.name)
    columns = {CATALOGUE_TIME: series.clock.stamps} | dict(zip(series.channels, series.values.T, strict=True))
    source = tables.read(
        pa.table(columns),
        replace(
            layout,
            time=CATALOGUE_TIME if fitted else layout.time or CATALOGUE_TIME,
            shape="wide",
            frequency=layout.frequency or facts.frequency,
            irregular=layout.irregular if fitted or layout.irregular != "error" else "by_row",
        ),
        warn=False,  # the protocol reads the marks of a benchmark as numbers
    )
    return replace(source, kind=files_become()), facts
