"""A guard for imports of the drawing libraries, which the `plot` extra installs."""

from collections.abc import Iterator
from contextlib import contextmanager

from ibforecast.core.errors import MissingExtraError


@contextmanager
def needs(library: str) -> Iterator[None]:
    """Say how to install `library` if an import in this block fails because it is absent."""
    try:
        yield
    except ModuleNotFoundError as error:
        # Another module that is missing means a broken installation, not an absent extra.
        if (error.name or "").partition(".")[0] != library:
            raise
        raise MissingExtraError(library, "plot") from error
