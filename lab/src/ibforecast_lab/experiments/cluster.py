"""The Ray engine: the same cells, one task each, on a cluster; records come back to the driver's ledger."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import torch

from ibforecast.core.engines import Ray
from ibforecast_lab.experiments.ledger import Cell, Ledger, Record
from ibforecast_lab.experiments.run import missing_from, run


def run_missing_on_ray(
    cells: Iterable[Cell],
    packed: Path,
    address: str | None,
    gpus_per_cell: float = 0.0,
    on_cell: Callable[[Cell, Record | None, str], None] = lambda cell, record, failure: None,
) -> dict[Cell, str]:
    """Run what is missing on a Ray cluster; a task whose worker or node dies is run again elsewhere.

    The data files must be where `IBFORECAST_DATA` or the cache says on every node.
    """
    ledger = Ledger(packed)
    engine = Ray(address, gpus_per_item=gpus_per_cell)
    work = partial(_run, device="cuda" if gpus_per_cell else "cpu")
    failures: dict[Cell, str] = {}
    for cell, record, failure in engine.run(missing_from(ledger, cells), work):
        if record is None:
            failures[cell] = failure
        else:
            ledger.write(record)
        on_cell(cell, record, failure)
    return failures


def _run(cell: Cell, device: str) -> Record:
    torch.set_num_threads(1)
    return run(cell, torch.device(device))
