"""ibforecast predict: from a model and a table to a forecast."""

from pathlib import Path

import click

from ibforecast.cli.shared import announce, at_option, budget_option, deliver, json_option


@click.command("predict")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("table")
@at_option
@budget_option
@click.option(
    "--out", type=click.Path(path_type=Path), help="A .csv, .csv.gz or .parquet file; default: CSV on stdout."
)
@json_option
def command(model: Path, table: str, at: str | None, budget: float | None, out: Path | None, as_json: bool) -> None:
    """Forecast what follows TABLE with MODEL, in the table's units.

    \b
    ibforecast predict model load.csv --out forecast.csv
    ibforecast predict model load.csv --at '2023-11-05 10:00' --json
    """
    import narwhals as nw

    from ibforecast.data.tables import write
    from ibforecast.forecaster import IBForecaster

    forecast = IBForecaster.load(model).predict(table, at, budget=budget)
    if out:
        write(forecast, out)
        announce(f"forecast written to {out}")
    columns = nw.from_native(forecast, eager_only=True)
    rows = [{name: _plain(value) for name, value in row.items()} for row in columns.iter_rows(named=True)]
    text = str(out) if out else columns.write_csv().rstrip()
    deliver({"model": str(model), "out": str(out) if out else None, "forecast": rows}, text, as_json)


def _plain(value: object) -> object:
    return value.isoformat(sep=" ") if hasattr(value, "isoformat") else value
