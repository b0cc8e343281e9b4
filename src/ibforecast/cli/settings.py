"""The settings of a forecaster as options of the verbs that fit: one option per field of `Settings`."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from ibforecast.cli.shared import Command
from ibforecast.core.errors import UsageError
from ibforecast.settings import Settings

if TYPE_CHECKING:
    from ibforecast.forecaster import IBForecaster


class Listed(click.ParamType[Any]):
    """Several values separated by commas."""

    def __init__(self, name: str, convert: Callable[[str], Any]) -> None:
        self.name, self._convert = name, convert

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the converted text; a default is a value already."""
        return self._convert(value) if isinstance(value, str) else value


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")] if text else []


def _fractions(text: str) -> tuple[float, float, float]:
    try:
        train, validation, test = (float(part) for part in text.split(","))
    except ValueError as error:
        raise UsageError("split must be three numbers", repr(text), "try 0.7,0.1,0.2") from error
    return train, validation, test


def _cycle(text: str) -> int | tuple[int, ...] | str:
    lengths = [part.strip() for part in text.split(",")]
    # More digits than 18 are no number of steps, and int refuses 4,300.
    if text != "auto" and not all(re.fullmatch("[0-9]{1,18}", length) for length in lengths):
        raise click.BadParameter(f"{text!r} is neither a number of steps nor 'auto'")
    return text if text == "auto" else int(lengths[0]) if len(lengths) == 1 else tuple(map(int, lengths))


def _type(hint: Any) -> Any:
    """Return the type of an option from that of its setting; None in the latter is ignored."""
    union = get_origin(hint) in (UnionType, Union)
    kinds = [kind for kind in get_args(hint) if kind is not type(None)] if union else [hint]
    first, origin = kinds[0], get_origin(kinds[0])
    if len(kinds) > 1 and first is int:
        return Listed("cycle", _cycle)
    if origin is Literal:
        return click.Choice(get_args(first))
    if origin is tuple:
        return Listed("fractions", _fractions)
    if origin is Mapping:
        return str
    if origin is Sequence and str in get_args(first):
        return Listed("names", _names)
    return str if origin is Sequence else first


def _joined(context: click.Context, option: click.Parameter, values: Sequence[list[str]]) -> list[str]:
    """Return the names of an option that was given several times."""
    return [name for names in values for name in names]


def _option(setting: Field[Any], hint: Any, required: bool) -> Callable[[Command], Command]:
    """Return the option of a setting; one for several numbers or limits is in the singular and may be repeated.

    One for names takes several at once, separated by commas, and may be repeated, too.
    """
    flag, several = _flag(setting, hint)
    default = ",".join(map(str, setting.default)) if isinstance(setting.default, tuple) else setting.default
    if hint is bool:
        return click.option(flag, setting.name, is_flag=True, help=setting.metadata["help"])
    rest: dict[str, Any] = {"default": default, "show_default": True}
    if default is MISSING:
        rest = {"required": required}
    elif default in (None, ""):
        rest = {"multiple": several}
    kind = _type(hint)
    if isinstance(kind, Listed) and kind.name == "names":
        rest = {"multiple": True, "callback": _joined}
    return click.option(flag, setting.name, type=kind, help=setting.metadata["help"], **rest)


def _flag(setting: Field[Any], hint: Any) -> tuple[str, bool]:
    """Return the name of the option of a setting, and whether it may be repeated."""
    several = (get_origin(hint) is Sequence and float in _kinds(hint)) or _is_mapping(hint)
    name = setting.name.removesuffix("s") if several else setting.name
    return f"--{name.replace('_', '-')}", several


def _kinds(hint: Any) -> tuple[Any, ...]:
    """Return the types of the elements of a sequence."""
    return tuple(kind for each in get_args(hint) for kind in (get_args(each) or (each,)))


def _is_mapping(hint: Any) -> bool:
    return any(get_origin(kind) is Mapping for kind in get_args(hint))


def settings_options(command: Command, required: bool = True) -> Command:
    """Add an option for each setting: what to fit, and how to read tables."""
    hints = get_type_hints(Settings)
    for setting in reversed(fields(Settings)):
        command = _option(setting, hints[setting.name], required)(command)
    return command


def optional_settings(command: Command) -> Command:
    """Add an option for each setting; none of them is required."""
    return settings_options(command, required=False)


def given(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given; all others keep their defaults."""
    source = click.get_current_context().get_parameter_source
    return {name: value for name, value in settings.items() if source(name) is not ParameterSource.DEFAULT}


def written(settings: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the given options by name, as they are written in a shell, in the order of the settings.

    Empty settings, such as an empty list, are left out.
    """
    hints, options = get_type_hints(Settings), dict[str, list[str]]()
    for setting in fields(Settings):
        value, (flag, several) = settings.get(setting.name), _flag(setting, hints[setting.name])
        if value is None or value is False or value in ("", (), []):
            continue
        each = [None] if value is True else value if several else [value]
        options[flag] = [flag if one is None else f"{flag} {shlex.quote(_text(one))}" for one in each]
    return options


def _text(value: Any) -> str:
    """Return a converted value as the text that an option takes."""
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def forecaster_of(settings: dict[str, Any]) -> "IBForecaster":
    """Return the forecaster of these options; an option that was not given keeps its default."""
    from ibforecast.forecaster import IBForecaster

    return IBForecaster(**given(settings))
