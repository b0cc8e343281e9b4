"""The errors of this library, as one tree; each has the rule, the value and the remedy as fields.

IBForecastError
├── UsageError          an invalid setting (also a ValueError)
├── DataError           a table that breaks a rule
├── VerificationError   an explanation that failed a check
├── ModelFileError      a saved model that cannot be trusted or read
└── MissingExtraError   an optional library that is needed and not installed
"""

from difflib import get_close_matches
from typing import Any

MOST_THREADS, MOST_PROCESSES = 1024, 1024
"""Many more cannot be started, and libraries end with an error of their own."""


class IBForecastError(Exception):
    """The base class of all errors of this library.

    `rule` is what must be true, `got` the value that broke it and `remedy` what to do; the last two may be empty.
    """

    def __init__(self, rule: str, got: object = None, remedy: str = "") -> None:
        self.rule, self.got, self.remedy = rule, "" if got is None else str(got), remedy
        # The value is kept as text, so that the error can be pickled even if the value cannot.
        super().__init__(rule, self.got, remedy)

    def __str__(self) -> str:
        return "; ".join(part for part in (self._problem(), self.remedy) if part)

    def error_and_hint(self) -> tuple[str, str]:
        """Return the problem, which is the rule with the value, and the remedy."""
        return self._problem(), self.remedy

    def _problem(self) -> str:
        return f"{self.rule} (got {self.got})" if self.got else self.rule


class UsageError(IBForecastError, ValueError):
    """A setting that breaks a rule."""


class DataError(IBForecastError):
    """A table that breaks a rule."""


class VerificationError(IBForecastError):
    """An explanation whose check failed."""


class ModelFileError(IBForecastError):
    """A saved model that was changed or truncated, is too new, or is not a model."""


class MissingExtraError(IBForecastError, ImportError):
    """An optional library that is needed and not installed."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(
            f"this needs {library}, which is not installed", remedy=f"run: pip install 'ibforecast[{extra}]'"
        )
        self.library, self.extra = library, extra

    # The base class pickles three arguments; this constructor takes two.
    def __reduce__(self) -> tuple[type["MissingExtraError"], tuple[str, str]]:
        return type(self), (self.library, self.extra)


def require(holds: bool, rule: str, value: object, remedy: str) -> None:
    """Raise UsageError unless the rule holds."""
    if not holds:
        raise UsageError(rule, value, remedy)


def require_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise UsageError unless the value is one of the choices."""
    require(value in choices, f"{name} must be one of {', '.join(choices)}", f"{name}={value!r}", "choose one")


def names_of(name: str, names: Any) -> tuple[str, ...]:
    """Return a list of names; raise UsageError for a single one, whose letters would be taken for names."""
    require(not isinstance(names, str), f"{name} must be a list of names", repr(names), f"write [{names!r}]")
    return tuple(map(str, names))


def require_threads(threads: int) -> None:
    """Raise UsageError unless a number of threads can be started."""
    require(
        1 <= threads <= MOST_THREADS,
        f"threads must be from 1 to {MOST_THREADS}",
        f"threads={written(threads)}",
        "try 1",
    )


def require_processes(name: str, count: int) -> None:
    """Raise UsageError unless a number of processes can be started."""
    require(
        1 <= count <= MOST_PROCESSES,
        f"{name} must be from 1 to {MOST_PROCESSES}",
        f"{name}={written(count)}",
        "try one for every core",
    )


def hint(word: str, known: list[str], otherwise: str = "") -> str:
    """Return the remedy for an unknown word: the closest known one in any case, `otherwise`, or the list of all."""
    by_lower = {one.lower(): one for one in known}
    close = get_close_matches(word.lower(), by_lower, n=1)
    return f"did you mean {by_lower[close[0]]!r}?" if close else otherwise or f"choose among {', '.join(known)}"


def written(number: int) -> str:
    """Return a whole number as text; Python refuses to write one of more than 4,300 digits."""
    return str(number) if abs(number) < 10**40 else f"a number of about {number.bit_length() * 30103 // 100000} digits"


def bounded(name: str, number: int) -> int:
    """Return a whole number; raise UsageError for one that the libraries below cannot take."""
    fits = -(2**63) <= number < 2**64
    require(fits, f"{name} must be a number that 64 bits can hold", written(number), "give a smaller one")
    return number
