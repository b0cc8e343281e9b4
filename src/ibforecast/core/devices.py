"""Where the arithmetic happens."""

import torch

from ibforecast.core.errors import UsageError


def find_device(asked: str) -> str:
    """Settle on a device: "auto" takes a GPU where there is one."""
    if asked == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if asked not in ("cpu", "cuda") and not asked.startswith("cuda:"):
        raise UsageError(f'device must be "auto", "cpu" or "cuda" (got {asked!r}); try "auto"')
    if asked.startswith("cuda") and not torch.cuda.is_available():
        raise UsageError(f'device must be there (got {asked!r}, but PyTorch sees no GPU); use "cpu"')
    return asked
