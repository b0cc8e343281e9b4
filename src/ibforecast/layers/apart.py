"""Several windows in one pass with the bits of one window at a time.

The last bits of a matrix product may depend on its number of rows. Those of a function such as tanh may depend on where
a number is in memory, because PyTorch computes the numbers at the end of an array in another way. So both are computed
window by window. Everything else gives each number the same bits, whatever is next to it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu, linear
from torch.overrides import TorchFunctionMode

PRODUCTS = frozenset({linear, torch.matmul, Tensor.matmul, Tensor.__matmul__})
FUNCTIONS = frozenset({gelu, torch.exp, torch.sigmoid, torch.softmax, torch.tanh, Tensor.exp})
BATCH = "b"
"""The letter of the batch in every `einsum` of the networks."""

ALIGNED = 64
"""PyTorch's own arrays begin at a multiple of this address; by it, a library may choose how it computes a product."""


class Apart(TorchFunctionMode):
    """Computes a batch of windows such that each has the bits it has as a batch of one."""

    def __init__(self, windows: int) -> None:
        super().__init__()
        self._windows = windows

    def __torch_function__(
        self, function: Any, types: Any, arguments: Sequence[Any] = (), options: dict[str, Any] | None = None
    ) -> Any:
        """Call a function of PyTorch, for each window if its bits could depend on the others."""
        options = options or {}
        if function in PRODUCTS or function in FUNCTIONS:
            places = [0 if self._is_batch(each) else None for each in arguments]
            return self._each(lambda *parts: function(*parts, **options), arguments, places, 0)
        if function is torch.einsum:
            equation, *operands = arguments
            *inputs, output = equation.replace("->", ",").split(",")
            places = [letters.find(BATCH) if BATCH in letters else None for letters in inputs]
            return self._each(lambda *parts: torch.einsum(equation, *parts), operands, places, output.find(BATCH))
        return function(*arguments, **options)

    def _is_batch(self, value: Any) -> bool:
        return isinstance(value, Tensor) and value.dim() > 2 and len(value) == self._windows

    def _each(
        self, compute: Callable[..., Tensor], operands: Sequence[Any], places: list[int | None], joined: int
    ) -> Tensor:
        """Return the results of the windows, joined; `places` are the axes of the batch in the operands."""
        if all(place is None for place in places):
            return compute(*operands)
        split = [
            [operand] * self._windows if place is None else map(_aligned, operand.split(1, place))
            for operand, place in zip(operands, places, strict=True)
        ]
        return torch.cat([compute(*parts) for parts in zip(*split, strict=True)], joined)


def _aligned(part: Tensor) -> Tensor:
    """Return a part of an array as an array of its own would begin."""
    return part.clone() if part.data_ptr() % ALIGNED else part
