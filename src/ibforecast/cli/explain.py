"""ibforecast explain: a forecast, and what it is made of."""

from pathlib import Path
from typing import Literal

import click

from ibforecast.cli.shared import (
    announce,
    at_option,
    budget_option,
    check_file,
    deliver,
    future_option,
    json_option,
    load_model,
    step_option,
)
from ibforecast.core.errors import UsageError
from ibforecast.core.files import write_atomically


@click.command("explain")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("table")
@at_option
@budget_option
@future_option
@click.option("--channel", help="Say what the forecast of this channel is made of; default: all, in one line each.")
@step_option
@click.option("--out", type=click.Path(path_type=Path), help="Write the explanation to this .json file.")
@click.option("--plot", type=click.Path(path_type=Path), multiple=True, help="Draw it as .png, .svg or .html.")
@click.option("--tokens", type=click.Path(path_type=Path), help="Write one row per token as .csv, .csv.gz or .parquet.")
@click.option(
    "--known",
    type=click.Path(path_type=Path),
    help="Write the covariates known ahead, and their effects, one row each.",
)
@click.option(
    "--spreadsheet",
    type=click.Path(path_type=Path),
    help="Write the forecast of an additive model as formulas, to this .xlsx file.",
)
@json_option
def command(
    model: Path,
    table: str,
    at: str | None,
    budget: float | None,
    future: str | None,
    channel: str | None,
    step: int | Literal["mean"],
    out: Path | None,
    plot: tuple[Path, ...],
    tokens: Path | None,
    known: Path | None,
    spreadsheet: Path | None,
    as_json: bool,
) -> None:
    """Forecast the steps after TABLE with MODEL, and say what the forecast is made of, in amounts that add up.

    The document of --out and --json contains these receipts. --channel and --step also choose what --plot and
    --spreadsheet are about.

    \b
    ibforecast explain model load.csv --out why.json --plot why.png
    ibforecast explain model load.csv --channel load --step 6 --plot why.png
    ibforecast explain additive load.csv --channel load --spreadsheet why.xlsx
    ibforecast explain model load.csv --at '2023-11-05 10:00' --plot why.html --tokens why.csv
    """
    import json

    from ibforecast.adapters import spreadsheet as formulas
    from ibforecast.data.sources import check_suffix
    from ibforecast.data.tables import write
    from ibforecast.plots.explanation import check_suffix as check_figure

    for path in plot:
        check_figure(path)
    if spreadsheet:
        formulas.check_file(spreadsheet)
    for path in filter(None, (tokens, known)):
        check_suffix(path)
    check_file(*filter(None, (out, *plot, tokens, known, spreadsheet)))
    forecaster = load_model(model, table)
    if spreadsheet:
        formulas.check_model(forecaster.fitted)
    if known and not forecaster.fitted.layout.future:
        raise UsageError("--known needs a model with future covariates", "a model without them", "drop --known")
    explanation = forecaster.explain(table, at, budget=budget, future=future)
    channels = None if channel is None else [channel]
    explanation = explanation.with_receipts(channels, step)
    document = explanation.to_json()
    if out:
        write_atomically(out, document.encode())
        announce(f"explanation written to {out}")
    for path in plot:
        explanation.plot(path, channel, step)
        announce(f"picture drawn at {path}")
    if tokens:
        write(explanation.to_table(), tokens)
        announce(f"tokens written to {tokens}")
    if known:
        write(explanation.known_to_table(), known)
        announce(f"what was known ahead written to {known}")
    if spreadsheet:
        explanation.to_spreadsheet(spreadsheet, channels, None if step == "mean" else [step])
        announce(f"spreadsheet written to {spreadsheet}")
    deliver(json.loads(document), explanation.in_words(channel, step), as_json)
