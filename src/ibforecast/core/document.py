"""Documents: how this library writes, fingerprints and reads everything it keeps as JSON.

A document is a JSON object with a `format`, a `version`, its content, and `sha256`, the fingerprint of the content.
The fingerprint depends on the content of a document and not on its spelling: the order of keys, spaces, and the
spelling of a number (1, 1.0, 1e0) may change, so any client may rewrite it. Nothing else may change: unknown or
repeated keys, other values, and numbers that are not finite are refused.
"""

import hashlib
import json
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from ibforecast.core.errors import DataError, IBForecastError

FINGERPRINT = "sha256"
WHOLE = 2**53
"""Whole numbers up to this size are exact as doubles; a client that has only doubles may write 1.0 for 1."""

DEEPEST = 32
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def fingerprint(content: Any) -> str:
    """Return the SHA-256 of nested mappings and sequences of texts, numbers, booleans, None and arrays."""
    digest = hashlib.sha256()
    _feed(content, digest.update)
    return digest.hexdigest()


def _feed(value: Any, add: Callable[[bytes], object]) -> None:
    """Add bytes that are equal for equal content, and different otherwise.

    The bytes of a value begin with a letter for its type and, if its length can vary, its length.
    """
    # Texts first: most values of a document are times, and to ask whether a value is a Mapping takes long.
    if isinstance(value, str):
        # JSON can contain lone surrogates such as "\ud800", which plain UTF-8 cannot encode.
        text = value.encode("utf-8", "surrogatepass")
        add(struct.pack("<cq", b"t", len(text)) + text)
    elif isinstance(value, np.ndarray):
        kind = value.dtype.newbyteorder("<").str.encode()
        add(struct.pack("<cqq", b"a", len(kind), value.ndim) + kind + struct.pack(f"<{value.ndim}q", *value.shape))
        # JavaScript writes -0.0 as 0, and JSON has one null for all NaNs, so neither difference is content.
        plain = np.where(np.isnan(value), np.nan, value + 0.0) if value.dtype.kind == "f" else value
        add(np.ascontiguousarray(plain, dtype=value.dtype.newbyteorder("<")).tobytes())
    elif value is None or isinstance(value, bool):
        add({None: b"n", True: b"y", False: b"f"}[value])
    elif isinstance(value, int) and abs(value) > WHOLE:
        digits = str(value).encode()
        add(struct.pack("<cq", b"i", len(digits)) + digits)
    elif isinstance(value, int | float):
        add(struct.pack("<cd", b"d", value + 0.0))
    elif isinstance(value, Mapping):
        add(struct.pack("<cq", b"m", len(value)))
        for name in sorted(value):
            _feed(name, add)
            _feed(value[name], add)
    elif isinstance(value, Sequence):
        add(struct.pack("<cq", b"l", len(value)))
        if all(type(one) is float for one in value):
            add(_floats(value))
        else:
            for one in value:
                _feed(one, add)
    else:
        raise TypeError(f"a document must contain texts, numbers, booleans and arrays (got {type(value).__name__})")


def _floats(values: Sequence[float]) -> bytes:
    """Return the bytes of numbers one after the other; receipts have thousands of them."""
    rows = np.zeros(len(values), dtype="S1, <f8")
    rows["f0"], rows["f1"] = b"d", np.array(values, dtype=np.float64) + 0.0
    return rows.tobytes()


def without_nan(nested: Any) -> Any:
    """Return nested mappings and lists with None for numbers that are not finite, which JSON does not have."""
    if isinstance(nested, Mapping):
        return {name: without_nan(value) for name, value in nested.items()}
    if isinstance(nested, list | tuple):
        return [without_nan(value) for value in nested]
    return None if isinstance(nested, float) and not isfinite(nested) else nested


def write(form: str, version: int, content: Mapping[str, Any], sha256: str | None = None) -> str:
    """Return a document as JSON text, one member per line.

    `sha256` is the fingerprint if it was computed from another form of the content.
    """
    members = {"format": form, "version": version, **content}
    members[FINGERPRINT] = fingerprint(members) if sha256 is None else sha256
    lines = (f"{_ENCODER.encode(name)}: {_ENCODER.encode(value)}" for name, value in members.items())
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def read(text: str | bytes, form: str, version: int, error: type[IBForecastError] = DataError) -> dict[str, Any]:
    """Return the content of a document, without format, version and fingerprint; refuse changed content."""
    content, sha256 = opened(text, form, version, error)
    if fingerprint({"format": form, "version": version, **content}) != sha256:
        raise error(f"{form} must match its fingerprint", "content changed after it was written", "write it again")
    return content


def opened(
    text: str | bytes, form: str, version: int, error: type[IBForecastError] = DataError
) -> tuple[dict[str, Any], str]:
    """Return the content of a document and its fingerprint, which the caller must compare with the content."""
    document = parse(text, error)
    if not isinstance(document, dict) or document.get("format") != form:
        got = document.get("format") if isinstance(document, dict) else type(document).__name__
        raise error(f"a document must have the format {form!r}", repr(got)[:80], "give one that this library wrote")
    stated = document.pop("version", None)
    # `type`, not `isinstance`: a boolean is an int in Python, and must not pass as a version.
    if type(stated) not in (int, float) or stated > version:
        raise error(
            f"this version of ibforecast reads {form} up to version {version}",
            f"version {stated!r}"[:80],
            "upgrade ibforecast",
        )
    if stated != version:
        raise error(f"{form} must have version {version}", f"version {stated}", "write it again")
    del document["format"]
    sha256 = document.pop(FINGERPRINT, None)
    if not isinstance(sha256, str):
        raise error(f"{form} must name its fingerprint", f"{FINGERPRINT}={sha256!r}"[:80], "write it again")
    return document, sha256


def parse(text: str | bytes, error: type[IBForecastError] = DataError) -> Any:
    """Return the value of JSON text; refuse repeated keys, numbers that are not finite and deep nesting."""

    def unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            repeated, _ = Counter(name for name, _ in pairs).most_common(1)[0]
            raise error("a key must appear once in an object", f"{repeated!r} twice"[:80], "remove one of them")
        return members

    def finite(digits: str) -> float:
        number = float(digits)
        if not isfinite(number):  # 1e999 would be read as infinity
            raise error("a number must be finite", digits[:80], "write null for a missing value")
        return number

    try:
        # Given bytes, json would also read UTF-16 and UTF-32; in text it refuses a byte order mark.
        text = text.decode() if isinstance(text, bytes) else text
        value = json.loads(text, object_pairs_hook=unique_members, parse_constant=finite, parse_float=finite)
    except (ValueError, RecursionError) as problem:
        raise error("a document must be valid JSON", str(problem)[:200], "write it again") from problem
    _check_depth(value, error)
    return value


def _check_depth(value: Any, error: type[IBForecastError]) -> None:
    """Refuse nesting that would exhaust the stack of a later reader."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise error("a document must not be nested deeply", f"more than {DEEPEST} levels", "write it again")
