"""A forecast and the explanation it was computed from; the one list of what an explanation holds.

`FIELDS` is read off the two dataclasses `Explanation` and `Context`. Documents, comparisons, shape checks and the
inputs and outputs of ONNX graphs are all driven by it, so that a new field is written down in one place.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any, Generic, Literal, get_args

import numpy as np
from jaxtyping import Bool, Float, Int

from ibforecast.core.context import Array, Context
from ibforecast.core.errors import DataError

BATCH = "*batch"
"""The axis that is there for a batch of windows and absent for a single one."""

Kind = Literal["bool", "int64", "float32"]


@dataclass(frozen=True)
class Explanation(Generic[Array]):
    """E = (mask, evidence) of one window or a batch, with its context. Paper: Algorithm 1, E.

    `probability` grades the tokens: what is open lies above ½, and what lies above ½ yet is closed was cut by the
    budget. `missing` marks the tokens with a missing step, which are never open.
    """

    mask: Bool[Array, "*batch patch channel"]
    evidence: Float[Array, "*batch look_back channel"]
    probability: Float[Array, "*batch patch channel"]
    missing: Bool[Array, "*batch patch channel"]
    context: Context[Array]

    def __post_init__(self) -> None:
        sizes: dict[str, tuple[int, ...]] = {}
        for field in FIELDS:
            array = field.of(self)
            if array is None:
                continue
            shape, axes = tuple(array.shape), field.axes
            if field.batched:
                shape, axes = (shape[: len(shape) - len(axes) + 1], *shape[len(shape) - len(axes) + 1 :]), axes
            for axis, size in zip(axes, shape, strict=True):
                if sizes.setdefault(axis, size) != size:
                    raise DataError(
                        f"the arrays of an explanation must agree in the axis {axis.lstrip('*')}",
                        f"{size} in {field.name}, {sizes[axis]} before",
                        "build it from arrays of one window or one batch",
                    )

    @property
    def open_count(self) -> Int[Array, "*batch"]:
        """Number of open tokens of each window."""
        count: Array = self.mask.sum((-2, -1))
        return count

    @property
    def open_rate(self) -> Float[Array, "*batch"]:
        """Realised fraction of each window that was read."""
        count = self.open_count
        # A tensor would be divided in single precision, in which 3 of 15 tokens exceed a budget of 0.2.
        wide = count.double() if hasattr(count, "double") else count
        rate: Array = wide / float(self.mask.shape[-2] * self.mask.shape[-1])
        return rate

    @property
    def patch_len(self) -> int:
        """Number of steps of a patch."""
        return int(self.evidence.shape[-2] // self.mask.shape[-2])

    def map(self, change: Callable[["Field", Any], Any]) -> "Explanation[Any]":
        """Return the same explanation with every array changed."""
        arrays = {field.name: change(field, array) for field, array in self.arrays()}
        own = {name: arrays.pop(name) for name in [field.name for field in fields(self)] if name in arrays}
        return replace(self, context=replace(self.context, **arrays), **own)

    def arrays(self) -> Iterator[tuple["Field", Array]]:
        """Every array with its row of the field table; an optional one only where it is there."""
        for field in FIELDS:
            array = field.of(self)
            if array is not None:
                yield field, array

    def numpy(self) -> "Explanation[np.ndarray]":
        """Return a copy of tensors in numpy arrays, of the types a document has."""
        return self.map(lambda field, array: array.detach().cpu().numpy().astype(field.kind))

    def window(self, number: int) -> "Explanation[Array]":
        """Return one window of a batch."""
        return self.map(lambda field, array: array[number] if field.batched else array)

    def batch(self) -> "Explanation[Array]":
        """Return a batch of this one window: `explanation.batch().window(0)` is the explanation."""
        return self.map(lambda field, array: array[None] if field.batched else array)


@dataclass(frozen=True)
class Field:
    """A row of the field table: an array of an explanation, its axes and the type it has in a document.

    `batched` arrays have a value for every window, all others belong to the model. `of(explanation)` gives the array,
    None where an optional one is not there.
    """

    name: str
    axes: tuple[str, ...]
    kind: Kind
    optional: bool
    part: Literal["explanation", "context"]
    batched: bool
    of: Callable[[Explanation[Any]], Any]


def _rows(part: Literal["explanation", "context"], owner: type[Any]) -> Iterator[Field]:
    """Read the table off a dataclass: every field whose type is an array with named axes."""
    for field in fields(owner):
        kinds = get_args(field.type) or (field.type,)
        array = next((kind for kind in kinds if hasattr(kind, "dim_str")), None)
        if array is None:
            continue
        matches: dict[Kind, bool] = {
            "bool": "bool" in array.dtypes,
            "int64": "int64" in array.dtypes,
            "float32": "float32" in array.dtypes,
        }
        kind = next(kind for kind, fits in matches.items() if fits)
        axes = tuple(array.dim_str.split())
        path = field.name if part == "explanation" else f"{part}.{field.name}"
        yield Field(field.name, axes, kind, len(kinds) > 1, part, axes[0] == BATCH, attrgetter(path))


FIELDS = (*_rows("explanation", Explanation), *_rows("context", Context))


@dataclass(frozen=True)
class Forecast:
    """Ŷ and, where the forecaster has one, the explanation it was computed from."""

    values: Float[Any, "batch horizon channel"]
    explanation: Explanation | None = None
