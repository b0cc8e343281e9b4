"""The cost of an explanation, in forward passes of the forecaster it explains. Paper: fig:cost."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast.core.context import Context
from ibforecast.core.contracts import Explainer, Predictor
from ibforecast.core.errors import require
from ibforecast.core.explanation import Forecast
from ibforecast.core.window import Window


@dataclass
class Passes:
    """Running counts of the windows that passed a predictor forwards, and of the gradients that came back."""

    forward: int = 0
    backward: int = 0


@dataclass(frozen=True)
class Cost:
    """Seconds of every run of explainer and plain forecast, and the passes of the whole batch through the predictor."""

    seconds: tuple[float, ...]
    forward_seconds: tuple[float, ...]
    forwards: float
    backwards: float

    @property
    def forward_equivalents(self) -> float:
        """Median time of an explanation divided by that of a forecast; 1 if it comes with the forecast."""
        return median(self.seconds) / median(self.forward_seconds)


def cost(
    explainer: Explainer,
    predictor: Predictor,
    window: Window,
    share: Float[Tensor, " batch"],
    generator: torch.Generator,
    repeats: int = 5,
) -> Cost:
    """Time an explainer and a plain forecast of the same windows, alternately.

    Both run once before, untimed, to warm up; the passes of the explainer are counted in that run.
    """
    require(repeats >= 1, "repeats must be at least 1", f"repeats={repeats}", "try 5")

    def explain() -> None:
        explainer.explain(predictor, window, share, generator)

    @torch.no_grad()
    def forecast() -> None:
        predictor(window)

    forecast()
    with counting(predictor) as passes:
        explain()
    # Alternately, so that a machine that slows down slows both.
    pairs = [(_seconds(explain, window), _seconds(forecast, window)) for _ in range(repeats)]
    return Cost(
        seconds=tuple(explained for explained, _ in pairs),
        forward_seconds=tuple(plain for _, plain in pairs),
        forwards=passes.forward / len(window.values),
        backwards=passes.backward / len(window.values),
    )


@contextmanager
def counting(predictor: Predictor) -> Iterator[Passes]:
    """Count the windows that pass a predictor, hard or relaxed, and the gradients that come back.

    Afterwards the predictor is unchanged.
    """
    passes, relaxed = Passes(), predictor.relaxed

    def note(values: Tensor) -> None:
        passes.forward += len(values)
        if values.requires_grad:
            values.register_hook(note_gradient)  # type: ignore[no-untyped-call]

    def note_gradient(gradient: Tensor) -> None:
        passes.backward += len(gradient)

    def note_forecast(module: Any, args: Any, forecast: Forecast) -> None:
        note(forecast.values)

    def counted(window: Window, held: Context | None = None) -> Tensor:
        before = passes.forward
        values = relaxed(window, held)
        if passes.forward == before:  # otherwise `relaxed` called `forward`, whose hook has counted it
            note(values)
        return values

    hook = predictor.register_forward_hook(note_forecast)
    vars(predictor)["relaxed"] = counted
    try:
        yield passes
    finally:
        hook.remove()
        del vars(predictor)["relaxed"]


def _seconds(work: Callable[[], None], window: Window) -> float:
    """Return the seconds of one run, including the work it queued on the GPU."""
    on_gpu = window.values.is_cuda
    if on_gpu:
        torch.cuda.synchronize(window.values.device)
    start = perf_counter()
    work()
    if on_gpu:
        torch.cuda.synchronize(window.values.device)
    return perf_counter() - start
