"""The local engine: cells in processes of this machine, several side by side."""

import multiprocessing
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import torch

from ibforecast.experiments.ledger import Cell, Ledger, Record
from ibforecast.experiments.run import missing_from, run


def run_missing(
    cells: Iterable[Cell],
    folder: Path,
    device: str,
    jobs: int = 1,
    on_cell: Callable[[Cell, Record | None, str], None] = lambda cell, record, failure: None,
) -> dict[Cell, str]:
    """Run the cells whose record is missing or outdated; return the failures by cell, with what went wrong.

    A cell that is killed leaves its finished epochs beside the ledger's records, and goes on from there next time.
    """
    ledger = Ledger(folder)
    missing = missing_from(ledger, cells)
    failures: dict[Cell, str] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max(1, min(jobs, len(missing) or 1)), mp_context=context) as pool:
        running = {pool.submit(_run, cell, folder, device, jobs): cell for cell in missing}
        for done in as_completed(running):
            cell = running[done]
            error = done.exception()
            if error is not None:
                failures[cell] = "".join(traceback.format_exception_only(error)).strip()
            on_cell(cell, None if error else done.result(), failures.get(cell, ""))
    return failures


def _run(cell: Cell, folder: Path, device: str, jobs: int) -> Record:
    torch.set_num_threads(max(1, multiprocessing.cpu_count() // jobs))  # or the processes fight over the cores
    ledger = Ledger(folder)
    under_way = ledger.path(cell).with_suffix(".safetensors")
    record = run(cell, torch.device(device), under_way)
    ledger.write(record)
    under_way.unlink(missing_ok=True)
    return record
