"""The services of a model that its explanations use, as protocols."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ibforecast.core.verdict import Verification

if TYPE_CHECKING:
    from ibforecast.core.explained import ExplainedForecast
    from ibforecast.core.receipt import Amounts, Step


@runtime_checkable
class Host(Protocol):
    """The services of a model that its explanations use."""

    def verify(self, explained: "ExplainedForecast", table: Any = None, *, exact: bool = False) -> Verification:
        """Check an explanation."""

    def draw(
        self, explained: "ExplainedForecast", path: Path, channel: str | None = None, step: "Step" = "mean"
    ) -> None:
        """Draw an explanation into a file, with the receipt of a channel at one step ahead, or of its mean."""

    def spreadsheet(
        self, explained: "ExplainedForecast", path: Path, channels: Sequence[str] | None, steps: Sequence[int] | None
    ) -> None:
        """Write the forecast as a workbook of formulas."""

    def tabulate(self, kind: type[Any], rows: Iterable[Any]) -> Any:
        """Return rows, instances of this dataclass, as a table of the user's kind."""

    def html(self, explained: "ExplainedForecast") -> str:
        """Return an explanation as HTML for a notebook."""


@runtime_checkable
class Itemiser(Protocol):
    """A model that can compute receipts."""

    def amounts(self, explained: "ExplainedForecast", columns: Sequence[int]) -> "list[Amounts]":
        """Return what adds up to the forecast of each of these channels."""
