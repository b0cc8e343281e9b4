"""The choice of the device to compute on."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ibforecast.core.errors import UsageError


def find_device(device: str) -> str:
    """Return the device to use: for "auto" a GPU if there is one, otherwise the CPU."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device not in ("cpu", "cuda") and not device.startswith("cuda:"):
        raise UsageError('device must be "auto", "cpu" or "cuda"', repr(device), 'try "auto"')
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise UsageError("device must be available", f"{device!r}, but PyTorch sees no GPU", 'use "cpu"')
    return device


def has_bfloat16() -> bool:
    """Return whether this processor has instructions that multiply matrices of bfloat16 numbers."""
    # Older versions of PyTorch cannot say.
    capabilities = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16"))


@contextmanager
def computing_with(threads: int | None) -> Iterator[None]:
    """Compute with a number of threads; None: as many as PyTorch is set to."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
