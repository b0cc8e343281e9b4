"""Refused requests: their response has an error, a hint, and the invalid field, and never a stack trace."""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from ibforecast.core.errors import IBForecastError
from ibforecast.serve.wire import VERSION

log = logging.getLogger("uvicorn.error")

UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError, pa.ArrowException)
"""Errors that malformed input may raise where the library has no rule for it."""


class Refused(Exception):  # noqa: N818
    """A request that is answered with an error: `rule`, `got` and `remedy` are those of `IBForecastError`.

    It is not an `IBForecastError` itself, because `reading` turns those into refusals with another status.
    """

    def __init__(
        self,
        status: int,
        rule: str,
        got: object = None,
        remedy: str = "",
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.problem = IBForecastError(rule, got, remedy)
        super().__init__(str(self.problem))
        self.status, self.field, self.headers = status, field, dict(headers or {})

    @classmethod
    def because(cls, error: IBForecastError, field: str | None = None, status: int = 422) -> "Refused":
        """Return the refusal for an error of the library: rule and value as the error, the remedy as the hint."""
        return cls(status, error.rule, error.got, error.remedy, field)

    def body(self) -> bytes:
        """Return the answer as JSON in ASCII, because a part of the request in it may not be valid UTF-8."""
        error, hint = self.problem.error_and_hint()
        document: dict[str, Any] = {"version": VERSION, "error": error, "hint": hint or None, "field": self.field}
        return json.dumps(document).encode()


@contextmanager
def reading(field: str) -> Iterator[None]:
    """Turn any error in this block into a refusal that names `field`."""
    try:
        yield
    except IBForecastError as error:
        raise Refused.because(error, field) from error
    except UNREADABLE as error:
        log.warning("%s could not be read: %s: %s", field, type(error).__name__, error)
        problem = f"{type(error).__name__}: {error}"[:300]
        raise Refused(422, f"{field} must be readable", problem, f"correct {field}", field) from error


def shortened(value: Any, most: int = 80) -> str:
    """Return the start of a value's text, short enough for a message."""
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}…"
