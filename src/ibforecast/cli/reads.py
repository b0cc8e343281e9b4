"""ibforecast reads: the values that a sealed model needs for a forecast, before they are fetched."""

from pathlib import Path

import click

from ibforecast.cli.predict import deliver_table, out_option
from ibforecast.cli.shared import budget_option, check_file, json_option


@click.command("reads")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--at", help="The newest moment of the window, which gives each value its time; default: no times.")
@budget_option
@out_option
@json_option
def command(model: Path, at: str | None, budget: float | None, out: Path | None, as_json: bool) -> None:
    """List the values that the sealed MODEL reads: channel, steps before the newest, and time.

    A forecast from a table in which every other cell is empty is the same, bit for bit.

    \b
    ibforecast reads model --at '2023-11-05 10:00'
    ibforecast reads model --at '2023-11-05 10:00' --out wanted.csv
    """
    from ibforecast.data.sources import check_suffix
    from ibforecast.forecaster import IBForecaster

    if out:
        check_suffix(out)
        check_file(out)
    cells = IBForecaster.load(model).reads(at, budget=budget)
    deliver_table({"model": str(model)}, "reads", cells, out, as_json)
