"""What `explain` gives back: an account that can check, draw and tabulate itself."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ibforecast.core.account import Account, KnownStep, Token
from ibforecast.core.errors import UsageError, VerificationError
from ibforecast.core.verification import Check as Check
from ibforecast.core.verification import Verification as Verification
from ibforecast.data.sources import Kind, from_rows, to_native
from ibforecast.plots.explanation import draw
from ibforecast.plots.notebook import explanation_html
from ibforecast.plots.scene import rate_line


@runtime_checkable
class Verifier(Protocol):
    """Whoever can check an account: the model that gave it."""

    def verify(self, account: Account) -> Verification:
        """Go through the checks."""


@dataclass(frozen=True, eq=False, repr=False)
class ExplainedForecast(Account):
    """A forecast and its explanation, with the model that gave them at hand."""

    verifier: Verifier | None = field(default=None)
    kind: Kind = field(default="pyarrow")

    def verify(self) -> Verification:
        """Recompute the forecast from the explanation and the context alone, and scramble what was not read.

        Raises VerificationError unless every check passes.
        """
        if self.verifier is None:
            raise UsageError("verifying needs the model (this explanation has none at hand); use model.verify(it)")
        verification = self.verifier.verify(self)
        if not verification:
            raise VerificationError(f"the explanation must be the truth; it is not:\n{verification}")
        return verification

    def to_table(self) -> Any:
        """One row per token: where it lies, whether it was read, and by how much it deviated."""
        return to_native(from_rows(Token, self.tokens()), self.kind)

    def known_to_table(self) -> Any:
        """One row per step, covariate known ahead and channel: its value, and by how much it moves the channel."""
        return to_native(from_rows(KnownStep, self.known_steps()), self.kind)

    def plot(self, path: str | Path) -> Path:
        """Draw the case-study figure as .png or .svg, or write the report of this explanation as .html."""
        draw(self, path, None if self.verifier is None else self.verifier.verify)
        return Path(path)

    def __repr__(self) -> str:
        return f"ExplainedForecast(at={self.at!r}, horizon={self.horizon}; {rate_line(self)})"

    def _repr_html_(self) -> str:
        """Show itself in a notebook."""
        return explanation_html(self)
