"""ibforecast audit: check whether a model's explanations can be relied on."""

from pathlib import Path
from typing import Literal

import click

from ibforecast.cli.main import EXIT_CODES
from ibforecast.cli.shared import announce, deliver, device_option, json_option, load_model
from ibforecast.core.errors import VerificationError


@click.command("audit")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("table")
@click.option("--min-fidelity", type=float, default=0.9, show_default=True, help="The lowest score that passes.")
@click.option("--windows", type=int, default=1024, show_default=True, help="Number of windows, evenly spaced.")
@click.option("--split", type=click.Choice(["train", "validation", "test", "all"]), default="test", show_default=True)
@device_option
@click.option("--save", is_flag=True, help="Keep the result as audit.json in the model's folder.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    model: Path,
    table: str,
    min_fidelity: float,
    windows: int,
    split: Literal["train", "validation", "test", "all"],
    device: str,
    save: bool,
    as_json: bool,
) -> None:
    """Audit the explanations of MODEL on a part of the TABLE it was fitted on, or on all of another.

    The score is comprehensiveness (at most 1) minus sufficiency: it is 1 if the forecast depends on what was read and
    on nothing else. Exit code 4 if it is too low or undefined, or if a closed token changed a bit of a forecast with
    context and mask held fixed.

    \b
    ibforecast audit model load.csv
    ibforecast audit model load.csv --min-fidelity 0.95 --save
    ibforecast audit model next-year.csv --split all --json
    """
    from ibforecast.audit import check_bar

    check_bar(min_fidelity)
    audit = load_model(model, table, device).audit(table, split, windows)
    shortfalls = audit.shortfalls(min_fidelity)
    verdict = f"{'NOT passed' if shortfalls else 'passed'}, with a bar of {min_fidelity:g}: {model}"
    deliver(audit.document(min_fidelity), f"{audit.in_words()}\n{verdict}", as_json)
    if save:
        announce(f"audit written to {audit.save(model, min_fidelity)}")
    for shortfall in shortfalls:
        announce(f"error: {shortfall.rule} (got {shortfall.value})\nhint: {shortfall.remedy}")
    if shortfalls:
        ctx.exit(EXIT_CODES[VerificationError])
