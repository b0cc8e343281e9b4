"""The local engine: run cells in several processes on this machine."""

from collections.abc import Callable, Iterable
from functools import partial
from math import inf
from pathlib import Path

import torch

from ibforecast.core.workers import Processes, until
from ibforecast.zoo.stages import forget
from ibforecast_lab.experiments.ledger import Cell, Ledger, Record
from ibforecast_lab.experiments.run import missing_from, run


def run_missing(
    cells: Iterable[Cell],
    packed: Path,
    device: str,
    jobs: int = 1,
    on_cell: Callable[[Cell, Record | None, str], None] = lambda cell, record, failure: None,
    minutes: float = inf,
) -> dict[Cell, str]:
    """Run the cells whose record is missing or outdated; return the reason of each failure by cell.

    After some `minutes` no more cells are handed out, and those that were are finished.

    If a cell is killed, its last checkpoint stays next to the records of new runs, and the next run continues from it.
    """
    missing = missing_from(Ledger(packed), cells)
    failures: dict[Cell, str] = {}
    jobs = min(jobs, max(1, len(missing)))
    engine = Processes(jobs)
    for cell, record, failure in engine.run(until(missing, minutes), partial(_run, packed=packed, device=device)):
        if failure:
            failures[cell] = failure
        on_cell(cell, record, failure)
    return failures


def _run(cell: Cell, packed: Path, device: str) -> Record:
    # The number of threads may change the last bits of sums, and so a record; it must not depend on the number of jobs.
    torch.set_num_threads(1)
    ledger = Ledger(packed)
    checkpoint = ledger.path(cell).with_suffix(".safetensors")
    record = run(cell, torch.device(device), checkpoint)
    ledger.write(record)
    forget(checkpoint)
    return record
