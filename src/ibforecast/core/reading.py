"""Strict reading of an explanation from a document: the error names the unknown, missing or ill-typed field."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float32, Float64

from ibforecast.core.calendar import Clock
from ibforecast.core.document import WHOLE as WHOLE_DOUBLE
from ibforecast.core.errors import DataError, IBForecastError
from ibforecast.core.explanation import FIELDS, Explanation
from ibforecast.core.limits import ENDS, Limits
from ibforecast.core.standardiser import Standardiser

T = TypeVar("T")
REMEDY = "give the document as it was written"
LARGEST = 1e300
"""A bound on every number of a model; beyond the largest double, `float` fails for a whole number."""


WHOLE = (
    "weights_sha256",
    "budget",
    "prior",
    "sealed",
    "window",
    "units",
    "known_units",
    "explanation",
    "context",
    "forecast",
    "truth",
)
WINDOW = ("channels", "past", "covariates", "frequency", "zone", "row", "times", "history", "known")


def explanation(content: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `ExplainedForecast` from the sections of its document."""
    whole = members(content, WHOLE, "an explanation", optional=("signature", "limits", "unlimited"))
    window = members(whole["window"], WINDOW, "window", optional=("zero_at",))
    channels = texts(window["channels"], "window.channels")
    times, frequency = texts(window["times"], "window.times"), text(window["frequency"], "window.frequency")
    row, zone = maybe(whole_number, window["row"], "window.row"), maybe(text, window["zone"], "window.zone")
    known = maybe(matrix, window["known"], "window.known")
    known_units = maybe(units, whole["known_units"], "known_units")
    history = matrix(window["history"], "window.history", nulls=True)
    ahead = None if known is None or known_units is None else _standardised(known, known_units)
    return {
        "explanation": _arrays(whole["explanation"], whole["context"], channels, history, ahead),
        "forecast": matrix(whole["forecast"], "forecast", nulls=True),
        "history": history,
        "truth": None if whole["truth"] is None else matrix(whole["truth"], "truth", nulls=True),
        "channels": channels,
        "clock": _named("window.times", lambda: Clock.of_labels(times, frequency, zone, row)),
        "units": units(whole["units"], "units"),
        "budget": number(whole["budget"], "budget"),
        "prior": number(whole["prior"], "prior"),
        "weights_sha256": text(whole["weights_sha256"], "weights_sha256"),
        "sealed": truth_value(whole["sealed"], "sealed"),
        "past": texts(window["past"], "window.past"),
        "covariates": texts(window["covariates"], "window.covariates"),
        "known": known,
        "known_units": known_units,
        "limits": maybe(limits, whole.get("limits"), "limits"),
        "unlimited": None if "unlimited" not in whole else matrix(whole["unlimited"], "unlimited", nulls=True),
        "zero_at": texts(window.get("zero_at", []), "window.zero_at"),
        "signature": maybe(text, whole.get("signature"), "signature"),
    }


def _standardised(
    known: Float64[np.ndarray, "steps covariate"], known_units: Standardiser
) -> Float32[np.ndarray, "steps covariate"]:
    """Return the covariates known ahead as the readout read them."""
    if known.shape[1] != len(known_units.mean):
        raise refused("known_units", f"units of {len(known_units.mean)} covariates for {known.shape[1]} known ahead")
    with np.errstate(all="ignore"):  # ExplainedForecast refuses numbers that are not finite
        return known_units.standardise(known).astype(np.float32)


def _arrays(
    gates: Any,
    context: Any,
    channels: tuple[str, ...],
    history: Float64[np.ndarray, "look_back channel"],
    known: Float32[np.ndarray, "steps covariate"] | None,
) -> Explanation[np.ndarray]:
    """Build the explanation from its two sections, using the field table."""
    sections = {"explanation": gates, "context": context}
    rows = [row for row in FIELDS if row.written]
    for part, extra in (("explanation", ()), ("context", ("cycles",))):
        names = (row.name for row in rows if row.part == part)
        sections[part] = members(sections[part], (*names, *extra), part)
    arrays: dict[str, Any] = {"known": known}
    for row in rows:
        value, where = sections[row.part][row.name], f"{row.part}.{row.name}"
        if row.name == "evidence":
            arrays[row.name] = _evidence(value, arrays["mask"], channels, history)
        elif value is not None or not row.optional:
            arrays[row.name] = array(value, len(row.axes) - row.batched, row.kind, where)
    cycles = sequence(sections["context"]["cycles"], "context.cycles")
    lengths = tuple(whole_number(cycle, "context.cycles") for cycle in cycles)
    if not lengths:
        raise refused("context.cycles", "no cycle")
    return Explanation.of(arrays, lengths)


def _evidence(
    tokens: Any,
    mask: np.ndarray,
    channels: tuple[str, ...],
    history: Float64[np.ndarray, "look_back channel"],
) -> Float32[np.ndarray, "look_back channel"]:
    """Return the evidence from its open tokens, which must be those of the mask, in the same order."""
    where = "explanation.evidence"
    if len(history) % len(mask) or mask.shape[1] != history.shape[1] or len(channels) != history.shape[1]:
        raise refused(where, f"a mask of {mask.shape} for a history of {history.shape}")
    patch_len, evidence = len(history) // len(mask), np.zeros(history.shape, dtype=np.float32)
    opened = [(int(patch), channels[column], column) for patch, column in np.argwhere(mask)]
    if len(sequence(tokens, where)) != len(opened):
        raise refused(where, f"{len(tokens)} tokens where {len(opened)} are open")
    for token, (patch, channel, column) in zip(tokens, opened, strict=True):
        parts = members(token, ("patch", "channel", "deviation"), where)
        place = (whole_number(parts["patch"], where), text(parts["channel"], where))
        if place != (patch, channel):
            raise refused(where, f"patch {place[0]} of {place[1]!r:.80} where patch {patch} of {channel!r} is open")
        deviation = array(parts["deviation"], 1, "float32", where)
        if len(deviation) != patch_len:
            raise refused(where, f"{len(deviation)} numbers for a patch of {patch_len} steps")
        evidence[patch * patch_len : (patch + 1) * patch_len, column] = deviation
    return evidence


