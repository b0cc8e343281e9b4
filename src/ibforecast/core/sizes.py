"""The sizes in every forecaster's configuration, and checks for configurations."""

from dataclasses import dataclass

from ibforecast.core.errors import require, written

LONGEST = 1_000_000
"""The longest look-back, horizon and cycle, in steps; no longer one was ever trained."""

USUAL = {"look_back": 96, "horizon": 24, "cycle": 24}
"""Numbers of steps that errors propose."""


@dataclass(frozen=True)
class Sizes:
    """Lengths of past and future, number of channels, length of the cycle: the base of every configuration."""

    look_back: int
    horizon: int
    channels: int
    cycle: int

    def __post_init__(self) -> None:
        self.require_positive("channels")
        for name in ("look_back", "horizon", "cycle"):
            require_steps(name, getattr(self, name))

    @property
    def period(self) -> int:
        """Number of steps after which the phases begin again."""
        return self.cycle

    def require_positive(self, *names: str) -> None:
        """Refuse counts below 1."""
        for name in names:
            value = getattr(self, name)
            require(value >= 1, f"{name} must be at least 1", f"{name}={value}", "give a positive whole number")

    def require_fraction(self, *names: str) -> None:
        """Refuse dropout rates outside [0, 1)."""
        for name in names:
            value = getattr(self, name)
            require(0 <= value < 1, f"{name} must lie in [0, 1)", f"{name}={value}", "try 0.1")

    def require_divides(self, part: str, whole: str) -> None:
        """Refuse a setting `part` that does not divide the setting `whole`."""
        parts, size = getattr(self, part), getattr(self, whole)
        fitting = [n for n in (1, 2, 3, 4, 6, 8, 12, 16) if size % n == 0]
        require(
            size % parts == 0,
            f"{part} must divide {whole}",
            f"{part}={parts}, {whole}={size}",
            f"try {', '.join(map(str, fitting))}",
        )


def require_steps(name: str, steps: int) -> None:
    """Refuse a number of steps below 1, and one that is too large to compute with."""
    require(steps >= 1, f"{name} must be at least 1", f"{name}={written(steps)}", "give a positive whole number")
    require(steps <= LONGEST, f"{name} must be at most {LONGEST}", written(steps), f"try {USUAL[name]}")
