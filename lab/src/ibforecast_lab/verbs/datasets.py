"""ibforecast datasets: the benchmark data sets, and where they are."""

from typing import Any

import click

from ibforecast.cli.shared import announce, deliver, json_option
from ibforecast_lab.data import catalogue


@click.command("datasets")
@click.option("--download", metavar="NAME", multiple=True, help="Fetch a data set into the cache, checksum checked.")
@json_option
def command(download: tuple[str, ...], as_json: bool) -> None:
    """List the benchmark data sets: looked for in IBFORECAST_DATA, then in the cache; fetched only when asked.

    \b
    ibforecast datasets
    ibforecast datasets --download ETTh1
    """
    for name in download:
        announce(f"{name} is at {catalogue.download(name)}")
    rows = [_row(dataset) for dataset in catalogue.CATALOGUE.values()]
    widths = {key: max(len(key), *(len(str(row[key])) for row in rows)) for key in _SHOWN}
    lines = ["  ".join(key.ljust(widths[key]) for key in _SHOWN)]
    lines += ["  ".join(str(row[key]).ljust(widths[key]) for key in _SHOWN).rstrip() for row in rows]
    deliver(rows, "\n".join(lines), as_json)


_SHOWN = ("name", "channels", "rows", "frequency", "cycle", "found")


def _row(dataset: catalogue.DataSet) -> dict[str, Any]:
    path = catalogue.find(dataset.name)
    return vars(dataset) | {"found": str(path) if path else "no"}