def _named(where: str, read: Callable[[], T]) -> T:
    """Call `read`, and add the name of the field to any error."""
    try:
        return read()
    except IBForecastError as error:
        raise DataError(f"{where}: {error.rule}", error.got, error.remedy) from error
    except (ValueError, OverflowError) as error:
        raise refused(where, str(error)[:80]) from error


# --- the parts of a document ---


def refused(where: str, got: str) -> DataError:
    """Return the error for an invalid field."""
    return DataError(f"{where} must have the type and shape of this field", got, REMEDY)


def members(value: Any, names: Sequence[str], where: str, optional: Sequence[str] = ()) -> dict[str, Any]:
    """Return the object if it has these members and no others."""
    if not isinstance(value, dict):
        raise refused(where, f"{value!r:.80}")
    if unknown := [name for name in value if name not in (*names, *optional)]:
        raise DataError(f"{where} must have no other members than {', '.join(names)}", repr(unknown[0])[:80], REMEDY)
    if missing := [name for name in names if name not in value]:
        raise DataError(f"{where} must have the member {missing[0]}", "none", REMEDY)
    return value


def maybe(read: Callable[..., T], value: Any, where: str, optional: bool = True) -> T | None:
    """Read a value that may be null; return None for null."""
    return None if value is None and optional else read(value, where)


def text(value: Any, where: str) -> str:
    """Return a text that UTF-8 can encode."""
    if not isinstance(value, str) or value != value.encode("utf-8", "replace").decode():
        raise refused(where, f"{value!r:.80}")
    return value


def truth_value(value: Any, where: str) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise refused(where, f"{value!r:.80}")
    return value


def sequence(value: Any, where: str) -> list[Any]:
    """Return a list."""
    if not isinstance(value, list):
        raise refused(where, f"{value!r:.80}")
    return value


def texts(value: Any, where: str) -> tuple[str, ...]:
    """Return a list of texts."""
    return tuple(text(one, where) for one in sequence(value, where))


def number(value: Any, where: str) -> float:
    """Return a finite number."""
    # `type`, not `isinstance`: a boolean is an int in Python.
    if type(value) not in (int, float) or abs(value) > LARGEST:
        raise refused(where, f"{value!r:.80}")
    return float(value)


def whole_number(value: Any, where: str) -> int:
    """Return a whole number of 64 bits; a client that has only doubles may have written 1.0 for 1."""
    if type(value) is float and value.is_integer() and abs(value) <= WHOLE_DOUBLE:
        return int(value)
    if type(value) is not int or abs(value) >= 2**63:
        raise refused(where, f"{value!r:.80}")
    return value


def units(value: Any, where: str) -> Standardiser:
    """Return the mean and the spread of every channel."""
    parts = members(value, ("mean", "std"), where)
    mean, std = (array(parts[name], 1, "float64", f"{where}.{name}") for name in ("mean", "std"))
    if len(mean) != len(std):
        raise refused(where, f"{len(mean)} means and {len(std)} spreads")
    return Standardiser(mean, std)


def limits(value: Any, where: str) -> Limits:
    """Return the limits of every channel."""
    parts = members(value, (*ENDS, "whole"), where)
    for name in ENDS:
        for each in sequence(parts[name], f"{where}.{name}"):
            maybe(number, each, f"{where}.{name}")
    array(parts["whole"], 1, "bool", f"{where}.whole")
    return Limits.of_document(parts)


def matrix(value: Any, where: str, nulls: bool = False) -> Float64[np.ndarray, "row column"]:
    """Return a table of numbers; if `nulls` are allowed, null becomes NaN."""
    return array(value, 2, "float64", where, nulls)


def array(value: Any, axes: int, kind: str, where: str, nulls: bool = False) -> np.ndarray:
    """Return nested lists of equal lengths as an array; the type must represent each number exactly."""
    flat, shape = sequence(value, where), [len(value)]
    for _ in range(axes - 1):
        lengths = {len(sequence(row, where)) for row in flat}
        if len(lengths) != 1:
            raise refused(where, f"rows of {sorted(lengths)[:4]} values" if lengths else "no rows")
        shape.append(lengths.pop())
        flat = list(chain.from_iterable(flat))
    if kind == "int64":
        flat = [whole_number(one, where) for one in flat]
    allowed = _TYPES[kind]
    if odd := set(map(type, flat)) - (allowed | {type(None)} if nulls else allowed):
        raise refused(where, repr(next(one for one in flat if type(one) in odd))[:80])
    try:
        wide = np.array(
            [np.nan if one is None else one for one in flat] if nulls else flat, dtype=_WIDE.get(kind, kind)
        )
    except OverflowError as error:
        raise refused(where, str(error)) from error
    with np.errstate(over="ignore"):  # a number that is too large becomes infinite, which is refused below
        exact = wide.astype(kind)
    if kind == "float32" and not (exact == wide).all():
        raise refused(where, f"{wide[exact != wide][0]}, which single precision cannot represent")
    if kind.startswith("float") and not np.isfinite(exact[~np.isnan(exact)] if nulls else exact).all():
        raise refused(where, "a number that is not finite")
    return np.asarray(exact).reshape(shape)


_WIDE = {"float32": "float64"}
_TYPES: dict[str, set[type]] = {"bool": {bool}, "int64": {int}, "float32": {int, float}, "float64": {int, float}}
