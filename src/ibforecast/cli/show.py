"""ibforecast show: a table of the paper, from the ledger alone."""

from pathlib import Path

import click

from ibforecast.cli.shared import ledger_option


@click.command("show")
@click.argument("label")
@click.option("--format", "form", type=click.Choice(["md", "csv", "tex", "json"]), default="md", show_default=True)
@ledger_option
def command(label: str, form: str, ledger: Path) -> None:
    """Print the table of LABEL: datasets, configuration, accuracy, per_horizon or large_channels.

    Nothing is run; a cell without a record says "not run".

    \b
    ibforecast show per_horizon
    ibforecast show accuracy --format json
    """
    from ibforecast.experiments.ledger import Ledger
    from ibforecast.experiments.plans import plan
    from ibforecast.experiments.sheet import FORMATS
    from ibforecast.experiments.tables import TABLES

    plan(label)
    click.echo(FORMATS[form](TABLES[label](Ledger(ledger).records())), nl=False)
