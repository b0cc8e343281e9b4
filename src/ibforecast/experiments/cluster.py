"""The Ray engine: the same cells, one task each, on a cluster; records come back to the driver's ledger."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from ibforecast.core.errors import MissingExtraError
from ibforecast.experiments.ledger import Cell, Ledger, Record
from ibforecast.experiments.run import missing_from, run

RETRIES = 5


def run_missing_on_ray(
    cells: Iterable[Cell],
    folder: Path,
    address: str | None,
    gpus_per_cell: float = 0.0,
    cpus_per_cell: float = 1.0,
    on_cell: Callable[[Cell, Record | None, str], None] = lambda cell, record, failure: None,
) -> dict[Cell, str]:
    """Run what is missing on a Ray cluster; a task whose worker or node dies is run again elsewhere.

    The data files must be where `IBFORECAST_DATA` or the cache says on every node.
    """
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("ray", "ray") from error
    ledger = Ledger(folder)
    missing = missing_from(ledger, cells)
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False, include_dashboard=False)
    task = ray.remote(num_gpus=gpus_per_cell, num_cpus=cpus_per_cell, max_retries=RETRIES)(_run_on_worker)
    device = "cuda" if gpus_per_cell else "cpu"
    running: dict[Any, Cell] = {task.remote(cell, device, max(1, int(cpus_per_cell))): cell for cell in missing}
    failures: dict[Cell, str] = {}
    while running:
        (done,), _ = ray.wait(list(running), num_returns=1)
        cell, record = running.pop(done), None
        try:
            record = ray.get(done)
            ledger.write(record)
        except ray.exceptions.RayError as error:
            failures[cell] = str(error).strip().splitlines()[-1]
        on_cell(cell, record, failures.get(cell, ""))
    return failures


def _run_on_worker(cell: Cell, device: str, threads: int) -> Record:
    torch.set_num_threads(threads)
    return run(cell, torch.device(device))
