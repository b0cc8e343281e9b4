"""Training of several models of one shape as one batched model, so that one process can fill a GPU.

Every weight of a stack has one more axis, with one entry per model; a step is one pass over all of them. Each model has
the windows, the random numbers and the early stopping that it has on its own, so it ends with the same weights, up to
rounding. On CUDA the random numbers of dropout are other ones, because PyTorch draws them in another way.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.overrides import TorchFunctionMode

from ibforecast.core.contracts import Forecaster
from ibforecast.core.errors import DataError, IBForecastError, require
from ibforecast.core.window import Target, Window
from ibforecast.data.windows import Windows
from ibforecast.train.checkpoint import Epoch
from ibforecast.train.config import TrainConfig
from ibforecast.train.loop import (
    Hopeless,
    Training,
    best_of,
    copy_of,
    divergence,
    drawn_starts,
    epoch_seed,
    error_on,
    errors_on,
    in_order,
    is_over,
    never_hopeless,
    write_into,
)
from ibforecast.train.step import Scored, Update


@dataclass(frozen=True)
class Member:
    """One model of a stack, with its windows and its seed, and when its training is hopeless."""

    forecaster: Forecaster
    training: Windows
    validation: Windows
    seed: int
    hopeless: Hopeless = never_hopeless

    def shape(self, config: TrainConfig) -> tuple[Any, ...]:
        """Return what the members of one stack have in common: the network, and the size and number of steps."""
        count, network = len(self.training), self.forecaster
        weights = tuple((name, tensor.shape) for name, tensor in network.named_parameters())
        constants = tuple((name, str(tensor.tolist())) for name, tensor in network.named_buffers())
        return str(network), weights, constants, config.batch_of(count), config.steps_of(count)


@dataclass(frozen=True)
class Draw:
    """Random numbers that a loss draws in every step: uniform ones, or the factors of dropout if `kept` is a number."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    bounds: tuple[float, ...] = ()
    kept: float | None = None

    def of(self, device: torch.device, noise: torch.Generator, dropout: torch.Generator) -> Tensor:
        """Draw the numbers of one model, in the order in which it draws them on its own."""
        # The order of drawing follows the strides.
        numbers = torch.empty_strided(self.size, self.stride, dtype=self.dtype, device=device)
        if self.kept is None:
            return numbers.uniform_(*self.bounds, generator=noise)
        return numbers.bernoulli_(self.kept, generator=dropout).div_(self.kept)


class Rehearsal(TorchFunctionMode):
    """Within it, every call that draws random numbers is noted in `draws`."""

    def __init__(self) -> None:
        super().__init__()
        self.draws: list[Draw] = []

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Note a draw, and make the call."""
        kwargs = kwargs or {}
        if func is torch.Tensor.uniform_:
            self.draws.append(Draw(args[0].size(), args[0].stride(), args[0].dtype, bounds=tuple(args[1:])))
        elif (share := _dropped(func, args, kwargs)) is not None:
            like = torch.empty_like(args[0])
            self.draws.append(Draw(like.size(), like.stride(), like.dtype, kept=1 - share))
        return func(*args, **kwargs)


class Dealt(TorchFunctionMode):
    """Within it, every call that draws random numbers gets the next of those that were drawn for it."""

    def __init__(self, numbers: Sequence[Tensor]) -> None:
        super().__init__()
        self._next = iter(numbers)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Make the call with given numbers, if it draws any."""
        kwargs = kwargs or {}
        if func is torch.Tensor.uniform_:
            return next(self._next)
        if _dropped(func, args, kwargs) is not None:
            return args[0] * next(self._next)
        return func(*args, **kwargs)


