"""ibforecast dossier: one document about a model, for people who must judge it."""

from pathlib import Path
from typing import Literal

import click

from ibforecast.cli.shared import announce, check_file, device_option, json_option, load_model
from ibforecast.core.errors import UsageError


@click.command("dossier")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("table")
@click.option("--split", type=click.Choice(["train", "validation", "test"]), default="test", show_default=True)
@click.option("--windows", type=int, default=1024, show_default=True, help="Number of windows, evenly spaced.")
@click.option("--purpose", default="", help="The intended use, in your words.")
@device_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("dossier.html"),
    show_default=True,
    help="File to write, .html or .json.",
)
@json_option
def command(
    model: Path,
    table: str,
    split: Literal["train", "validation", "test"],
    windows: int,
    purpose: str,
    device: str,
    out: Path,
    as_json: bool,
) -> None:
    """Write one document about MODEL for auditors, from the TABLE it was fitted on.

    It has the intended use, data with fingerprints, training, errors next to naive forecasts, coverage, reads, the
    audit, drivers, a verified example, weaknesses and commands. The file has no scripts and loads nothing. The measured
    weaknesses are printed.

    \b
    ibforecast dossier model load.csv
    ibforecast dossier model load.csv --purpose 'Day-ahead purchase of energy' --out model-2024.html
    ibforecast dossier model load.csv --json > dossier.json
    """

    if out.suffix.lower() not in (".html", ".htm", ".json"):
        raise UsageError("a dossier must end in .html or .json", repr(out.name), f"try {out.stem + '.html'!r}")
    check_file(out)
    dossier = load_model(model, table, device).dossier(
        table, split, windows, purpose=purpose, model_name=model.resolve().name
    )
    announce(f"dossier written to {dossier.save(out)}")
    if as_json:
        click.echo(dossier.to_json(), nl=False)
        return
    for weakness in dossier.weaknesses:
        click.echo(weakness)
