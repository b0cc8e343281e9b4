"""One optimisation step: eager on a processor, captured as a graph on CUDA."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ibforecast.core.contracts import Forecaster
from ibforecast.core.devices import has_bfloat16
from ibforecast.core.window import Target, Window
from ibforecast.data.windows import Windows
from ibforecast.train import ranks


class Scored(nn.Module):
    """A forecaster whose forward pass returns (loss, open rate): PyTorch can replace weights only in such a pass."""

    def __init__(self, forecaster: Forecaster) -> None:
        super().__init__()
        self.forecaster = forecaster

    def forward(
        self, window: Window, target: Target, progress: Float[Tensor, ""], generator: torch.Generator
    ) -> Float[Tensor, " two"]:
        """Return the loss of a batch and the share of tokens that are open."""
        loss = self.forecaster.loss(window, target, progress, generator)
        return torch.stack([loss.total, loss.open_rate])


class Update(ABC):
    """A step on weights, without its loss: update and average them, and add loss and open rate to running sums.

    `starts` are the first rows of the windows of the next step, and `sums` has one column per model. `averages` are
    the weights averaged over the steps, of which `kept_share` remains after each; empty if that is 0. With `bfloat16`
    matrices are multiplied in these shorter numbers, if the processor has instructions for them.
    """

    def __init__(
        self,
        forecaster: Forecaster,
        starts: Int[Tensor, "*model batch"],
        generators: tuple[torch.Generator, ...],
        kept_share: float = 0.0,
        bfloat16: bool = False,
    ) -> None:
        self.forecaster, self.starts, self.generators = forecaster, starts, generators
        device = starts.device
        self.progress = torch.zeros((), device=device)
        self.sums = torch.zeros(2, *starts.shape[:-1], device=device)
        self.count = 0
        on_gpu = device.type == "cuda"
        self.optimiser = torch.optim.Adam(
            [
                {
                    "params": group.parameters,
                    "lr": torch.zeros((), device=device) if on_gpu else 0.0,
                    "rate": group.rate,
                }
                for group in forecaster.parameter_groups()
            ],
            fused=True,
            capturable=on_gpu,
        )
        self.shortened = self.is_shortened(device, bfloat16)
        self.kept_share = kept_share
        self._weights = {name: p for name, p in forecaster.named_parameters() if p.requires_grad} if kept_share else {}
        self.averages = {name: parameter.detach().clone() for name, parameter in self._weights.items()}
        self._ready_optimiser()
        # Processes wait for each other within a step, which a graph of one of them cannot record.
        captured = on_gpu and forecaster.capturable and ranks.size() == 1
        self._replay = self._capture() if captured else self._update

    @staticmethod
    def is_shortened(device: torch.device, bfloat16: bool) -> bool:
        """Return whether matrices are multiplied in bfloat16 on a device."""
        return bfloat16 and device.type == "cpu" and has_bfloat16()

    @abstractmethod
    def losses(self) -> Float[Tensor, "two *model"]:
        """Return the loss of the windows at `starts` and the share of tokens that are open, for each model."""

    def set_pace(self, learning_rate: float, progress: float) -> None:
        """Set the learning rate and the progress of the coming epoch."""
        self.progress.fill_(progress)
        for group in self.optimiser.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(learning_rate * group["rate"])
            else:
                group["lr"] = learning_rate * group["rate"]

    def run(self, starts: Int[Tensor, "*model batch"]) -> None:
        """Take one step on the windows that begin at these rows."""
        self.starts.copy_(starts)
        self._replay()
        self.count += 1

    def means(self) -> list[tuple[float, float]]:
        """Return the mean loss and open rate of each model since the last call."""
        means = (self.sums / max(1, self.count)).reshape(2, -1)
        pairs = [(loss, open_rate) for loss, open_rate in means.T.tolist()]
        self.sums.zero_()
        self.count = 0
        return pairs

    def moments(self) -> dict[str, Tensor]:
        """Return the state of the optimiser by name, as views that can be saved or written to."""
        names = {id(parameter): name for name, parameter in self.forecaster.named_parameters()}
        return {
            f"{names[id(parameter)]}/{key}": tensor
            for parameter, state in self.optimiser.state.items()
            for key, tensor in state.items()
        }

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Give the forecaster its averaged weights within a `with` block, if there are any."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    @torch.no_grad()
    def _exchange(self) -> None:
        for name, average in self.averages.items():
            now = self._weights[name].clone()
            self._weights[name].copy_(average)
            average.copy_(now)

    def _update(self) -> None:
        self.optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.shortened):
            losses = self.losses()
        losses[0].sum().backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        if self.averages:
            weights = [parameter.detach() for parameter in self._weights.values()]
            torch._foreach_lerp_(list(self.averages.values()), weights, 1 - self.kept_share)
        self.sums += losses.detach()

    def _ready_optimiser(self) -> None:
        """Take an update of size zero, so that the optimiser's state exists before anything is loaded into it."""
        for group in self.optimiser.param_groups:
            for parameter in group["params"]:
                parameter.grad = torch.zeros_like(parameter)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        for tensor in self.moments().values():
            tensor.zero_()

    def _capture(self) -> Callable[[], None]:
        """Record the update as a CUDA graph; the warm-up changes the weights, so they are restored."""
        held = {**self.forecaster.state_dict(), **self.moments()} | {
            f"{n}/average": t for n, t in self.averages.items()
        }
        before = {name: tensor.clone() for name, tensor in held.items()}
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self._update()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        for generator in self.generators:
            graph.register_generator_state(generator)
        with torch.cuda.graph(graph):
            self._update()
        for name, tensor in held.items():
            tensor.copy_(before[name])
        self.sums.zero_()
        return graph.replay


class Step(Update):
    """A step of one forecaster on a batch of windows, of which every process takes its share."""

    def __init__(
        self,
        forecaster: Forecaster,
        windows: Windows,
        batch: int,
        generator: torch.Generator,
        kept_share: float = 0.0,
        bfloat16: bool = False,
    ) -> None:
        self.windows, self._scored = windows, ranks.averaging(Scored(forecaster))
        starts = torch.zeros(batch, dtype=torch.int64, device=windows.values.device)
        super().__init__(forecaster, starts, (generator,), kept_share, bfloat16)

    def losses(self) -> Float[Tensor, " two"]:
        """Return the loss of the windows at `starts` and the share of tokens that are open."""
        window, target = self.windows.take(ranks.share_of(self.starts))
        losses: Tensor = self._scored(window, target, self.progress, self.generators[0])
        return losses
