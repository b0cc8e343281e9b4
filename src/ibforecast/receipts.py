"""Computing receipts: what each value that was read adds to a forecast.

An additive readout gives the amounts in closed form. For any other, each amount is a Shapley value: by how much the
forecast moves if the value is what it was instead of the usual one, averaged over the orders in which values could be
put in. Every move is computed exactly, by the whole model, through the same mask.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import comb

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.receipt import Amounts, places
from ibforecast.core.window import Window
from ibforecast.engine import TorchEngine, tensors
from ibforecast.model.network import IBForecast
from ibforecast.model.stage1_decompose import SeasonalFrame
from ibforecast.model.stage4_readout import AdditiveReadout, TargetsOnly

EVERY_ORDER = 8
"""Up to this number of open tokens all orders are used; above it, orders are drawn."""

ORDERS = 2
"""How many orders are drawn; each is used forwards and backwards, so that two values share evenly what both add."""

CHUNK = 1024
"""How many windows are computed at once."""

Values = Float64[np.ndarray, "look_back channel"]
PerStep = Float64[np.ndarray, " horizon"]
Moves = Float64[np.ndarray, "open horizon"]
AllMoves = Float64[np.ndarray, "open horizon column"]
Places = list[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Weights:
    """One channel's forecast as a published sum, for every step ahead; everything in standardised units.

    With u the departure of each value from the usual one, and σ the scale of each channel that is read:

        Ŷ = constant + Σ_channels swing · σ + Σ_values (linear · u + bent · tanh u)

    `scale` and `usual_scale` are σ of this window, and of one in which every value is the usual one. They follow from
    `squares` and `usual_squares`: σ² = (doubt + Σ squares) / (doubt + count). `departure` is u.
    """

    constant: PerStep
    swing: Float64[np.ndarray, "channel horizon"]
    linear: Float64[np.ndarray, "look_back channel horizon"]
    bent: Float64[np.ndarray, "look_back channel horizon"]
    departure: Values
    squares: Values
    usual_squares: Values
    doubt: Float64[np.ndarray, " channel"]
    count: Float64[np.ndarray, " channel"]

    @property
    def scale(self) -> Float64[np.ndarray, " channel"]:
        """The scale of each channel."""
        return np.asarray(np.sqrt((self.doubt + self.squares.sum(axis=0)) / (self.doubt + self.count)))

    @property
    def usual_scale(self) -> Float64[np.ndarray, " channel"]:
        """The scale of each channel if every value is the usual one."""
        return np.asarray(np.sqrt((self.doubt + self.usual_squares.sum(axis=0)) / (self.doubt + self.count)))

    @property
    def calendar(self) -> PerStep:
        """The forecast if every value is the usual one."""
        return np.asarray(self.constant + self.usual_scale @ self.swing)

    @property
    def added(self) -> Float64[np.ndarray, "look_back channel horizon"]:
        """What each value adds to the calendar, as itself and through the scale.

        The change of a scale is divided among its values as the change of its square is.
        """
        own = self.linear * self.departure[..., None] + self.bent * np.tanh(self.departure)[..., None]
        widths = (self.doubt + self.count) * (self.scale + self.usual_scale)
        shares = (self.squares - self.usual_squares) / widths
        return np.asarray(own + shares[..., None] * self.swing)


def amounts(engine: TorchEngine, explained: ExplainedForecast, columns: Sequence[int]) -> list[Amounts]:
    """Return what adds up to the forecast of each of these channels, at every step."""
    if additive(engine.fitted.network) is None:
        return _by_what_ifs(engine, explained, columns)
    return [_in_closed_form(engine, explained, column) for column in columns]


def _in_closed_form(engine: TorchEngine, explained: ExplainedForecast, column: int) -> Amounts:
    sums, std, mask = weights(engine, explained, column), float(explained.units.std[column]), explained.explanation.mask
    tokens = sums.added.reshape(len(mask), -1, *sums.added.shape[1:]).sum(axis=1)
    return _with_rest(explained, column, sums.calendar * std + explained.units.mean[column], tokens[mask] * std)


def _with_rest(
    explained: ExplainedForecast, column: int, calendar: PerStep, read: Moves, error: Moves | None = None
) -> Amounts:
    """Return the amounts of a channel; what they leave of the forecast of a model that is not sealed is `unread`."""
    known = _known(explained, column)
    rest = explained.forecast[:, column] - calendar - read.sum(axis=0) - known.sum(axis=0)
    return Amounts(calendar, read, known, None if explained.sealed else rest, error)


def _known(explained: ExplainedForecast, column: int) -> Float64[np.ndarray, "covariate horizon"]:
    """Return what each covariate known ahead adds."""
    effects = explained.effects
    return np.zeros((0, explained.horizon)) if effects is None else effects[explained.look_back :, :, column].T


def additive(network: IBForecast) -> AdditiveReadout | None:
    """Return the additive readout of a network; None if it has another one."""
    readout = network.readout
    inner = readout.readout if isinstance(readout, TargetsOnly) else readout
    return inner if isinstance(inner, AdditiveReadout) else None


@torch.no_grad()
def weights(engine: TorchEngine, explained: ExplainedForecast, column: int) -> Weights:
    """Return the published sum of one channel of an additive model, given phase and mask.

    With w the weights of the level, m those of a plain mean over open values, and A, B those of the readout:

        linear = A − w Σ A (+ w for the channel itself),  bent = B − m Σ B
        constant = Σ w Q of the channel + Σ A (Q − Σ w Q),  swing = −Σ A (Q − Σ w Q) (+ Q ahead + base − Σ w Q)
    """
    network, own = engine.fitted.network, explained.explanation
    readout, frame = additive(network), network.decompose.frame
    assert readout is not None
    assert isinstance(frame, SeasonalFrame)
    context = tensors(own).context
    base, both = (tensor[0].double().numpy() for tensor in readout.weights(context, column))
    opened = own.mask.repeat(own.patch_len, axis=0)
    linear, bent = (np.moveaxis(half, 0, -1) * opened[..., None] for half in np.moveaxis(both, 1, 0))
    season = own.context.expected(own.context.phase).astype(np.float64)
    past, ahead = season[: explained.look_back], season[explained.look_back :]
    of_level = np.where(opened, torch.softmax(frame.logits, dim=0).double().numpy(), 0.0)
    of_level = of_level / np.where(of_level.sum(axis=0) > 0, of_level.sum(axis=0), 1.0)
    count = opened.sum(axis=0).astype(np.float64)
    usual = (of_level * past).sum(axis=0)
    from_usual = np.where(opened, past - usual, 0.0)
    departure = np.where(opened, explained.units.standardise(explained.history) - past, 0.0)
    if (effects := explained.effects) is not None:
        moved = effects[: explained.look_back].sum(axis=1) / explained.units.std
        departure = np.where(opened, departure - moved, 0.0)
    swing = -np.einsum("ich,ic->ch", linear, from_usual)
    constant = usual[column] - swing.sum(axis=0)
    swing[column] += ahead[:, column] + base - usual[column]
    linear = linear - of_level[..., None] * linear.sum(axis=0)
    linear[:, column] += of_level[:, column, None]
    bent = (bent - bent.sum(axis=0) / np.maximum(count, 1)[:, None]) * opened[..., None]
    level = (of_level * departure).sum(axis=0)
    return Weights(
        constant=constant,
        swing=swing,
        linear=linear,
        bent=bent,
        departure=departure,
        squares=np.where(opened, (past + departure - level) ** 2, 0.0),
        usual_squares=np.where(opened, past**2, 0.0),
        doubt=frame.doubt.detach().exp().double().numpy(),
        count=count,
    )


@dataclass(frozen=True, eq=False)
class _WhatIf:
    """A window with the usual values, those of the explanation, and the mask through which the model runs."""

    network: IBForecast
    usual: Window
    values: Float[Tensor, "1 look_back channel"]
    mask: Bool[Tensor, "1 patch channel"]
    patch_len: int
    columns: list[int]

    def forecasts(self, actual: Bool[Tensor, "some patch channel"]) -> Float64[np.ndarray, "some horizon column"]:
        """Return the forecasts if only the marked tokens have their own values, and all others the usual ones."""
        chunks = [self._forecast(some)[..., self.columns] for some in torch.split(actual, CHUNK)]
        return torch.cat(chunks).double().numpy()

    def _forecast(self, actual: Bool[Tensor, "some patch channel"]) -> Float[Tensor, "some horizon channel"]:
        some = len(actual)
        marked = actual.repeat_interleave(self.patch_len, dim=1)
        usual = self.usual
        window = replace(
            usual,
            values=torch.where(marked, self.values, usual.values),
            observed=usual.observed.expand(some, -1, -1),
            phase=usual.phase.expand(some, -1),
            known=None if usual.known is None else usual.known.expand(some, -1, -1),
        )
        forecast: Tensor = self.network.through(window, self.mask.expand(some, -1, -1)).values
        return forecast


@torch.no_grad()
def _by_what_ifs(engine: TorchEngine, explained: ExplainedForecast, columns: Sequence[int]) -> list[Amounts]:
    own, known = explained.explanation, explained.known
    usual = np.where(np.isnan(explained.history), np.nan, explained.usual)
    question = _WhatIf(
        engine.fitted.network,
        engine.window(usual, own.context.phase, known),
        engine.window(explained.history, own.context.phase, known).values,
        torch.from_numpy(np.array(own.mask))[None],
        own.patch_len,
        list(columns),
    )
    opened = places(explained)
    read, error = _all_orders(question, opened) if len(opened) <= EVERY_ORDER else _drawn_orders(question, opened)
    _, calendar = engine.run(usual, own.context.phase, known)
    amounts = []
    for number, column in enumerate(columns):
        std = float(explained.units.std[column])
        own_error = None if error is None else error[..., number] * std
        own_calendar = calendar[:, column] - _known(explained, column).sum(axis=0)
        amounts.append(_with_rest(explained, column, own_calendar, read[..., number] * std, own_error))
    return amounts


def _all_orders(question: _WhatIf, opened: Places) -> tuple[AllMoves, None]:
    """Return the mean move of each token over all orders, from the forecasts of all sets of tokens."""
    count = len(opened)
    member = np.array(list(product([False, True], repeat=count)), dtype=bool).reshape(-1, count)
    forecasts = question.forecasts(_marks(question, opened, member))
    sizes, numbers = member.sum(axis=1), np.arange(2**count)
    moves = np.zeros((count, *forecasts.shape[1:]))
    for number in range(count):
        without = numbers[~member[:, number]]
        # `product` counts in binary, with the first token as the largest digit.
        gained = forecasts[without + 2 ** (count - 1 - number)] - forecasts[without]
        chances = np.array([1 / (count * comb(count - 1, size)) for size in sizes[without].tolist()])
        moves[number] = np.tensordot(chances, gained, axes=1)
    return moves, None


def _drawn_orders(question: _WhatIf, opened: Places) -> tuple[AllMoves, AllMoves]:
    """Return the mean move of each token over drawn orders, and its standard error."""
    random, count = np.random.default_rng(0), len(opened)
    pairs = []
    for order in (random.permutation(count) for _ in range(ORDERS)):
        pairs.append(np.mean([_moves(question, opened, each) for each in (order, order[::-1])], axis=0))
    return np.mean(pairs, axis=0), np.std(pairs, axis=0, ddof=1) / np.sqrt(ORDERS)


def _moves(question: _WhatIf, opened: Places, order: Int64[np.ndarray, " open"]) -> AllMoves:
    """Return by how much the forecast moves as each token gets its own value, in this order."""
    count = len(opened)
    member = np.zeros((count + 1, count), dtype=bool)
    member[:, order] = np.tri(count + 1, count, -1, dtype=bool)
    forecasts = question.forecasts(_marks(question, opened, member))
    moves = np.empty((count, *forecasts.shape[1:]))
    moves[order] = np.diff(forecasts, axis=0)
    return moves


def _marks(
    question: _WhatIf, opened: Places, member: Bool[np.ndarray, "some open"]
) -> Bool[Tensor, "some patch channel"]:
    """Return the marks of sets of open tokens."""
    marks = torch.zeros(len(member), *question.mask.shape[1:], dtype=torch.bool)
    for number, (patch, source) in enumerate(opened):
        marks[:, patch, source] = torch.from_numpy(member[:, number])
    return marks
