"""Windows that arrive together, in one pass of the network wherever that leaves each bit as it is alone.

The last bits of a matrix product may depend on how many rows it has. Whether they do, on this machine and for this
model, is found out on the job: the first batches of every size are computed both ways, answered as computed alone, and
compared. Where one bit differs that size is never used again.
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
"""Numbers in the windows of one batch; beyond, a batch is no quicker than its windows one by one."""

T = TypeVar("T")


@dataclass(eq=False)
class Asked(Generic[T]):
    """A window that is asked for; a call explains it, and says what is `told` of its explanation.

    `window` and `forecast` are there once they were computed, together with others.
    """

    forecaster: IBForecaster
    source: Table
    at: str | None
    budget: float | None
    told: Callable[[ExplainedForecast], T]
    start: int = 0
    forecast: Forecast | None = None

    def look(self) -> Window:
        """Find the window in its table."""
        self.start = self.forecaster._start(self.source.series, self.at)
        return self.forecaster._window(self.source.series, self.start)

    def __call__(self) -> T:
        """Explain the window, alone unless its forecast is there."""
        if self.forecast is None:
            return self.told(self.forecaster.explain(self.source, self.at, budget=self.budget))
        return self.told(self.forecaster._account(self.source, self.start, self.forecast))


class Together:
    """Forecasts windows that arrive together, each to the bit as the network forecasts it alone."""

    def __init__(self, network: IBForecast) -> None:
        self._network, self._joint = network, _each_gated_alone(network)
        most = MOST_NUMBERS // (network.config.look_back * network.config.channels)
        self._agreed = {size: 0 for size in SIZES if size <= most}

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of batches that have never differed in a bit, the largest first."""
        return tuple(self._agreed)

    def prepare(self, works: Sequence[Callable[[], Any]]) -> None:
        """Give the windows among these their forecasts, where there are several; what is wrong with one it will say."""
        asked = [work for work in works if isinstance(work, Asked) and work.budget is None]
        if len(asked) < 2 or not self._agreed:
            return
        found = []
        for work in asked:
            with suppress(IBForecastError):
                found.append((work, work.look()))
        for (work, _), forecast in zip(found, self.forecast([window for _, window in found]), strict=True):
            work.forecast = forecast

    @torch.inference_mode()
    def forecast(self, windows: Sequence[Window]) -> list[Forecast]:
        """Forecast each window as if it were alone."""
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
    """A gate that decides for each window of a batch alone: at the end of an array, a sigmoid has other last bits."""

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
    """The same network, sharing its weights, with gates that decide one by one."""
    other = copy(network)
    other._modules = network._modules | {"gate": _EachAlone(network.gate)}
    return other


@cache
def _batched(kind: type[Any]) -> frozenset[str]:
    """Names of the fields whose shape begins with the batch."""
    shapes = {field.name: get_args(field.type) or (field.type,) for field in fields(kind)}
    return frozenset(
        name for name, told in shapes.items() if any(getattr(each, "dim_str", "").startswith("batch ") for each in told)
    )


def _joined(windows: Sequence[Window]) -> Window:
    """One batch of several windows."""
    names = [name for name in _batched(Window) if getattr(windows[0], name) is not None]
    return replace(windows[0], **{name: torch.cat([getattr(window, name) for window in windows]) for name in names})


def _apart(batch: T, size: int) -> list[T]:
    """The parts of a batch, each a batch of one: the inverse of `_joined`, for whatever has a batch axis."""
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
    """Whether two results are one in all they hold."""
    if is_dataclass(one):
        return all(_same_bits(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    if isinstance(one, Tensor):
        return bool(one.detach().numpy().tobytes() == other.detach().numpy().tobytes())
    return bool(one == other)
