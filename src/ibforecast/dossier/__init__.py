"""Dossiers: one document about a fitted model for people who must judge it; docs/dossier.md."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ibforecast.core import document
from ibforecast.core.files import write_atomically
from ibforecast.dossier import chapters
from ibforecast.dossier.facts import Facts
from ibforecast.dossier.headings import HEADINGS
from ibforecast.dossier.limits import general, weaknesses
from ibforecast.dossier.measuring import gather

__all__ = ["Dossier", "Facts", "gather"]

FORMAT, VERSION = "ibforecast.dossier", 1


@dataclass(frozen=True, eq=False)
class Dossier:
    """The facts about a model and its table, as HTML and as a JSON document.

    The same model, table and settings give the same facts, but for the date, `facts.audit.finished`.
    """

    facts: Facts

    @property
    def weaknesses(self) -> tuple[str, ...]:
        """Measured reasons against relying on the model."""
        return weaknesses(self.facts)

    def to_html(self) -> str:
        """Return the dossier as one HTML file without scripts, which loads nothing."""
        return chapters.to_html(self.facts)

    def to_json(self) -> str:
        """Return the dossier as a JSON document with a fingerprint; numbers that are undefined are null."""
        facts, example = self.facts, self.facts.example
        content = {
            "use": asdict(facts.use),
            "data": asdict(facts.data),
            "training": asdict(facts.training),
            "accuracy": asdict(facts.accuracy)
            | {"channels": [asdict(row) | {"worse": row.worse} for row in facts.accuracy.channels]},
            "coverage": None if facts.coverage is None else asdict(facts.coverage),
            "reading": [asdict(row) for row in facts.reading],
            "audit": facts.audit.document(),
            "drivers": {"windows": facts.drivers.windows, "rows": [asdict(row) for row in facts.drivers.sources()]},
            "example": {
                "receipt": asdict(example.receipt),
                "verification": asdict(example.verification) | {"passed": bool(example.verification)},
                "explanation": json.loads(example.explained.to_json()),
            },
            "limits": {"measured": self.weaknesses, "general": general(facts)},
            "replay": asdict(facts.replay),
            "headings": [asdict(row) for row in HEADINGS],
        }
        return document.write(FORMAT, VERSION, document.without_nan(content))

    def save(self, path: str | Path) -> Path:
        """Write the dossier as HTML, or as JSON if the path ends in .json."""
        text = self.to_json() if Path(path).suffix.lower() == ".json" else self.to_html()
        write_atomically(Path(path), text.encode())
        return Path(path)
