"""ibforecast datasets: the benchmark data sets and their files."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ibforecast.cli.shared import announce, deliver, json_option

if TYPE_CHECKING:
    from ibforecast_lab.data.catalogue import DataSet


@click.command("datasets")
@click.option("--download", metavar="NAME", multiple=True, help="Fetch a data set into the cache, checksum checked.")
@click.option("--path", metavar="NAME", help="Print only the path of the file of this data set.")
@json_option
def command(download: tuple[str, ...], path: str | None, as_json: bool) -> None:
    """List the benchmark data sets and their files, which are searched in IBFORECAST_DATA, then in the cache.

    \b
    ibforecast datasets
    ibforecast datasets --download ETTh1
    ibforecast fit "$(ibforecast datasets --path ETTh1)" --horizon 96 --out model
    """
    from ibforecast_lab.data import catalogue

    for name in download:
        announce(f"{name} is at {catalogue.download(name)}")
    if path is not None:
        file = str(catalogue.locate(path))
        deliver({"name": catalogue.lookup(path).name, "path": file}, file, as_json)
        return
    rows = [_row(dataset, catalogue.find(dataset.name)) for dataset in catalogue.CATALOGUE.values()]
    cells = [_COLUMNS, *([str(row[key] or "not on this machine") for key in _COLUMNS] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    deliver(rows, "\n".join(lines), as_json)


_COLUMNS = ("name", "channels", "rows", "frequency", "cycle", "path")


def _row(dataset: "DataSet", path: Path | None) -> dict[str, Any]:
    return vars(dataset) | {"path": str(path) if path else None}
