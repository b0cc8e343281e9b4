"""Computing receipts: what each value that was read adds to a forecast.

An additive readout gives the amounts in closed form. For any other, each amount is a Shapley value: by how much the
forecast moves if the value is what it was instead of the usual one, averaged over the orders in which values could be
put in. Every move is computed exactly, by the whole model, through the same mask.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import comb

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int, Int64
from torch import Tensor
from torch.nn.functional import one_hot

from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.explanation import Explanation
from ibforecast.core.receipt import Amounts, is_limited, places
from ibforecast.core.window import Window
from ibforecast.engine import TorchEngine, tensors
from ibforecast.model.network import IBForecast
from ibforecast.model.stage1_decompose import Anchor, SeasonalFrame
from ibforecast.model.stage4_readout import AdditiveReadout, TargetsOnly

EVERY_ORDER = 8
"""Up to this number of open tokens all orders are used; above it, orders are drawn."""

ORDERS, MOST_ORDERS, MOVES = 2, 8, 1024
"""How many orders are drawn: as many as give about MOVES moves, at least ORDERS and at most MOST_ORDERS.

Each is used forwards and backwards, so that two values share evenly what both add.
"""

VALUES = 2**25
"""How many values of windows are computed at once, which limits the memory."""

CACHED = 2**18
"""How many values of windows are read at once, so that all that is computed of them stays in the processor's cache."""

