"""ibforecast reproduce: run the cells of labels that are missing from the ledger."""

from math import inf
from pathlib import Path
from typing import Any, Literal

import click

from ibforecast.cli.shared import announce, deliver, json_option
from ibforecast_lab.verbs.shared import ledger_option


@click.command("reproduce")
@click.argument("label", nargs=-1, required=True)
@click.option("--data", multiple=True, help="Only this data set; may be repeated.")
@click.option("--horizon", type=int, multiple=True, help="Only this horizon; may be repeated.")
@click.option("--model", multiple=True, help="Only this model (a recipe's name); may be repeated.")
@click.option("--seeds", help="Seeds, separated by commas; default: the label's.")
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Cells, or stacks of cells, run at the same time (local engine).",
)
@click.option("--stacked", is_flag=True, help="Train cells of one shape as one batched model, to fill a GPU (local).")
@click.option(
    "--minutes", type=click.FloatRange(min=0.0, min_open=True), default=inf, help="Begin no cells after this time."
)
@click.option("--device", default="auto", show_default=True, help="auto, cpu or cuda (local engine).")
@click.option("--address", help="Address of the Ray cluster; default: one on this machine.")
@click.option("--gpus-per-cell", type=float, default=0.0, show_default=True, help="A fraction is fine (Ray engine).")
@ledger_option
@json_option
def command(
    label: tuple[str, ...],
    data: tuple[str, ...],
    horizon: tuple[int, ...],
    model: tuple[str, ...],
    seeds: str | None,
    engine: Literal["local", "ray"],
    jobs: int,
    stacked: bool,
    minutes: float,
    device: str,
    address: str | None,
    gpus_per_cell: float,
    ledger: Path,
    as_json: bool,
) -> None:
    """Run the cells of each LABEL that the ledger lacks; a finished cell is not run again.

    Labels are run in the given order, and a cell of several labels only once. New records are written to the folder
    records next to the ledger; `make results` packs them.

    A cell that fails is reported at the end and does not stop the others. A killed run loses at most the cells that
    were running.

    \b
    ibforecast reproduce per_horizon --data ETTh1 --horizon 96 --model default
    ibforecast reproduce accuracy --model default --stacked --jobs 8 --device cuda
    ibforecast reproduce accuracy tables fidelity --jobs 8 --device cuda --minutes 60
    """
    from tqdm import tqdm

    from ibforecast.core.devices import find_device
    from ibforecast_lab.experiments.cluster import run_missing_on_ray
    from ibforecast_lab.experiments.ledger import Ledger
    from ibforecast_lab.experiments.local import run_missing
    from ibforecast_lab.experiments.plans import plan
    from ibforecast_lab.experiments.run import missing_from
    from ibforecast_lab.experiments.stacked import run_missing_stacked

    if stacked and engine != "local":
        raise click.BadParameter("stacked cells are run on this machine; leave out --engine", param_hint="--stacked")
    chosen = [plan(name).narrowed(data, horizon, model, _numbers(seeds)) for name in label]
    cells = list(dict.fromkeys(cell for part in chosen for cell in part.cells()))
    missing = missing_from(Ledger(ledger), cells)
    names = ", ".join(label)
    announce(f"{names}: {len(cells)} cells, {len(missing)} to run")
    run = 0
    with tqdm(total=len(missing), desc=names, unit="cell", disable=None) as bar:

        def report(cell: Any, record: Any, failure: str) -> None:
            nonlocal run
            run += not failure
            bar.set_postfix_str(f"{cell.key}: {failure or f'MSE {record.test.mse:.4f}'}")
            bar.update()

        if engine == "ray":
            failures = run_missing_on_ray(missing, ledger, address, gpus_per_cell, report, minutes)
        elif stacked:
            failures = run_missing_stacked(missing, ledger, find_device(device), jobs, report, minutes)
        else:
            failures = run_missing(missing, ledger, find_device(device), jobs, report, minutes)
    for cell, failure in failures.items():
        announce(f"failed: {cell.key}: {failure}")
    left = len(missing) - run - len(failures)
    document = {
        "cells": len(cells),
        "run": run,
        "failed": {cell.key: text for cell, text in failures.items()},
        "left": left,
    }
    later = f", {left} left for a later run" if left else ""
    text = f"{run} cells run, {len(failures)} failed{later}; show them with: ibforecast show {label[0]}"
    deliver(document, text, as_json)
    if failures:
        raise click.exceptions.Exit(1)


def _numbers(text: str | None) -> tuple[int, ...]:
    if not text:
        return ()
    if not all(part.strip().isdigit() for part in text.split(",")):
        raise click.BadParameter(f"{text!r} is not a list of whole numbers like 2024,2025", param_hint="--seeds")
    return tuple(int(part) for part in text.split(","))
