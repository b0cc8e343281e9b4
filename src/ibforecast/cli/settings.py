"""The settings of a forecaster as options, for the verbs that fit many: those of `fit`, defined there."""

from typing import TYPE_CHECKING, Any

import click

from ibforecast.cli.fit import command as fit
from ibforecast.cli.fit import fractions, names_in

if TYPE_CHECKING:
    from ibforecast.forecaster import IBForecaster

FIT_ALONE = ("table", "out", "overwrite", "as_json")


def with_settings(command: click.Command) -> click.Command:
    """Add the options of `fit` that say what is fitted and how tables are read, right after the arguments."""
    arguments = sum(isinstance(parameter, click.Argument) for parameter in command.params)
    command.params[arguments:arguments] = [option for option in fit.params if option.name not in FIT_ALONE]
    return command


def forecaster_of(settings: dict[str, Any]) -> "IBForecaster":
    """Make the forecaster these options ask for."""
    from ibforecast.forecaster import IBForecaster

    told = dict(settings)
    names = {role: names_in(told.pop(role)) for role in ("channels", "past", "future")}
    told |= {"missing_values": told.pop("missing_value"), "split": fractions(told.pop("split"))}
    return IBForecaster(**told | names | {"channels": names["channels"] or None})
