"""Receipts of an explanation, comparisons of two, and drivers over a table.

The amounts of the latest explanations of a model are kept.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import asdict, dataclass, field, replace
from threading import Event
from typing import Any

from pydantic_core import to_json

from ibforecast.core.comparison import compare
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.receipt import Step, column_of, require_step
from ibforecast.data.tables import Table
from ibforecast.drivers import NAMES, By, chosen_starts, drivers_of
from ibforecast.engine import TorchEngine
from ibforecast.forecaster import IBForecaster
from ibforecast.plots import page
from ibforecast.plots.labels import MANY
from ibforecast.plots.scene import scene_of
from ibforecast.serve import wire
from ibforecast.serve.refusals import Refused, reading
from ibforecast.serve.tables import keep
from ibforecast.use import Desk

EXPLANATIONS_KEPT = 4
"""How many explanations of a model keep their amounts: a client requests several receipts of one, then of the next."""

VALUES_PER_PART = 5
"""The number of values in an entry of a receipt, and in one of drivers."""


@dataclass
class Itemised:
    """An explanation, and the channels whose amounts it has computed."""

    explained: ExplainedForecast
    names: set[str] = field(default_factory=set)


class Ledger:
    """The amounts of a model's latest explanations; only the worker of the model may use it."""

    def __init__(self) -> None:
        self._kept: dict[str, Itemised] = {}

    def itemise(
        self,
        forecaster: IBForecaster,
        explained: ExplainedForecast,
        names: Sequence[str],
        most: int,
        field: str = "explanation",
    ) -> ExplainedForecast:
        """Return the explanation with the amounts of these channels; compute those that are not kept.

        An explanation without its model, read from a document, is verified first; a refusal names `field`. At most
        `most` numbers are kept.
        """
        one = self._kept.get(explained.sha256) or Itemised(_hosted(forecaster, explained, field))
        fitting = max(most // max(explained.open_count * explained.horizon, 1), 1)
        if len(names) > fitting:
            raise Refused(
                413, f"a request must itemise at most {fitting} channels", len(names), "name fewer", "channel"
            )
        if len(one.names | set(names)) > fitting:
            one = Itemised(replace(one.explained))  # the copy has no amounts
        one.explained.amounts_of(names)
        one.names.update(names)
        keep(self._kept, explained.sha256, one, EXPLANATIONS_KEPT)
        return one.explained


def _hosted(forecaster: IBForecaster, explained: ExplainedForecast, field: str) -> ExplainedForecast:
    """Return an explanation with its model; refuse one that the model did not compute."""
    if explained.host is not None:
        return explained
    verification = forecaster.verify(explained)
    for check in verification.checks:
        if not check.passed:
            raise Refused(
                422,
                f"an explanation must be true to be itemised: {check.name}: {check.detail}",
                remedy="explain again",
                field=field,
            )
    return replace(explained, host=forecaster.desk)


def chosen_channels(explained: ExplainedForecast, channel: str | Sequence[str] | None) -> list[str]:
    """Return the channels of a request, in its order; all that are forecast if it names none."""
    forecast = [name for name in explained.channels if name not in explained.past]
    named = [channel] if isinstance(channel, str) else forecast if channel is None else list(dict.fromkeys(channel))
    with reading("channel"):
        for name in named:
            column_of(explained, name)
    if not named:
        raise Refused(422, "channel must name one that is forecast", "none", f"try {forecast[0]!r}", "channel")
    return named


def chosen_steps(explained: ExplainedForecast, step: int | str, channels: int, most: int) -> list[Step]:
    """Return the steps of a request; refuse it if the receipts of these channels would have too many entries."""
    steps: list[Any] = list(range(1, explained.horizon + 1)) if step == "every" else [step]
    with reading("step"):
        require_step(explained, steps[0])
    entries = explained.open_count + len(explained.covariates) + 2
    fitting = max(most // (VALUES_PER_PART * entries * channels), 1)
    if len(steps) > fitting:
        raise Refused(
            413,
            f"receipts of {channels} channels must be of at most {fitting} steps",
            len(steps),
            "name fewer channels, or a step",
            "step",
        )
    return steps


def written(explained: ExplainedForecast, channel: str, steps: Sequence[Step]) -> bytes:
    """Return the receipts of a channel as JSON, separated by commas."""
    return b",".join(_receipt(explained, channel, step).model_dump_json().encode() for step in steps)


def _receipt(explained: ExplainedForecast, channel: str, step: Step) -> wire.Receipt:
    own = explained.itemised(channel, step)
    return wire.Receipt(
        channel=channel,
        step=step,
        forecast=own.forecast,
        error=own.error,
        parts=[wire.Part(**asdict(part)) for part in own.parts(explained)],
        words=explained.in_words(channel, step),
    )


def chosen_channel(explained: ExplainedForecast, channel: str | None) -> str:
    """Return the channel of a comparison; it must be named unless only one is forecast."""
    first, *others = chosen_channels(explained, channel)
    if others:
        raise Refused(
            422, "a comparison is of one channel", f"{len(others) + 1} that are forecast", f"try {first!r}", "channel"
        )
    return first


def compared(
    model: str, explained: ExplainedForecast, other: ExplainedForecast, channel: str, step: Step
) -> wire.Comparison:
    """Return why the forecast of one explanation differs from that of another."""
    own = compare(explained, other, channel, step)
    errors = [receipt.error for receipt in (own.before, own.after) if receipt.error is not None]
    return wire.Comparison(
        model=model,
        channel=channel,
        step=step,
        at=own.made_after,
        other_at=own.made_before,
        sha256=explained.sha256,
        other_sha256=other.sha256,
        forecast=own.after.forecast,
        other_forecast=own.before.forecast,
        difference=own.difference,
        error=max(errors, default=None),
        decimals=own.decimals,
        totals=own.totals,
        reasons=[wire.Reason(**asdict(reason)) for reason in own.reasons()],
        words=own.in_words(),
        changes=[wire.Change(**asdict(change)) for change in own.changes],
    )


def shown_channels(explained: ExplainedForecast, channel: str | Sequence[str] | None) -> list[str]:
    """Return the channels that the page shows: the one that is named, or those that a picture itemises."""
    names = chosen_channels(explained, channel)
    return names if channel is not None else names[:MANY]


def on_page(explained: ExplainedForecast, names: Sequence[str], most: int) -> bytes:
    """Return the picture with receipts, and the receipts that the page shows, as JSON.

    One channel comes with every step; several only if a report would have them too.
    """
    one = names[0] if len(names) == 1 else None
    receipts = page.receipts(explained, names, None if one is None else most)
    return to_json({"scene": scene_of(explained, one).document(), "receipts": receipts})


def drivers(
    name: str,
    desk: Desk,
    table: str,
    source: Table,
    count: int,
    channel: str | None,
    by: By | None,
    most: int,
    stopped: Event,
) -> bytes:
    """Average the receipts of `count` windows of a table, as JSON; raise CancelledError once `stopped` is set."""
    config, engine = desk.fitted.config, TorchEngine(desk.fitted)
    targets = 1 if channel is not None else config.channels - config.past
    rows = targets * config.channels * (config.patches + (0 if by is None else len(NAMES[by])))
    if targets > 1 and rows * VALUES_PER_PART > most:
        raise Refused(
            413,
            f"drivers of all channels must have at most {most // VALUES_PER_PART} rows",
            f"up to {rows}",
            "name a channel",
            "channel",
        )
    with reading("table"):
        usable = desk.windows(source.series, "all")
    with reading("by"):
        starts = chosen_starts(usable, source.series.clock, count, by, "all")

    def explanations() -> Iterator[ExplainedForecast]:
        for start in starts:
            if stopped.is_set():
                raise CancelledError
            explained = desk.explain(source, start)
            chosen_channels(explained, channel)
            yield explained

    with reading("table"):
        averaged = drivers_of(engine, explanations(), None if channel is None else [channel])
    with reading("by"):
        grouped = None if by is None else averaged.by(by)
    words = averaged.in_words() if grouped is None else grouped.in_words()
    answer = wire.Drivers(model=name, table=table, words=words, **averaged.document(grouped))
    return answer.model_dump_json().encode()
