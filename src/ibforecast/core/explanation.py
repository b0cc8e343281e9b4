"""A forecast and the explanation it was computed from; the one list of the fields of an explanation.

`FIELDS` is derived from the two dataclasses `Explanation` and `Context`. Documents, comparisons, shape checks and the
inputs and outputs of ONNX graphs all use it, so that a new field is declared in one place.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, Generic, Literal, get_args

import numpy as np
from jaxtyping import Bool, Float, Int

from ibforecast.core.context import Array, Context
from ibforecast.core.errors import DataError

BATCH = "*batch"
"""The axis that a batch of windows has and a single window does not."""

REMEDY = "build it from arrays of one window or one batch"

Kind = Literal["bool", "int64", "float32"]


@dataclass(frozen=True)
class Explanation(Generic[Array]):
    """E = (mask, evidence) of one window or a batch, with its context. Paper: Algorithm 1, E.

    `probability` grades the tokens: open ones have a probability above ½, and closed ones above ½ were cut by the
    budget. `missing` marks the tokens with a missing step, which are never open.
    """

    mask: Bool[Array, "*batch patch channel"]
    evidence: Float[Array, "*batch look_back channel"]
    probability: Float[Array, "*batch patch channel"] = field(metadata={"replayed": False})
    missing: Bool[Array, "*batch patch channel"] = field(metadata={"replayed": False})
    context: Context[Array]

    @classmethod
    def of(cls, arrays: Mapping[str, Any], cycles: tuple[int, ...] = ()) -> "Explanation[Any]":
        """Build an explanation from its arrays by name; optional arrays may be absent or None."""
        parts: dict[str, dict[str, Any]] = {"explanation": {}, "context": {}}
        for row in FIELDS:
            if row.name in arrays or not row.optional:
                parts[row.part][row.name] = arrays[row.name]
        return cls(context=Context(cycles=cycles, **parts["context"]), **parts["explanation"])

    def __post_init__(self) -> None:
        sizes: dict[str, Any] = {}
        for row, array in self.arrays():
            cut = max(len(array.shape) - len(row.axes) + 1, 0)
            shape = (tuple(array.shape[:cut]), *array.shape[cut:]) if row.batched else tuple(array.shape)
            if len(shape) != len(row.axes):
                raise DataError(f"{row.name} must have the axes {' '.join(row.axes)}", f"shape {shape}", REMEDY)
            for axis, size in zip(row.axes, shape, strict=True):
                if sizes.setdefault(axis, size) != size:
                    raise DataError(
                        f"the arrays of an explanation must agree in the axis {axis.lstrip('*')}",
                        f"{size} in {row.name}, {sizes[axis]} before",
                        REMEDY,
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
        """Number of steps in a patch."""
        return int(self.evidence.shape[-2] // self.mask.shape[-2])

    def map(self, change: Callable[["Field", Any], Any]) -> "Explanation[Any]":
        """Return the explanation with `change` applied to every array."""
        return self.of({row.name: change(row, array) for row, array in self.arrays()}, self.context.cycles)

    def arrays(self) -> Iterator[tuple["Field", Array]]:
        """Yield each array with its row of the field table; skip optional ones that are None."""
        for row in FIELDS:
            array = row.of(self)
            if array is not None:
                yield row, array

    def numpy(self) -> "Explanation[np.ndarray]":
        """Return a copy with numpy arrays instead of tensors, in the types of a document."""
        return self.map(lambda row, array: array.detach().cpu().numpy().astype(row.kind))

    def window(self, number: int) -> "Explanation[Array]":
        """Return one window of a batch."""
        return self.map(lambda row, array: array[number] if row.batched else array)

    def batch(self) -> "Explanation[Array]":
        """Return a batch of one window: the inverse of `window(0)`."""
        return self.map(lambda row, array: array[None] if row.batched else array)


@dataclass(frozen=True)
class Field:
    """A row of the field table: an array of an explanation, its axes and its type in a document.

    `of(explanation)` returns the array, or None. `batched` arrays have a value for every window; all others belong to
    the model. `given` arrays come with the window. Arrays that are `computed` may differ by rounding between machines;
    the shares of an anchor and the responses to covariates are numbers of the model, so they may not. `written` arrays
    are part of a document, `replayed` ones are read by the readout, and differences of those `in_scales` are measured
    in scales. An optional array `needs` a fact about the model (`ModelFacts`): only models of which it is true have the
    array.
    """

    name: str
    axes: tuple[str, ...]
    kind: Kind
    part: Literal["explanation", "context"]
    of: Callable[[Explanation[Any]], Any]
    optional: bool
    batched: bool
    given: bool = False
    computed: bool = True
    written: bool = True
    replayed: bool = True
    in_scales: bool = False
    needs: str = ""


def _rows(part: Literal["explanation", "context"], owner: type[Any]) -> Iterator[Field]:
    """Yield a row for every field of a dataclass whose type is an array with named axes."""
    for each in fields(owner):
        kinds = get_args(each.type) or (each.type,)
        array = next((kind for kind in kinds if hasattr(kind, "dim_str")), None)
        if array is not None:
            yield Field(
                name=each.name,
                axes=tuple(array.dim_str.split()),
                kind=next(kind for kind in get_args(Kind) if kind in array.dtypes),
                part=part,
                of=attrgetter(each.name if part == "explanation" else f"{part}.{each.name}"),
                optional=len(kinds) > 1,
                batched=array.dim_str.startswith(BATCH),
                **each.metadata,
            )


FIELDS = (*_rows("explanation", Explanation), *_rows("context", Context))


@dataclass(frozen=True)
class Forecast:
    """Ŷ and the explanation it was computed from; None if the forecaster has none."""

    values: Float[Any, "batch horizon channel"]
    explanation: Explanation | None = None
