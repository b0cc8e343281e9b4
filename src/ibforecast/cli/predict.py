"""ibforecast predict: a forecast from a model and a table."""

from datetime import date, datetime
from pathlib import Path
from typing import Any

import click

from ibforecast.cli.shared import (
    Command,
    announce,
    at_option,
    budget_option,
    check_file,
    deliver,
    future_option,
    json_option,
    load_model,
)


def level_options(command: Command) -> Command:
    """Add --level and --adaptive."""
    adaptive = click.option(
        "--adaptive", is_flag=True, help="Adapt intervals to the errors of earlier forecasts of the table."
    )
    level = click.option(
        "--level", type=float, multiple=True, help="An interval of this level in percent, e.g. 80; may be repeated."
    )
    return level(adaptive(command))


def out_option(command: Command) -> Command:
    """Add --out."""
    return click.option(
        "--out", type=click.Path(path_type=Path), help="A .csv, .csv.gz or .parquet file; default: CSV on stdout."
    )(command)


@click.command("predict")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("table")
@at_option
@budget_option
@future_option
@level_options
@out_option
@json_option
def command(
    model: Path,
    table: str,
    at: str | None,
    budget: float | None,
    future: str | None,
    level: tuple[float, ...],
    adaptive: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Forecast the steps after TABLE with MODEL, in the table's units.

    \b
    ibforecast predict model load.csv --out forecast.csv
    ibforecast predict model load.csv --level 80 --level 95
    ibforecast predict model load.csv --at '2023-11-05 10:00' --json
    """
    from ibforecast.data.sources import check_suffix

    if out:
        check_suffix(out)
        check_file(out)
    forecast = load_model(model, table).predict(
        table, at, budget=budget, level=level or None, adaptive=adaptive, future=future
    )
    deliver_table({"model": str(model)}, "forecast", forecast, out, as_json)


def deliver_table(document: dict[str, Any], name: str, table: Any, out: Path | None, as_json: bool) -> None:
    """Write a table to a file, if there is one, and as CSV or in a JSON document to stdout."""
    import narwhals as nw

    from ibforecast.data.tables import write

    if out:
        write(table, out)
        announce(f"{name} written to {out}")
    columns = nw.from_native(table, eager_only=True)
    if as_json:
        rows = [{column: _plain(value) for column, value in row.items()} for row in columns.iter_rows(named=True)]
        deliver({**document, "out": str(out) if out else None, name: rows}, "", as_json)
    else:
        deliver(document, str(out) if out else columns.write_csv().rstrip(), as_json)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, date) else value
