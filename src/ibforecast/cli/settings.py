"""The settings of a forecaster as options, for the verbs that fit one or many."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ibforecast.cli.shared import Command, device_option
from ibforecast.core.errors import UsageError
from ibforecast.zoo.recipes import DEFAULT

if TYPE_CHECKING:
    from ibforecast.forecaster import IBForecaster


class Cycle(click.ParamType[Any]):
    """A number of steps, several of them separated by commas, or "auto"."""

    name = "cycle"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Accept "auto" or whole numbers."""
        if value == "auto" or isinstance(value, int):
            return value
        lengths = [part.strip() for part in str(value).split(",")]
        if not all(length.isdecimal() for length in lengths):
            return self.fail(f"{value!r} is neither a number of steps nor 'auto'")
        return int(lengths[0]) if len(lengths) == 1 else tuple(map(int, lengths))


SETTINGS: list[Callable[[Any], Any]] = [
    click.option("--horizon", type=int, required=True, help="Number of steps to forecast."),
    click.option("--look-back", type=int, default=96, show_default=True, help="Number of steps a window spans."),
    click.option(
        "--budget", type=float, help="Largest fraction of a window that may be read; default: the recipe's (0.2)."
    ),
    click.option(
        "--cycle",
        type=Cycle(),
        default="auto",
        show_default=True,
        help="Steps of the seasonal profile, or several: 24,168.",
    ),
    click.option("--patch-len", type=int, help="Steps of a patch; must divide the look-back."),
    click.option("--time", help="Name of the time column; default: found."),
    click.option("--channels", help="Channels to read and forecast, separated by commas; default: all."),
    click.option("--past", help="Channels to read and not forecast, separated by commas."),
    click.option("--future", help="Columns that are known ahead, separated by commas."),
    click.option("--id", default="unique_id", show_default=True, help="Id column of a long table."),
    click.option("--target", default="y", show_default=True, help="Value column of a long table."),
    click.option("--freq", help="Frequency, e.g. 15min, 1h, 1d; default: inferred."),
    click.option("--zone", help="Time zone of times that have none, e.g. Europe/Berlin."),
    click.option("--irregular", type=click.Choice(["error", "by_row", "fill"]), default="error", show_default=True),
    click.option("--missing-value", type=float, multiple=True, help="A number that stands for nothing, e.g. -9999."),
    click.option("--split", default="0.7,0.1,0.2", show_default=True, help="Fractions to train, select and test on."),
    click.option("--recipe", default=DEFAULT, show_default=True, help="A recipe's name, or a path to a TOML file."),
    click.option("--epochs", type=click.IntRange(1), help="Train for so many at most; default: the recipe's."),
    click.option("--seed", type=int, default=2024, show_default=True),
    device_option,
]


def settings_options(command: Command) -> Command:
    """Add the options that say what is fitted and how tables are read."""
    for option in reversed(SETTINGS):
        command = option(command)
    return command


def forecaster_of(settings: dict[str, Any]) -> "IBForecaster":
    """Make the forecaster these options ask for."""
    from ibforecast.forecaster import IBForecaster

    told = dict(settings)
    names = {role: _names_in(told.pop(role)) for role in ("channels", "past", "future")}
    told |= {"missing_values": told.pop("missing_value"), "split": _fractions(told.pop("split"))}
    return IBForecaster(**told | names | {"channels": names["channels"] or None})


def _names_in(text: str | None) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",")] if text else []


def _fractions(text: str) -> tuple[float, float, float]:
    """Three numbers separated by commas."""
    try:
        train, validation, test = (float(part) for part in text.split(","))
    except ValueError as error:
        raise UsageError("split must be three numbers", repr(text), "try 0.7,0.1,0.2") from error
    return train, validation, test