PerValue = Float64[np.ndarray, " value"]
PerChannel = Float64[np.ndarray, " channel"]
PerStep = Float64[np.ndarray, " horizon"]
Moves = Float64[np.ndarray, "open horizon"]
AllMoves = Float64[np.ndarray, "open horizon column"]
Places = list[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Read:
    """The values that an additive model read, channel by channel and from old to new, in standardised units.

    `channel` and `step` are the place of each in the window, and `departure` is u, how far it is from the usual one.
    The scale of a channel follows from the profile Q (`season`) and the weights of the level (`of_level`):

        σ² = (doubt + Σ (Q + u − Σ of_level · u)²) / (doubt + count)
    """

    channel: Int64[np.ndarray, " value"]
    step: Int64[np.ndarray, " value"]
    departure: PerValue
    season: PerValue
    of_level: PerValue
    doubt: PerChannel

    @cached_property
    def count(self) -> PerChannel:
        """The number of values that were read of each channel."""
        return np.asarray(np.bincount(self.channel, minlength=len(self.doubt)), dtype=np.float64)

    @cached_property
    def squares(self) -> PerValue:
        """The squared distance of each value from the level."""
        level = self.summed((self.of_level * self.departure)[:, None])[:, 0]
        return np.asarray((self.season + self.departure - level[self.channel]) ** 2)

    @cached_property
    def scale(self) -> PerChannel:
        """The scale of each channel."""
        return self._scale(self.squares)

    @cached_property
    def usual_scale(self) -> PerChannel:
        """The scale of each channel if every value is the usual one."""
        return self._scale(self.season**2)

    @cached_property
    def shares(self) -> PerValue:
        """By how much each value changes the scale of its channel, in proportion to its share of the squared change."""
        widths = (self.doubt + self.count) * (self.scale + self.usual_scale)
        return np.asarray((self.squares - self.season**2) / widths[self.channel])

    def summed(self, rows: Float64[np.ndarray, "value some"]) -> Float64[np.ndarray, "channel some"]:
        """Return the sum over the values of each channel."""
        sums, present = np.zeros((len(self.doubt), rows.shape[1])), self.count > 0
        if present.any():
            ends = np.cumsum(self.count[present]).astype(np.int64)
            sums[present] = np.add.reduceat(rows, [0, *ends[:-1]], axis=0)
        return sums

    def _scale(self, squares: PerValue) -> PerChannel:
        total = self.doubt + self.summed(squares[:, None])[:, 0]
        return np.asarray(np.sqrt(total / (self.doubt + self.count)))


@dataclass(frozen=True, eq=False)
class Weights:
    """One channel's forecast as a published sum, for every step ahead; everything in standardised units.

    With u the departure of each value from the usual one, and σ the scale of each channel that is read:

        Ŷ = constant + Σ_channels swing · σ + Σ_values (linear · u + bent · tanh u)
    """

    constant: PerStep
    swing: Float64[np.ndarray, "channel horizon"]
    linear: Float64[np.ndarray, "value horizon"]
    bent: Float64[np.ndarray, "value horizon"]
    read: Read

    @property
    def calendar(self) -> PerStep:
        """The forecast if every value is the usual one."""
        return np.asarray(self.constant + self.read.usual_scale @ self.swing)

    @property
    def added(self) -> Float64[np.ndarray, "value horizon"]:
        """The amount of each value, which it adds to the calendar as itself and through the scale."""
        read = self.read
        own = self.linear * read.departure[:, None] + self.bent * np.tanh(read.departure)[:, None]
        return np.asarray(own + read.shares[:, None] * self.swing[read.channel])


def amounts(engine: TorchEngine, explained: ExplainedForecast, columns: Sequence[int]) -> list[Amounts]:
    """Return what adds up to the forecast of each of these channels, at every step."""
    if additive(engine.fitted.network) is None:
        return _by_what_ifs(engine, explained, columns)
    return [_in_closed_form(explained, column, sums) for column, sums in weights(engine, explained, columns).items()]


def _in_closed_form(explained: ExplainedForecast, column: int, sums: Weights) -> Amounts:
    std, patch_len = float(explained.units.std[column]), explained.explanation.patch_len
    tokens = sums.added.reshape(-1, patch_len, explained.horizon).sum(axis=1) * std
    # The values of a receipt are in the order of the mask's rows: by patch, and then by channel.
    order = np.lexsort((sums.read.channel[::patch_len], sums.read.step[::patch_len]))
    return _with_rest(explained, column, sums.calendar * std + explained.units.mean[column], tokens[order])


def _with_rest(
    explained: ExplainedForecast, column: int, calendar: PerStep, read: Moves, error: Moves | None = None
) -> Amounts:
    """Return the amounts of a channel; for a model that is not sealed, the rest of the forecast is `unread`."""
    known = _known(explained, column)
    rest = explained.computed[:, column] - calendar - read.sum(axis=0) - known.sum(axis=0)
    limit = (explained.forecast - explained.computed)[:, column] if is_limited(explained, column) else None
    return Amounts(calendar, read, known, None if explained.sealed else rest, limit, error)


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
def weights(engine: TorchEngine, explained: ExplainedForecast, columns: Sequence[int]) -> dict[int, Weights]:
    """Return the published sums of these channels of an additive model, given phase and mask.

    With w the weights of the level, m those of a plain mean over open values, and A, B those of the readout:

        linear = A − w Σ A (+ w for the channel itself),  bent = B − m Σ B
        constant = Σ w Q of the channel + Σ A (Q − Σ w Q),  swing = −Σ A (Q − Σ w Q) (+ Q ahead + base − Σ w Q)

    An anchor with the share s of a channel multiplies all of this by 1 − s. With n its weight for each value of the
    channel, it adds n to `linear` and Σ n Q to `constant`. Medians of training, times their shares, add to `constant`.
    """
    network, own = engine.fitted.network, explained.explanation
    readout, frame = additive(network), network.decompose.frame
    assert readout is not None
    assert isinstance(frame, SeasonalFrame)
    season = own.context.expected(own.context.phase).astype(np.float64)
    read = _read(explained, season, frame)
    context, places = tensors(own).context, torch.from_numpy(np.stack([read.channel, read.step], axis=1))
    usual = read.summed((read.of_level * read.season)[:, None])[:, 0]
    from_usual = (read.season - usual[read.channel])[:, None]
    sums, anchor = {}, network.decompose.anchor
    for column in dict.fromkeys(columns):
        base, both = (tensor[0].double().numpy() for tensor in readout.weights(context, column, places))
        linear, bent = both
        swing = -read.summed(linear * from_usual)
        constant = usual[column] - swing.sum(axis=0)
        swing[column] += season[explained.look_back :, column] + base - usual[column]
        through_level = read.of_level[:, None] * ((read.channel == column)[:, None] - read.summed(linear)[read.channel])
        centred = bent - (read.summed(bent) / np.maximum(read.count, 1)[:, None])[read.channel]
        plain = Weights(constant, swing, linear + through_level, centred, read)
        sums[column] = plain if anchor is None else _anchored(plain, column, anchor, explained)
    return sums


def _anchored(sums: Weights, column: int, anchor: Anchor, explained: ExplainedForecast) -> Weights:
    """Return the published sum of a channel with its anchor."""
    kept, own = 1 - explained.explanation.context.anchored[column].astype(np.float64), sums.read.channel == column
    naive = np.zeros_like(sums.linear)
    naive[own] = _naive(anchor, column, explained)[sums.read.step[own]]
    medians = anchor.of_medians(tensors(explained.explanation).context.phase[:, explained.look_back :])
    resting = 0.0 if medians is None else medians[0, :, column].double().numpy()
    return replace(
        sums,
        constant=kept * sums.constant + sums.read.season @ naive + resting,
        swing=kept * sums.swing,
        linear=kept * sums.linear + naive,
        bent=kept * sums.bent,
    )


def _naive(anchor: Anchor, column: int, explained: ExplainedForecast) -> Float64[np.ndarray, "look_back horizon"]:
    """Return the weight of each step of a channel in the anchor of its forecast."""
    own, look_back = explained.explanation, explained.look_back
    seen = torch.from_numpy(own.mask[:, column].repeat(own.patch_len))[:, None]
    # An anchor is linear in the values, so that its forecasts of windows with a single 1 are its weights. It forecasts
    # each channel by itself, so the windows have only this one.
    weights = np.zeros((look_back, explained.horizon))
    for steps in torch.split(seen.nonzero()[:, 0], max(VALUES // look_back, 1)):
        single = one_hot(steps, look_back).float()[..., None]
        each = anchor.each(single, seen.expand(len(steps), -1, -1), explained.horizon)[..., 0]
        weights[steps] = torch.einsum("a,abh->bh", anchor.blend[: len(each), column], each).double().numpy()
    return weights


def _read(explained: ExplainedForecast, season: Float64[np.ndarray, "steps channel"], frame: SeasonalFrame) -> Read:
    """Return the values that were read, given the profile at every step."""
    own = explained.explanation
    channel, step = np.nonzero(own.mask.repeat(own.patch_len, axis=0).T)
    departure = (explained.units.standardise(explained.history) - season[: explained.look_back])[step, channel]
    if (effects := explained.effects) is not None:
        departure = departure - (effects[: explained.look_back].sum(axis=1) / explained.units.std)[step, channel]
    of_level = torch.softmax(frame.logits, dim=0).double().numpy()[step, channel]
    doubt = frame.doubt.exp().double().numpy()
    total = np.bincount(channel, of_level, minlength=len(doubt))
    of_level = of_level / np.where(total > 0, total, 1.0)[channel]
    return Read(channel, step, departure, season[step, channel], of_level, doubt)


@dataclass(frozen=True, eq=False)
class _WhatIf:
    """A window with the usual values, those of the explanation, and the mask through which the model runs."""

    network: IBForecast
    usual: Window
    values: Float[Tensor, "1 look_back channel"]
    mask: Bool[Tensor, "1 patch channel"]
    patch_len: int
    columns: list[int]

    @property
    def together(self) -> int:
        """How many windows are computed at once."""
        return max(VALUES // self.values.numel(), 1)

    def forecasts(
        self, marks: Bool[Tensor, "version patch channel"], which: Int64[np.ndarray, "some channel"]
    ) -> Float64[np.ndarray, "some horizon column"]:
        """Return the forecasts of windows in which only marked tokens have their own values, others the usual ones.

        The channels of a window may have different versions: `which` has the row of `marks` of each channel. Level,
        scale and evidence of a channel depend only on that channel, so they are computed once per version.
        """
        versions, parts = self._read(marks), torch.split(torch.from_numpy(which), self.together)
        return torch.cat([self._forecast(versions, part) for part in parts]).double().numpy()

    def _read(self, marks: Bool[Tensor, "version patch channel"]) -> Explanation[Tensor]:
        """Read the windows in which every channel is of the same version."""
        parts = [self._read_part(some) for some in torch.split(marks, max(CACHED // self.values.numel(), 1))]
        return parts[0].map(lambda row, array: torch.cat([row.of(part) for part in parts]) if row.batched else array)

    def _read_part(self, marks: Bool[Tensor, "version patch channel"]) -> Explanation[Tensor]:
        count, usual = len(marks), self.usual
        window = replace(
            usual,
            values=torch.where(marks.repeat_interleave(self.patch_len, dim=1), self.values, usual.values),
            observed=usual.observed.expand(count, -1, -1),
            phase=usual.phase.expand(count, -1),
            known=None if usual.known is None else usual.known.expand(count, -1, -1),
        )
        return self.network.read_through(window, self.mask.expand(count, -1, -1))

    def _forecast(
        self, versions: Explanation[Tensor], which: Int[Tensor, "some channel"]
    ) -> Float[Tensor, "some horizon column"]:
        some, usual, shared, columns = len(which), self.usual, versions.context, self.columns
        level, scale = (each.gather(0, which) for each in (shared.level, shared.scale))
        known = None if usual.known is None else usual.known.expand(some, -1, -1)
        anchor, blend = shared.anchor, shared.blend
        context = replace(
            shared, level=level, scale=scale, phase=usual.phase.expand(some, -1), known=known, anchor=None, blend=None
        )
        mask = versions.mask[:1].to(versions.evidence.dtype).expand(some, -1, -1)
        future = self.network.readout.of_versions(versions.evidence, which, mask, context, columns)
        response = None if context.response is None else context.response[..., columns]
        if anchor is not None and blend is not None:
            anchor, blend = anchor.transpose(1, 2)[which[:, columns], columns].transpose(1, 2), blend[:, columns]
        own = replace(
            context,
            level=level[:, columns],
            scale=scale[:, columns],
            profile=context.profile[:, columns],
            response=response,
            anchor=anchor,
            blend=blend,
        )
        forecast: Tensor = own.restore(future)
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
    count, channels = len(opened), question.mask.shape[2]
    member = np.array(list(product([False, True], repeat=count)), dtype=bool).reshape(-1, count)
    numbers = np.arange(2**count)
    marks = torch.zeros(2**count, *question.mask.shape[1:], dtype=torch.bool)
    for number, (patch, source) in enumerate(opened):
        marks[:, patch, source] = torch.from_numpy(member[:, number])
    forecasts = question.forecasts(marks, np.tile(numbers[:, None], channels))
    sizes = member.sum(axis=1)
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
    random, count = np.random.default_rng(0), orders_of(len(opened))
    drawn = [random.permutation(len(opened)) for _ in range(count)]
    moves = _moves(question, opened, [each for order in drawn for each in (order, order[::-1])])
    pairs = moves.reshape(count, 2, *moves.shape[1:]).mean(axis=1)
    return pairs.mean(axis=0), pairs.std(axis=0, ddof=1) / np.sqrt(count)


def orders_of(opened: int) -> int:
    """Return how many orders are drawn for a number of open tokens."""
    return max(ORDERS, min(MOST_ORDERS, MOVES // opened))


def _moves(
    question: _WhatIf, opened: Places, orders: Sequence[Int64[np.ndarray, " open"]]
) -> Float64[np.ndarray, "order open horizon column"]:
    """Return by how much the forecast moves as each token gets its own value, in each of these orders."""
    # No version of a channel is in windows of two orders, so orders are computed apart unless they are short.
    each = max(question.together // (len(opened) + 1), 1)
    parts = [_in_orders(question, opened, orders[first : first + each]) for first in range(0, len(orders), each)]
    return np.concatenate(parts)


def _in_orders(
    question: _WhatIf, opened: Places, orders: Sequence[Int64[np.ndarray, " open"]]
) -> Float64[np.ndarray, "order open horizon column"]:
    """Return the moves in some orders: in version n of an order, the first n tokens of every channel are its own."""
    count, (_, patches, channels) = len(opened), question.mask.shape
    patch, source = np.array(opened).T
    versions = int(np.bincount(source).max()) + 1
    marks = np.zeros((len(orders), versions, patches, channels), dtype=bool)
    which = np.zeros((len(orders), count + 1, channels), dtype=np.int64)
    for number, order in enumerate(orders):
        which[number, np.arange(1, count + 1), source[order]] = 1
        np.cumsum(which[number], axis=0, out=which[number])
        before = which[number, np.arange(count), source[order]]
        marks[number, :, patch[order], source[order]] = np.arange(versions) > before[:, None]
        which[number] += number * versions
    forecasts = question.forecasts(torch.from_numpy(marks.reshape(-1, patches, channels)), which.reshape(-1, channels))
    steps = np.diff(forecasts.reshape(len(orders), count + 1, *forecasts.shape[1:]), axis=1)
    moves = np.empty_like(steps)
    for number, order in enumerate(orders):
        moves[number, order] = steps[number]
    return moves
