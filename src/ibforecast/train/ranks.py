"""Training over several processes that torchrun started, through PyTorch's own distributed data parallel.

Each process, which has a rank, takes its share of every batch and of the validation windows. Gradients are averaged and
errors are added up over all of them, so all ranks have the same weights after every step and take the same decisions.
A process on its own is rank 0 of 1.
"""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, distributed, nn

from ibforecast.core.errors import UsageError


@contextmanager
def joined(device: str) -> Iterator[bool]:
    """Join the processes that torchrun started, if it did; yield whether this is the first, which saves and prints.

    On CUDA every process takes the GPU of its number on this machine.
    """
    if not (distributed.is_available() and distributed.is_torchelastic_launched()):
        yield True
        return
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("nccl" if device == "cuda" else "gloo")
    try:
        yield rank() == 0
        distributed.barrier()
    finally:
        gc.collect()
        distributed.destroy_process_group()


def rank() -> int:
    """Return the number of this process, counted from 0."""
    return distributed.get_rank() if _shared() else 0


def size() -> int:
    """Return the number of processes that train together."""
    return distributed.get_world_size() if _shared() else 1


def shared_batch(batch: int) -> int:
    """Return the largest batch up to this size that all processes can share evenly."""
    if batch < size():
        raise UsageError("every process must have a window of each batch", f"{batch} windows", f"start at most {batch}")
    return batch - batch % size()


def share_of(items: Tensor) -> Tensor:
    """Return the items of this process: every nth, beginning with its own number."""
    return items if size() == 1 else items[rank() :: size()]


def averaging(module: nn.Module) -> nn.Module:
    """Return the module with the first process's weights, whose gradients are averaged over all processes."""
    return module if size() == 1 else nn.parallel.DistributedDataParallel(module, static_graph=True)


def total(number: float, device: torch.device) -> float:
    """Return the sum of a number over all processes, the same bits in each."""
    if size() == 1:
        return number
    numbers = torch.tensor([number], dtype=torch.float64, device=device)
    distributed.all_reduce(numbers)
    return float(numbers)


def of_the_first(number: float, device: torch.device) -> float:
    """Return the number of the first process, for a decision that all must take in the same way."""
    return total(number if rank() == 0 else 0.0, device)


def _shared() -> bool:
    return distributed.is_available() and distributed.is_initialized()
