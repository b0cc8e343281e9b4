"""A receipt in words: the forecast, the calendar, what moved it most, and the rest, in numbers that add up."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ibforecast.core import anchors, words
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.receipt import (
    COARSE,
    Receipt,
    Step,
    adding_up,
    column_of,
    decimals_of,
    places,
    require_step,
    rounded,
    shown,
)

LINES = 8
"""The largest number of lines."""

NAMED = 2
"""How many places are named in the line of one channel of several."""


@dataclass(frozen=True)
class Run:
    """Consecutive places of a channel that were read: the first and the last patch, and the amount of each."""

    column: int
    first: int
    last: int
    amounts: tuple[float, ...]

    @property
    def amount(self) -> float:
        """The sum of the amounts."""
        return sum(self.amounts)


def in_words(explained: ExplainedForecast, channel: str | None, step: Step) -> str:
    """Describe the receipt of one channel, or in one line each those of all channels that are forecast."""
    require_step(explained, step)
    forecast = [name for name in explained.channels if name not in explained.past]
    if channel is None and len(forecast) == 1:
        channel = forecast[0]
    if channel is not None:
        column_of(explained, channel)
        return "\n".join(_of_one(explained, explained.itemised(channel, step)))
    moment = f"{'Mean forecast' if _several(explained, step) else 'Forecast'} of {_when(explained, step)}"
    listed = forecast if len(forecast) <= LINES - 2 else forecast[: LINES - 3]
    lines = [f"{moment}, made at {explained.moments[explained.look_back - 1]}{explained.zone}."]
    lines += [_line(explained, explained.itemised(name, step)) for name in listed]
    if others := len(forecast) - len(listed):
        lines.append(f"{others} other channels are forecast; name one to see its receipt.")
    return "\n".join([*lines, *_promise(explained)])


def _of_one(explained: ExplainedForecast, receipt: Receipt) -> Iterator[str]:
    column = column_of(explained, receipt.channel)
    when = f"{'mean of ' if _several(explained, receipt.step) else ''}{_when(explained, receipt.step)}{explained.zone}"
    notes = _notes(explained, receipt, column, LINES - 4 - bool(receipt.known))
    room = LINES - 3 - bool(receipt.known) - len(notes)
    runs, large = _ranked(explained, receipt, column)
    most = len(runs) if len(runs) <= min(room, large) + 1 else min(room, large)
    kept, rest = runs[:most], runs[most:]
    values = [receipt.calendar, *(run.amount for run in kept), sum((run.amount for run in rest), 0.0), *receipt.known]
    printed, decimals = _printed(explained, receipt, values, 1 + len(kept) if rest else None)
    total, calendar, amounts = printed[0], printed[1], printed[2:]
    yield f"{receipt.channel}, {when}: {total}{_against_before(explained, receipt, column, decimals)}."
    yield f"Calendar: {calendar}, the forecast if every value that was read had been at its learned profile."
    for run, amount in zip(kept, amounts, strict=False):
        yield f"{_place(explained, run)}: {amount} ({_event(explained, run)})."
    if rest:
        count = sum(run.last - run.first + 1 for run in rest)
        yield f"{count} {'other ' * bool(kept)}{_unit(explained)} together: {amounts[len(kept)]}."
    if receipt.known:
        named = zip(explained.covariates, amounts[len(kept) + 1 :], strict=False)
        yield f"Known ahead: {', '.join(f'{name} {amount}' for name, amount in named)}."
    others = iter(amounts[len(kept) + 1 + len(receipt.known) :])
    for note in notes:
        yield note.replace("{}", next(others)) if "{}" in note else note


def _notes(explained: ExplainedForecast, receipt: Receipt, column: int, most: int) -> list[str]:
    """Return the last lines. If there are more than `most`, those without an amount are joined to one."""
    amounts = [*_limited(explained, receipt), *_seen_elsewhere(receipt)]
    remarks = [*_anchor(explained, column), *_promise(explained), *_sampled(receipt)]
    return [*amounts, *(remarks if len(amounts) + len(remarks) <= most else [" ".join(remarks)])]


def _line(explained: ExplainedForecast, receipt: Receipt) -> str:
    """Return the receipt of one channel of several: calendar, what was read, and the places that moved it most."""
    column = column_of(explained, receipt.channel)
    known = [sum(receipt.known, 0.0)] if receipt.known else []
    printed, decimals = _printed(explained, receipt, [receipt.calendar, sum(receipt.read, 0.0), *known], 1, False)
    runs, large = _ranked(explained, receipt, column)
    largest = runs[: min(large, NAMED)]
    named = ", ".join(f"{shown(run.amount, decimals, '+')} by {_place(explained, run)}" for run in largest)
    most = f" (most: {named})" if named else ""
    ahead = f", known ahead {printed[3]}" if known else ""
    others = iter(printed[3 + len(known) :])
    limit = f", limit {next(others)}" if rounded(receipt.limit or 0.0, decimals) else ""
    elsewhere = f", unread {next(others)}" if receipt.unread is not None else ""
    head = f"{receipt.channel} {printed[0]}{_against_before(explained, receipt, column, decimals)}"
    return f"{head}: calendar {printed[1]}, values read {printed[2]}{most}{ahead}{limit}{elsewhere}."


def _printed(
    explained: ExplainedForecast, receipt: Receipt, amounts: list[float], rest: int | None, every_limit: bool = True
) -> tuple[list[str], int]:
    """Return the forecast and its amounts as text, rounded so that they add up, and the number of decimals.

    The amount with the number `rest`, if there is one, takes what rounding leaves. A limit that is not 0 is one of the
    amounts. One that would be printed as 0 is left out unless `every_limit`.
    """
    decimals = decimals_of(float(explained.units.std[column_of(explained, receipt.channel)]), COARSE)
    limit = [receipt.limit] if receipt.limit and (every_limit or rounded(receipt.limit, decimals)) else []
    every = [*amounts, *limit, *(() if receipt.unread is None else (receipt.unread,))]
    first, *others = adding_up(every, receipt.forecast, decimals, kept=1, rest=rest)
    signed = (shown(amount, decimals, "+") for amount in others)
    return [shown(receipt.forecast, decimals), shown(first, decimals), *signed], decimals


def _ranked(explained: ExplainedForecast, receipt: Receipt, column: int) -> tuple[list[Run], int]:
    """Return all runs, the largest first, and how many are printed as more than 0; at least 1."""
    runs = sorted(_runs(explained, receipt), key=lambda run: -abs(run.amount))
    decimals = decimals_of(float(explained.units.std[column]), COARSE)
    return runs, max(1, sum(rounded(run.amount, decimals) != 0 for run in runs))


def _runs(explained: ExplainedForecast, receipt: Receipt) -> Iterator[Run]:
    """Yield the runs of consecutive places of each channel."""
    amounts = dict(zip(places(explained), receipt.read, strict=True))
    for column in range(len(explained.channels)):
        patches = sorted(patch for patch, source in amounts if source == column)
        cuts = [0, *(at + 1 for at, (one, other) in enumerate(pairwise(patches)) if other > one + 1), len(patches)]
        for begin, stop in pairwise(cuts):
            run = patches[begin:stop]
            if run:
                yield Run(column, run[0], run[-1], tuple(amounts[patch, column] for patch in run))


def _when(explained: ExplainedForecast, step: Step) -> str:
    """Return the moment of a step ahead, or the first and the last one of the horizon."""
    ahead = explained.moments[explained.look_back :]
    if _several(explained, step):
        return words.span_between(ahead[0], ahead[-1])
    return ahead[0 if step == "mean" else step - 1]


def _several(explained: ExplainedForecast, step: Step) -> bool:
    return step == "mean" and explained.horizon > 1


def _place(explained: ExplainedForecast, run: Run) -> str:
    steps, moments = _steps(explained, run), explained.moments
    return f"{explained.channels[run.column]} {words.span_between(moments[steps[0]], moments[steps[-1]])}"


def _steps(explained: ExplainedForecast, run: Run) -> range:
    return range(explained.steps(run.first).start, explained.steps(run.last).stop)


def _event(explained: ExplainedForecast, run: Run) -> str:
    """Return the value that differs most from its profile, and the profile there.

    Values of places that moved the forecast the other way are passed over: they do not explain the sum.
    """
    steps, moments = _steps(explained, run), explained.moments
    value, usual = explained.history[steps, run.column], explained.usual[steps, run.column]
    same_way = np.repeat(np.multiply(run.amounts, run.amount) >= 0, explained.patch_len)
    largest = int(np.argmax(np.where(same_way, np.abs(value - usual), -1.0)))
    decimals = decimals_of(float(explained.units.std[run.column]), COARSE)
    # Next to a span of one date, the time of day is enough.
    is_one_day = words.without_date(moments[steps[-1]], moments[steps[0]]) != moments[steps[-1]]
    at = moments[steps[largest]]
    when = "" if len(steps) == 1 else f" at {words.without_date(at, at) if is_one_day else at}"
    return f"{shown(value[largest], decimals)}{when}, profile {shown(usual[largest], decimals)}"


def _against_before(explained: ExplainedForecast, receipt: Receipt, column: int, decimals: int) -> str:
    """Say how the mean forecast differs from that of as many steps before it, or one step from a cycle earlier.

    Empty if the window does not have all of these values.
    """
    cycle, now = explained.cycles[0], explained.look_back
    if receipt.step == "mean":
        several = f"the mean of the {explained.clock.lasting(explained.horizon)} before"
        first, before = now - explained.horizon, several if explained.horizon > 1 else "the value before"
        earlier = explained.history[max(first, 0) :, column]
    else:
        first = now + (receipt.step - 1) % cycle - cycle
        earlier, before = explained.history[max(first, 0) : first + 1, column], _ago(explained, cycle)
    if first < 0 or np.isnan(earlier).any():
        return ""
    change = receipt.forecast - float(earlier.mean())
    if not round(change, decimals):
        return f", the same as {before}"
    return f", {abs(change):.{decimals}f} {'above' if change > 0 else 'below'} {before}"


def _ago(explained: ExplainedForecast, steps: int) -> str:
    """Return "the value a day before", or "the value 24 steps before" if steps are not of a day."""
    length = explained.clock.lasting(steps)
    return f"the value {length if length[0].isdecimal() else f'one {length}'} before"


def _unit(explained: ExplainedForecast) -> str:
    return "values" if explained.patch_len == 1 else "tokens"


def _limited(explained: ExplainedForecast, receipt: Receipt) -> list[str]:
    """Return the line of the limits, if they change the forecast."""
    if not receipt.limit or explained.limits is None:
        return []
    column, limits = column_of(explained, receipt.channel), explained.limits
    one = slice(None) if receipt.step == "mean" else slice(receipt.step - 1, receipt.step)
    computed, forecast = explained.computed[one, column], explained.forecast[one, column]
    counts = {
        f"raised to {limits.low[column]:g}": int(((computed < limits.low[column]) & (forecast > computed)).sum()),
        f"lowered to {limits.high[column]:g}": int(((computed > limits.high[column]) & (forecast < computed)).sum()),
    }
    counts["rounded"] = int((computed != forecast).sum()) - sum(counts.values())
    done = {what: count for what, count in counts.items() if count}
    if len(computed) > 1:
        return [
            f"Limit: {', '.join(f'{count} of {len(computed)} steps {what}' for what, count in done.items())}: {{}}."
        ]
    return [f"Limit: {', '.join(done)}: {{}}."]


def _seen_elsewhere(receipt: Receipt) -> list[str]:
    return [] if receipt.unread is None else ["Unread values, through the choice of places or the level: {}."]


def _anchor(explained: ExplainedForecast, column: int) -> list[str]:
    """Return the line of each naive forecast in that of a channel."""
    context = explained.explanation.context
    if context.blend is None:
        return []
    shares = anchors.in_words(context.blend, context.cycles, explained.look_back, column)
    return [f"Anchor: {share}." for share in shares]


def _sampled(receipt: Receipt) -> list[str]:
    if not receipt.error:  # exact, or one value that has no order
        return []
    error = f"{float(f'{receipt.error:.2g}'):g}"  # two digits, and 160 rather than 1.6e+02
    return [f"The amounts are estimates, with a standard error of at most {error}; their sum is exact."]


def _promise(explained: ExplainedForecast) -> list[str]:
    return ["No value that was not read can change this forecast."] if explained.sealed else []
