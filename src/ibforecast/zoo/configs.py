"""Frozen configurations from plain mappings (TOML, JSON), with every key and type checked."""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from ibforecast.core.errors import UsageError, bounded

T = TypeVar("T")


def build(kind: type[T], settings: Mapping[str, Any], where: str) -> T:
    """Return a configuration of this class; `where` names the source in error messages."""
    hints = _hints(kind)  # type: ignore[arg-type]  # a class is hashable
    known = sorted(field.name for field in fields(kind))  # type: ignore[arg-type]
    for name in settings:
        if name not in known:
            raise UsageError(f"{where} must use known settings", repr(name), f"known are {', '.join(known)}")
    return kind(**{name: _convert(hints[name], value, f"{where}.{name}") for name, value in settings.items()})


_hints = cache(get_type_hints)  # evaluates the annotations, which are texts, every time


def chosen(config: Any) -> dict[str, Any]:
    """Return the settings that differ from their defaults or have none, as plain data that `build` reads."""
    settings: dict[str, Any] = {}
    for field in fields(config):
        value = getattr(config, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if value != default:
            settings[field.name] = chosen(value) if is_dataclass(value) else value
    return settings


def changed(config: T, settings: Mapping[str, Any]) -> T:
    """Return the configuration with other settings; a mapping changes the settings of a part."""
    parts = {
        name: changed(getattr(config, name), value) if isinstance(value, Mapping) else value
        for name, value in settings.items()
    }
    return replace(config, **parts)  # type: ignore[type-var]


def _convert(kind: Any, value: Any, where: str) -> Any:
    if isinstance(kind, UnionType):  # "X | None" is the only union in use
        return None if value is None else _convert(get_args(kind)[0], value, where)
    if is_dataclass(kind) and isinstance(value, Mapping):
        return build(kind, value, where)  # type: ignore[arg-type]
    if get_origin(kind) is Literal:
        fits, wanted = value in get_args(kind), " or ".join(map(repr, get_args(kind)))
    elif get_origin(kind) is tuple:
        fits, wanted = isinstance(value, list | tuple), "a list"
        value = tuple(_convert(get_args(kind)[0], one, where) for one in value) if fits else value
    elif kind is float:
        fits, wanted = isinstance(value, int | float) and not isinstance(value, bool), "a number"
        value = float(bounded(where, value) if isinstance(value, int) else value) if fits else value
    elif kind is int:
        fits, wanted = isinstance(value, int) and not isinstance(value, bool), "a whole number"
        value = bounded(where, value) if fits else value
    else:
        fits, wanted = isinstance(value, kind), getattr(kind, "__name__", str(kind))
    if not fits:
        raise UsageError(f"{where} must be {wanted}", repr(value), "correct the setting")
    return value
