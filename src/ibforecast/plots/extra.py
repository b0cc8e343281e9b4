"""The one guard around the drawing libraries, which come with the `plot` extra."""

from collections.abc import Iterator
from contextlib import contextmanager

from ibforecast.core.errors import MissingExtraError


@contextmanager
def needs(library: str) -> Iterator[None]:
    """Imports in this block say how to install `library` where it is absent; a broken one speaks for itself."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != library:
            raise
        raise MissingExtraError(library, "plot") from error
