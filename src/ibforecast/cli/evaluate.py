"""ibforecast evaluate: the errors of a model, and how much it reads."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from ibforecast.cli.shared import budget_option, deliver, device_option, json_option

if TYPE_CHECKING:
    from ibforecast.use import Evaluation


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
    """Measure MODEL on a part of the TABLE it was fitted on, or on all of another, next to repeating the last cycle.

    \b
    ibforecast evaluate model load.csv
    ibforecast evaluate model next-year.csv --split all --json
    """
    from ibforecast.forecaster import IBForecaster

    result = IBForecaster.load(model, device).evaluate(table, split, budget=budget)
    text = (
        f"{result.windows} windows ({result.split}): MSE {result.mse:.4f}, MAE {result.mae:.4f} (standardised); "
        f"read {result.open_rate:.1%}, at most {result.largest_open_rate:.1%} of a window (budget {result.budget:.1%})"
    )
    deliver(result, f"{text}\n{_naive_line(result)}", as_json)


def _naive_line(result: "Evaluation") -> str:
    """Return a line with the errors of repeating the last cycle; it says if the model's are larger."""
    what = "value" if result.naive_cycle == 1 else f"{result.naive_cycle} steps"
    text = f"repeating the last {what}: MSE {result.naive_mse:.4f}, MAE {result.naive_mae:.4f}"
    larger = {"MSE": result.mse > result.naive_mse, "MAE": result.mae > result.naive_mae}
    worse = [name for name, is_larger in larger.items() if is_larger]
    return f"{text}; the model is worse in {' and '.join(worse)}" if worse else text
