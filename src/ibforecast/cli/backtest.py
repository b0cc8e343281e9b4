"""ibforecast backtest: forecasts from past moments, with the values that followed."""

from pathlib import Path

import click

from ibforecast.cli.predict import deliver_table, level_options, out_option
from ibforecast.cli.shared import check_file, device_option, json_option, load_model


@click.command("backtest")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("table")
@click.option("--windows", type=int, default=1, show_default=True, help="Number of moments to forecast from.")
@click.option("--step", type=int, help="Rows between two moments; default: one horizon.")
@click.option(
    "--refit",
    type=int,
    is_flag=False,
    flag_value=1,
    default=0,
    help="Fit again before every forecast, or before every N-th; default: use the model as it is.",
)
@level_options
@device_option
@out_option
@json_option
def command(
    model: Path,
    table: str,
    windows: int,
    step: int | None,
    refit: int,
    level: tuple[float, ...],
    adaptive: bool,
    device: str,
    out: Path | None,
    as_json: bool,
) -> None:
    """Forecast with MODEL from past moments of TABLE: one row per channel, cutoff and step, with the true value.

    \b
    ibforecast backtest model load.csv --windows 30 --step 24 --out backtest.csv
    ibforecast backtest model load.csv --windows 30 --level 80 --level 95 --adaptive
    ibforecast backtest model load.csv --windows 4 --refit --json
    """
    from ibforecast.data.sources import check_suffix

    if out:
        check_suffix(out)
        check_file(out)
    forecasts = load_model(model, table, device).cross_validation(
        table, windows, step, refit, level or None, adaptive=adaptive
    )
    deliver_table({"model": str(model)}, "backtest", forecasts, out, as_json)
