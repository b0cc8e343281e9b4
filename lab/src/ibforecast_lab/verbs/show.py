"""ibforecast show: a table or figure of the paper, computed from the ledger only."""

from pathlib import Path
from typing import Literal

import click

from ibforecast.cli.shared import announce, check_file
from ibforecast.core.errors import UsageError
from ibforecast.core.files import write_atomically
from ibforecast_lab.verbs.shared import ledger_option


@click.command("show")
@click.argument("label")
@click.option(
    "--format",
    "form",
    type=click.Choice(["md", "csv", "tex", "json", "png", "svg"]),
    default="md",
    show_default=True,
    help="A table as text, or a figure.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Write to this file; a figure needs one.")
@ledger_option
def command(
    label: str, form: Literal["md", "csv", "tex", "json", "png", "svg"], out: Path | None, ledger: Path
) -> None:
    """Show the table or the figure of LABEL.

    \b
    datasets configuration
    accuracy per_horizon large_channels tables
    fidelity fidelity_rankings certificate support_recovery coverage
    fixed_mask choice factors
    fidelity_by_budget cost gate_map gate_frequency        (figures too)
    tradeoff ablations sensitivity look_back               (figures too)
    overview                                               (only a figure)

    Nothing is run; a cell without a record says "not run". Only overview fits a small model, within a minute.

    \b
    ibforecast show per_horizon
    ibforecast show accuracy --format json
    ibforecast show cost --format png --out cost.png
    """
    from ibforecast_lab.experiments.figures import WITHOUT_RECORDS, check_has_figure, check_has_table, drawn
    from ibforecast_lab.experiments.ledger import Ledger
    from ibforecast_lab.experiments.plans import plan
    from ibforecast_lab.experiments.sheet import FORMATS
    from ibforecast_lab.experiments.tables import TABLES

    cells = [] if label in WITHOUT_RECORDS else plan(label).cells()  # refuses an unknown label
    if out is not None:
        check_file(out)
    records = Ledger(ledger).records()
    if cells and not records:
        announce(
            f"warning: {ledger} has no records; the project's are in its repository: run this there, or give --ledger"
        )
    if form == "png" or form == "svg":
        check_has_figure(label)
        if out is None:
            raise UsageError("a figure must go into a file", "none", f"add --out {label}.{form}")
        content = drawn(label, records, form)
    else:
        check_has_table(label)
        content = FORMATS[form](TABLES[label](records)).encode()
    if out is None:
        click.echo(content, nl=False)
    else:
        write_atomically(out, content)
        announce(f"written to {out}")
