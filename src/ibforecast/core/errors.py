"""What can go wrong, as one tree; every error has the rule, the value and the remedy as fields.

IBForecastError
├── UsageError          an invalid setting (also a ValueError)
├── DataError           a table that cannot be read as asked
├── VerificationError   an explanation that failed a check
├── ModelFileError      a saved model that cannot be trusted or read
└── MissingExtraError   an optional library that is not installed
"""

from difflib import get_close_matches


class IBForecastError(Exception):
    """Anything this library refuses to do.

    `rule` says what must hold, `got` which value broke it and `remedy` what to do; the last two may be empty.
    """

    def __init__(self, rule: str, got: object = None, remedy: str = "") -> None:
        self.rule, self.got, self.remedy = rule, "" if got is None else str(got), remedy
        # The value as text, so that the error can be pickled whatever the value was.
        super().__init__(rule, self.got, remedy)

    def __str__(self) -> str:
        return "; ".join(part for part in (self._problem(), self.remedy) if part)

    def error_and_hint(self) -> tuple[str, str]:
        """Return what is wrong, the rule with the value, and what to do about it."""
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
    """A saved model that is tampered with, truncated, too new, or no model at all."""


class MissingExtraError(IBForecastError, ImportError):
    """An optional library is needed and not installed."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(
            f"this needs {library}, which is not installed", remedy=f"run: pip install 'ibforecast[{extra}]'"
        )
        self.library, self.extra = library, extra

    def __reduce__(self) -> tuple[type["MissingExtraError"], tuple[str, str]]:
        return type(self), (self.library, self.extra)


def require(holds: bool, rule: str, value: object, remedy: str) -> None:
    """Refuse a setting that breaks a rule."""
    if not holds:
        raise UsageError(rule, value, remedy)


def require_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse a word that is not on the list."""
    require(value in choices, f"{name} must be one of {', '.join(choices)}", f"{name}={value!r}", "choose one")


def hint(word: str, known: list[str], otherwise: str = "") -> str:
    """The remedy for a word that is not known: the one it comes close to, in whatever case, or else the choice."""
    by_lower = {one.lower(): one for one in known}
    close = get_close_matches(word.lower(), by_lower, n=1)
    return f"did you mean {by_lower[close[0]]!r}?" if close else otherwise or f"choose among {', '.join(known)}"
