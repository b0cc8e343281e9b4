"""ibforecast compare: why a forecast differs from an earlier one."""

from pathlib import Path
from shlex import quote
from typing import Literal

import click

from ibforecast.cli.shared import (
    at_option,
    budget_option,
    deliver,
    future_option,
    json_option,
    load_model,
    step_option,
)
from ibforecast.core.errors import UsageError


@click.command("compare")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("table")
@at_option
@click.option(
    "--with",
    "earlier",
    help="The last moment read by the forecast to compare with; default: a day before, or the step before if steps are "
    "longer.",
)
@click.option("--channel", help="The channel to compare; needed if more than one is forecast.")
@step_option
@budget_option
@future_option
@json_option
def command(
    model: Path,
    table: str,
    at: str | None,
    earlier: str | None,
    channel: str | None,
    step: int | Literal["mean"],
    budget: float | None,
    future: str | None,
    as_json: bool,
) -> None:
    """Say why the forecast of MODEL made at one moment of TABLE is higher or lower than one made at another.

    The changes add up to the difference of the two forecasts, to the last digit. --json prints every change.

    \b
    ibforecast compare model load.csv --channel load
    ibforecast compare model load.csv --at '2018-01-06 10:00' --with '2018-01-05 10:00' --channel load
    ibforecast compare model load.csv --with '2018-01-05 10:00' --channel load --step 1 --json
    """
    from ibforecast.core.comparison import compare

    forecaster = load_model(model, table)
    source = forecaster.open(table, future)
    later = forecaster.explain(source, at, budget=budget)
    if earlier is None:
        other = forecaster.desk.explain_before(source, at, budget)
    else:
        other = forecaster.explain(source, earlier, budget=budget)
    if (later.at, later.clock.row) == (other.at, other.clock.row):
        raise UsageError("a comparison is of two moments", f"{later.at} twice", "give an earlier one (--with)")
    forecast = [name for name in later.channels if name not in later.past]
    if channel is None and len(forecast) > 1:
        raise UsageError(
            "a comparison is of one channel",
            f"{len(forecast)} channels that are forecast",
            f"try --channel {quote(forecast[0])}",
        )
    comparison = compare(later, other, channel or forecast[0], step)
    deliver(comparison, comparison.in_words(), as_json)
