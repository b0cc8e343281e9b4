"""What `explain` gives back: an account that can check, draw and tabulate itself."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from ibforecast.core.account import Account, KnownStep
from ibforecast.core.errors import UsageError, VerificationError
from ibforecast.core.verification import Check as Check
from ibforecast.core.verification import Verification as Verification
from ibforecast.data.sources import Kind, to_native
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
        rows = [vars(token) for token in self.tokens()]
        return to_native(pa.table({name: pa.array([row[name] for row in rows]) for name in rows[0]}), self.kind)

    def known_to_table(self) -> Any:
        """One row per step, covariate known ahead and channel: its value, and by how much it moves the channel."""
        rows = [vars(row) for row in self.known_steps()]
        names = [field.name for field in fields(KnownStep)]
        return to_native(pa.table({name: pa.array([row[name] for row in rows]) for name in names}), self.kind)

    def plot(self, path: str | Path) -> Path:
        """Draw the case-study figure as .png or .svg, or write the report of this explanation as .html."""
        draw(self, path, None if self.verifier is None else self.verifier.verify)
        return Path(path)

    def __repr__(self) -> str:
        return f"ExplainedForecast(at={self.at!r}, horizon={self.horizon}; {rate_line(self)})"

    def _repr_html_(self) -> str:
        """Show itself in a notebook."""
        return explanation_html(self)
