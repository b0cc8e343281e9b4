"""Where the arithmetic happens."""

import torch

from ibforecast.core.errors import UsageError


def find_device(asked: str) -> str:
    """Settle on a device: "auto" takes a GPU where there is one."""
    if asked == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if asked not in ("cpu", "cuda") and not asked.startswith("cuda:"):
        raise UsageError('device must be "auto", "cpu" or "cuda"', repr(asked), 'try "auto"')
    if asked.startswith("cuda") and not torch.cuda.is_available():
        raise UsageError("device must be there", f"{asked!r}, but PyTorch sees no GPU", 'use "cpu"')
    return asked
