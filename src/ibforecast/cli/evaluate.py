"""ibforecast evaluate: the errors of a model, and how much it reads."""

from collections.abc import Iterator
from math import inf, isinf
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from ibforecast.cli.shared import budget_option, deliver, device_option, json_option, load_model

if TYPE_CHECKING:
    from ibforecast.use import ChannelEvaluation, Evaluation
    from ibforecast.zoo.saved import Behind

MOST_CHANNELS = 10
"""Channels that are printed."""

MOST_WRITTEN_OUT = 1e15


@click.command("evaluate")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("table")
@click.option("--split", type=click.Choice(["train", "validation", "test", "all"]), default="test", show_default=True)
@budget_option
@device_option
@json_option
def command(
    model: Path,
    table: str,
    split: Literal["train", "validation", "test", "all"],
    budget: float | None,
    device: str,
    as_json: bool,
) -> None:
    """Measure MODEL on a part of the TABLE it was fitted on, or on all of another, next to the best naive forecast.

    \b
    ibforecast evaluate model load.csv
    ibforecast evaluate model next-year.csv --split all --json
    """
    from ibforecast.core.words import count_of

    result = load_model(model, table, device).evaluate(table, split, budget=budget)
    text = (
        f"{count_of(result.windows, 'window')} ({result.split}): MSE {result.mse:.4f}, MAE {result.mae:.4f} "
        f"(standardised); read {result.open_rate:.1%}, at most {result.largest_open_rate:.1%} of a window "
        f"(budget {result.budget:.1%})"
    )
    deliver(result, "\n".join([text, _naive_line(result), *_seasonal_line(result), *_channel_lines(result)]), as_json)


def _naive_line(result: "Evaluation") -> str:
    """Return a line with the errors of the best naive forecast; it says if the model's are larger."""
    return _yardstick(_repeating(result.naive_cycle), result, result.naive_mse, result.naive_mae)


def _seasonal_line(result: "Evaluation") -> Iterator[str]:
    """Yield a line with the errors of the mean of the training rows, if it was measured."""
    if result.seasonal_mse is not None and result.seasonal_mae is not None:
        name = f"mean of the training rows by phase of {result.seasonal_cycle} steps"
        yield _yardstick(name, result, result.seasonal_mse, result.seasonal_mae)


def _yardstick(name: str, result: "Evaluation", mse: float, mae: float) -> str:
    text = f"{name}: MSE {mse:.4f}, MAE {mae:.4f}"
    larger = {"MSE": result.mse > mse, "MAE": result.mae > mae}
    worse = [name for name, is_larger in larger.items() if is_larger]
    return f"{text}; the model is worse in {' and '.join(worse)}" if worse else text


def _channel_lines(result: "Evaluation") -> Iterator[str]:
    """Yield a line for each channel, the one with the worst ratio to its best naive forecast first."""
    rows = sorted(result.channels, key=lambda row: -_ratio(row))
    width = max((len(row.channel) for row in rows[:MOST_CHANNELS]), default=0)
    yield "in units, each channel next to its best naive forecast, the worst first:"
    for row in rows[:MOST_CHANNELS]:
        yield f"  {row.channel:<{width}}  MAE {_in_units(row.mae)}, {next_to_naive(row)}, {_in_units(row.naive_mae)}"
    if len(rows) > MOST_CHANNELS:
        yield f"  and {len(rows) - MOST_CHANNELS} other channels; --json has them"


def _in_units(error: float) -> str:
    """Return an error with four digits; one of many digits is written out as people write it, without an exponent."""
    return f"{error:,.0f}" if 1e4 <= error < MOST_WRITTEN_OUT else f"{error:.4g}"


def next_to_naive(row: "ChannelEvaluation | Behind") -> str:
    """Return the error of a channel next to that of its best naive forecast, as a percentage unless that is 0."""
    ratio, naive = _ratio(row), _repeating(row.naive_cycle)
    return f"worse than {naive}" if isinf(ratio) else f"{ratio:.0%} of {naive}"


def _ratio(row: "ChannelEvaluation | Behind") -> float:
    return row.mae / row.naive_mae if row.naive_mae else inf if row.mae else 1.0


def _repeating(cycle: int) -> str:
    return f"repeating the last {'value' if cycle == 1 else f'{cycle} steps'}"
