"""What is refused, as the wire tells it: an error, a hint, and the field at fault; never a stack trace."""

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
"""What reading something malformed may raise where the library has no rule of its own."""


class Refused(Exception):  # noqa: N818
    """A request that is answered with an error."""

    def __init__(
        self,
        status: int,
        error: str,
        hint: str = "",
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(error)
        self.status, self.error, self.hint, self.field = status, error, hint, field
        self.headers = dict(headers or {})

    @classmethod
    def because(cls, error: IBForecastError, field: str | None = None, status: int = 422) -> "Refused":
        """Say what the library says: rule and value as the error, the remedy as the hint."""
        return cls(status, *error.error_and_hint(), field)

    def body(self) -> bytes:
        """The answer, in plain ASCII: what was sent may not even be text."""
        document: dict[str, Any] = {
            "version": VERSION,
            "error": self.error,
            "hint": self.hint or None,
            "field": self.field,
        }
        return json.dumps(document).encode()


@contextmanager
def reading(field: str) -> Iterator[None]:
    """Whatever goes wrong in this block is the fault of what was sent as `field`."""
    try:
        yield
    except IBForecastError as error:
        raise Refused.because(error, field) from error
    except UNREADABLE as error:
        log.warning("%s could not be read: %s: %s", field, type(error).__name__, error)
        told = f"{type(error).__name__}: {error}"[:300]
        raise Refused(422, f"{field} must be readable (got {told})", f"correct {field}", field) from error


def shortened(value: Any, most: int = 80) -> str:
    """What was sent, as far as a message needs it."""
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}…"
