"""Windows that arrive together, in one pass of the network where that changes no bit.

The last bits of a matrix product may depend on how many rows it has. Whether they do, on this machine and for this
model, is tested while serving: the first batches of every size are computed both as a batch and window by window, and
the results are compared. The answers are those computed window by window. If one bit differs, that size is never used
again.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any, Generic, TypeVar, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ibforecast.core.errors import IBForecastError
from ibforecast.core.explanation import Forecast
from ibforecast.core.window import Window
from ibforecast.data.tables import Table
from ibforecast.explained import ExplainedForecast
from ibforecast.forecaster import IBForecaster
from ibforecast.model.network import IBForecast

SIZES = (32, 16, 8, 4, 2)
TRIALS = 4
MOST_NUMBERS = 2**16
"""Largest number of values in one batch; a larger batch is no faster than its windows one by one."""

T = TypeVar("T")


@dataclass(eq=False)
class Task(Generic[T]):
    """A window to explain; calling the task returns what `render` makes of the explanation.

    `start` and `forecast` are set if the window was computed in a batch.
    """

    forecaster: IBForecaster
    source: Table
    at: str | None
    budget: float | None
    render: Callable[[ExplainedForecast], T]
    start: int = 0
    forecast: Forecast | None = None

    def window(self) -> Window:
        """Find the window in its table, and remember where it starts."""
        self.start = self.forecaster._start(self.source.series, self.at)
        return self.forecaster._window(self.source.series, self.start)

    def __call__(self) -> T:
        """Explain the window; compute its forecast unless it is set."""
        if self.forecast is None:
            return self.render(self.forecaster.explain(self.source, self.at, budget=self.budget))
        return self.render(self.forecaster._account(self.source, self.start, self.forecast))


class Together:
    """Forecasts windows in batches, each bit for bit as the network forecasts it by itself."""

    def __init__(self, network: IBForecast) -> None:
        self._network, self._joint = network, _each_gated_alone(network)
        most = MOST_NUMBERS // (network.config.look_back * network.config.channels)
        self._agreed = {size: 0 for size in SIZES if size <= most}

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of batches that have never differed in a bit, largest first."""
        return tuple(self._agreed)

    def prepare(self, works: Sequence[Callable[[], Any]]) -> None:
        """Set the forecasts of the tasks among these if there are several; an invalid one raises when it is called."""
        tasks = [work for work in works if isinstance(work, Task) and work.budget is None]
        if len(tasks) < 2 or not self._agreed:
            return
        windows = {}
        for task in tasks:
            with suppress(IBForecastError):
                windows[task] = task.window()
        for task, forecast in zip(windows, self.forecast(list(windows.values())), strict=True):
            task.forecast = forecast

    @torch.inference_mode()
    def forecast(self, windows: Sequence[Window]) -> list[Forecast]:
        """Forecast each window as if it were the only one."""
        forecasts: list[Forecast] = []
        while left := windows[len(forecasts) :]:
            size = next((size for size in self._agreed if size <= len(left)), 1)
            forecasts += self._batch(left[:size]) if size > 1 else [self._network(left[0])]
        return forecasts

    def _batch(self, windows: Sequence[Window]) -> list[Forecast]:
        size, forecasts = len(windows), _apart(self._joint(_joined(windows)), len(windows))
        if self._agreed[size] >= TRIALS:
            return forecasts
        alone = [self._network(window) for window in windows]
        if all(_same_bits(one, other) for one, other in zip(alone, forecasts, strict=True)):
            self._agreed[size] += 1
        else:
            del self._agreed[size]
        return alone


class _EachAlone(nn.Module):
    """A gate that takes one window at a time: the last bits of a sigmoid depend on the position in the array."""

    def __init__(self, gate: nn.Module) -> None:
        super().__init__()
        self.gate = gate

    def forward(
        self, logits: Float[Tensor, "batch patch channel"], missing: Bool[Tensor, "batch patch channel"]
    ) -> tuple[Bool[Tensor, "batch patch channel"], Float[Tensor, "batch patch channel"]]:
        """Return (mask, probability)."""
        decided = [self.gate(*one) for one in zip(torch.split(logits, 1), torch.split(missing, 1), strict=True)]
        masks, probabilities = zip(*decided, strict=True)
        return torch.cat(masks), torch.cat(probabilities)


def _each_gated_alone(network: IBForecast) -> IBForecast:
    """The same network with the same weights, whose gate takes one window at a time."""
    other = copy(network)
    other._modules = network._modules | {"gate": _EachAlone(network.gate)}
    return other


@cache
def _batched(kind: type[Any]) -> frozenset[str]:
    """Names of the fields whose shape begins with the batch."""
    shapes = {field.name: get_args(field.type) or (field.type,) for field in fields(kind)}
    return frozenset(
        name
        for name, kinds in shapes.items()
        if any(getattr(each, "dim_str", "").startswith("batch ") for each in kinds)
    )


def _joined(windows: Sequence[Window]) -> Window:
    """One batch of several windows."""
    names = [name for name in _batched(Window) if getattr(windows[0], name) is not None]
    return replace(windows[0], **{name: torch.cat([getattr(window, name) for window in windows]) for name in names})


def _apart(batch: T, size: int) -> list[T]:
    """Split a batch into batches of one: the inverse of `_joined`, for anything with a batch axis."""
    whole: Any = batch
    kind: Any = type(batch)
    parts: dict[str, Sequence[Any]] = {}
    for field in fields(kind):
        value = getattr(batch, field.name)
        if is_dataclass(value):
            parts[field.name] = _apart(value, size)
        elif value is not None and field.name in _batched(kind):
            parts[field.name] = torch.split(value, 1)
    return [replace(whole, **{name: each[number] for name, each in parts.items()}) for number in range(size)]


def _same_bits(one: Any, other: Any) -> bool:
    """Whether two results are equal in every bit."""
    if is_dataclass(one):
        return all(_same_bits(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    if isinstance(one, Tensor):
        return bool(one.detach().numpy().tobytes() == other.detach().numpy().tobytes())
    return bool(one == other)
