"""TIMING: integrated gradients along paths on which random segments of the window keep their values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ibforecast.core.contracts import Explainer, Importance, Predictor
from ibforecast.core.errors import require, require_choice
from ibforecast.core.window import Window
from ibforecast.explain.subject import Baseline, Subject, Values, at_rest
from ibforecast_lab.explainers.relaxation import gradient

EPSILON = torch.finfo(torch.float16).eps
"""Makes the mean over zero steps zero; the number is that of the authors' release."""


@dataclass(frozen=True)
class Segments:
    """Segments of single channels: `start` is the first step, `length` the number of steps."""

    start: Int[Tensor, "some batch segment"]
    length: Int[Tensor, "some batch segment"]
    channel: Int[Tensor, "some batch segment"]

    def cells(self, look_back: int, channels: int) -> Bool[Tensor, "some batch look_back channel"]:
        """Mark the cells that lie in any of the segments."""
        some, batch, _ = self.start.shape
        edges = self.start.new_zeros(some, batch, (look_back + 1) * channels)
        one = torch.ones_like(self.start)
        edges.scatter_add_(2, self.start * channels + self.channel, one)
        edges.scatter_add_(2, (self.start + self.length) * channels + self.channel, -one)
        return edges.view(some, batch, -1, channels).cumsum(dim=2)[:, :, :look_back] > 0


@dataclass(frozen=True)
class Timing(Explainer):
    """At each of `samples` steps of the path from the baseline, `segments` random segments are held at the window.

    Held cells are excluded from the gradient of that step, and the gradients of a cell are averaged over the steps at
    which it was free (Jang et al. 2025). The steps are those of a left Riemann sum, so the window itself is not one of
    them. The defaults are those of the authors' release; `longest` is at most the look-back. As in the release, a
    segment ends before the last step unless it spans the whole window.

    There is one deliberate difference. In the release the padding of segments shorter than the longest one points at
    the channel's first step, which is therefore nearly always held. Here a segment holds only its own steps.

    `chunk` copies of the batch are run at once; it changes memory and speed, not the result.
    """

    segments: int = 50
    shortest: int = 10
    longest: int = 48
    samples: int = 50
    baseline: Baseline = "mean"
    chunk: int = 8

    def __post_init__(self) -> None:
        require(self.segments >= 0, "segments must not be negative", f"segments={self.segments}", "try 10")
        require(
            1 <= self.shortest <= self.longest,
            "shortest must lie in [1, longest]",
            f"shortest={self.shortest}, longest={self.longest}",
            "try 6 and 24",
        )
        require(self.samples >= 1, "samples must be at least 1", f"samples={self.samples}", "try 50")
        require(self.chunk >= 1, "chunk must be at least 1", f"chunk={self.chunk}", "try 8")
        require_choice("baseline", self.baseline, get_args(Baseline))

    def explain(
        self, predictor: Predictor, window: Window, share: Float[Tensor, " batch"], generator: torch.Generator
    ) -> Importance:
        """Grade every look-back value by the size of its attribution; zero for a value that was never free."""
        with at_rest(predictor):
            subject = Subject.of(predictor, window)
            return subject.importance(self.attribution(subject, generator), self.samples, self.samples)

    def attribution(self, subject: Subject, generator: torch.Generator) -> Values:
        """Return signed attributions: the distance from the baseline times the mean gradient while free."""
        start = subject.baseline(self.baseline)
        path, slopes, visits = subject.values - start, torch.zeros_like(start), torch.zeros_like(start)
        batch, look_back, channels = path.shape
        # Drawn window by window, so that the numbers of a window depend neither on `chunk` nor on later windows.
        drawn = torch.rand(batch, self.samples, self.segments, 3, generator=generator, device=generator.device)
        fractions = torch.arange(self.samples).to(path) / self.samples
        steps, draws = torch.split(fractions, self.chunk), torch.split(drawn.to(path), self.chunk, dim=1)
        for some, uniform in zip(steps, draws, strict=True):
            free = ~self.draw(uniform.transpose(0, 1), look_back, channels).cells(look_back, channels)
            points = (start + some[:, None, None, None] * path).where(free, subject.values)
            slopes += (gradient(subject, points) * free).sum(dim=0)
            visits += free.sum(dim=0)
        return path * slopes / (visits + EPSILON)

    def draw(self, uniform: Float[Tensor, "some batch segment 3"], look_back: int, channels: int) -> Segments:
        """Turn uniform numbers in [0, 1) into segments of any channel, any allowed length and any start that fits."""
        shortest, longest = min(self.shortest, look_back), min(self.longest, look_back)
        channel = (uniform[..., 0] * channels).long()
        length = shortest + (uniform[..., 1] * (longest - shortest + 1)).long()
        return Segments((uniform[..., 2] * (look_back - length)).long(), length, channel)


VARIANTS: Mapping[str, Timing] = {
    "defaults": Timing(),
    "ten": Timing(segments=10, shortest=6, longest=24),
    "twenty": Timing(segments=20, shortest=12, longest=48),
}
"""The settings of the release, which hold most of a window of 96 steps, and two that hold less of it."""