def _dropped(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> float | None:
    """Return the share that a call drops; None if it drops nothing."""
    if func is not nn.functional.dropout or not kwargs["training"] or not kwargs["p"]:
        return None
    return float(kwargs["p"])


class StackedStep(Update):
    """A step of several forecasters of one shape, each on its own batch of windows, as one batched model."""

    def __init__(self, members: Sequence[Member], batch: int, kept_share: float = 0.0, bfloat16: bool = False) -> None:
        self.members, first = members, members[0].forecaster
        device = members[0].training.values.device
        # One pair a model: on its own, dropout draws from PyTorch's own generator and all else from another one.
        self.pairs = [(torch.Generator(device), torch.Generator(device)) for _ in members]
        self._scored = Scored(first)
        stack = deepcopy(first)
        for name, parameter in stack.named_parameters():
            parameter.data = torch.stack([dict(m.forecaster.named_parameters())[name].data for m in members])
        starts = torch.stack([member.training.starts[:1].expand(batch) for member in members])
        self._draws = self._rehearsed(first, starts[0], bfloat16)
        generators = tuple(generator for pair in self.pairs for generator in pair)
        super().__init__(stack, starts, generators, kept_share, bfloat16)

    def losses(self) -> Float[Tensor, "two model"]:
        """Return the loss of each model and the share of its tokens that are open."""
        cut = [member.training.take(starts) for member, starts in zip(self.members, self.starts, strict=True)]
        window, target = (_stacked(parts) for parts in zip(*cut, strict=True))
        device = self.starts.device
        dealt = [torch.stack([draw.of(device, *pair) for pair in self.pairs]) for draw in self._draws]
        weights = {f"forecaster.{name}": tensor for name, tensor in self.forecaster.named_parameters()}
        losses: Tensor = vmap(self._loss)(weights, window, target, dealt)
        return losses.T

    def seed(self, seeds: Sequence[int]) -> None:
        """Give each model the seed of its coming epoch."""
        for seed, pair in zip(seeds, self.pairs, strict=True):
            for generator in pair:
                generator.manual_seed(seed)

    def write_to(self, place: int) -> None:
        """Give a member the weights that it has in the stack now."""
        stacked = {name: tensor[place] for name, tensor in self.forecaster.named_parameters()}
        write_into(dict(self.members[place].forecaster.named_parameters()), stacked)

    def _loss(
        self, weights: Mapping[str, Tensor], window: dict[str, Tensor], target: dict[str, Tensor], dealt: list[Tensor]
    ) -> Float[Tensor, " two"]:
        arguments = (Window(**window), Target(**target), self.progress, self.generators[0])
        with Dealt(dealt):
            losses: Tensor = functional_call(self._scored, dict(weights), arguments)
        return losses

    def _rehearsed(self, forecaster: Forecaster, starts: Tensor, bfloat16: bool) -> list[Draw]:
        """Return the draws of one step, which are the same in all steps."""
        window, target = self.members[0].training.take(starts)
        rehearsal, shortened = Rehearsal(), self.is_shortened(starts.device, bfloat16)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=shortened), rehearsal:
            forecaster.loss(window, target, torch.zeros((), device=starts.device), self.pairs[0][0])
        return rehearsal.draws


def train_stacked(members: Sequence[Member], config: TrainConfig) -> list[Training | IBForecastError]:
    """Train models of one shape together, as `train` trains each of them; return what became of each.

    The time of an epoch is divided by the number of models. If a model does not stay finite, an error takes its place,
    and the others are not affected.
    """
    if any(not len(part) for member in members for part in (member.training, member.validation)):
        raise DataError("training and validation need at least one window each", "none", "give a longer table")
    shapes = {member.shape(config) for member in members}
    require(
        len(shapes) == 1, "the models of a stack must have one shape", f"{len(shapes)} shapes", "train them separately"
    )
    *_, batch, steps = shapes.pop()
    device = members[0].training.values.device
    compared = [member.validation.compared(config.validated) for member in members]
    histories: list[tuple[Epoch, ...]] = [() for _ in members]
    failures: dict[int, IBForecastError] = {}
    with torch.random.fork_rng([device] if device.type == "cuda" else []), in_order(device):
        for member in members:
            member.forecaster.to(device).train()
        step = StackedStep(members, batch, config.kept_share(steps), config.bfloat16)
        best_weights = [copy_of(member.forecaster.state_dict()) for member in members]
        for number in range(config.epochs):
            going = [
                place
                for place, (member, history) in enumerate(zip(members, histories, strict=True))
                if place not in failures and not is_over(history, config) and not member.hopeless(history)
            ]
            if not going:
                break
            begun, rate = time.perf_counter(), config.rate_at(number)
            seeds = [epoch_seed(member.seed, number) for member in members]
            step.seed(seeds)
            step.set_pace(rate, config.progress_at(number))
            drawn = [drawn_starts(m.training, batch, steps, seed) for m, seed in zip(members, seeds, strict=True)]
            for starts in zip(*drawn, strict=True):
                step.run(torch.stack(starts))
            means = step.means()
            with step.averaged():
                for place in going:
                    step.write_to(place)
            errors = {place: error_on(members[place].forecaster, compared[place]) for place in going}
            seconds = (time.perf_counter() - begun) / len(members)
            for place, error in errors.items():
                outcome = Epoch(*means[place], error, rate, seconds)
                if diverged := divergence(outcome, number):
                    failures[place] = diverged
                    continue
                histories[place] = (*histories[place], outcome)
                if best_of(histories[place]) == number:
                    write_into(best_weights[place], members[place].forecaster.state_dict())
        for member, weights in zip(members, best_weights, strict=True):
            member.forecaster.load_state_dict(weights)
        trained = [
            failures.get(place) or _outcome(member, some, history)
            for place, (member, some, history) in enumerate(zip(members, compared, histories, strict=True))
        ]
    for member in members:
        member.forecaster.eval()
    return trained


def _outcome(member: Member, compared: Windows, history: tuple[Epoch, ...]) -> Training:
    best = best_of(history)
    every = len(compared) == len(member.validation)
    squared, absolute = errors_on(member.forecaster, member.validation)
    return Training(history, best + 1, history[best].validation_error if every else squared, absolute)


def _stacked(parts: Sequence[Window] | Sequence[Target]) -> dict[str, Tensor]:
    """Return the fields of several windows or targets, stacked; those that are None are left out."""
    names = [field.name for field in fields(parts[0]) if getattr(parts[0], field.name) is not None]
    return {name: torch.stack([getattr(part, name) for part in parts]) for name in names}
