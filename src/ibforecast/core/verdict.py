"""The result of a verification: its checks, one by one."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One check and its result."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Verification:
    """The checks of an explanation, true if all passed, and notes on what was not checked."""

    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return all(check.passed for check in self.checks)

    def __str__(self) -> str:
        lines = [f"{'ok    ' if check.passed else 'FAILED'} {check.name}: {check.detail}" for check in self.checks]
        return "\n".join([*lines, *(f"note   {note}" for note in self.notes)])
