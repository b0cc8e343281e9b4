"""The Ray engine: run cells on a cluster, one task each; the driver writes the records to its ledger."""

from collections.abc import Callable, Iterable
from functools import partial
from math import inf
from pathlib import Path

import torch

from ibforecast.core.workers import Ray, until
from ibforecast_lab.experiments.ledger import Cell, Ledger, Record
from ibforecast_lab.experiments.run import missing_from, run


def run_missing_on_ray(
    cells: Iterable[Cell],
    packed: Path,
    address: str | None,
    gpus_per_cell: float = 0.0,
    on_cell: Callable[[Cell, Record | None, str], None] = lambda cell, record, failure: None,
    minutes: float = inf,
) -> dict[Cell, str]:
    """Run the missing cells on a Ray cluster; if a worker or node dies, its task is run again elsewhere.

    After some `minutes` no more cells are handed out, and those that were are finished. Every node needs the data
    files, in the folder `IBFORECAST_DATA` or in the cache.
    """
    ledger = Ledger(packed)
    engine = Ray(address, gpus_per_item=gpus_per_cell)
    work = partial(_run, device="cuda" if gpus_per_cell else "cpu")
    failures: dict[Cell, str] = {}
    for cell, record, failure in engine.run(until(missing_from(ledger, cells), minutes), work):
        if record is None:
            failures[cell] = failure
        else:
            ledger.write(record)
        on_cell(cell, record, failure)
    return failures


def _run(cell: Cell, device: str) -> Record:
    torch.set_num_threads(1)
    return run(cell, torch.device(device))
