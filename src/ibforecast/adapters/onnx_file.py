"""The file a model is exported to: its card, which says everything except the graph, and its seal."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ibforecast.core import document
from ibforecast.core.errors import ModelFileError
from ibforecast.core.facts import ModelFacts
from ibforecast.core.files import sha256

FORMAT, VERSION = "ibforecast.onnx", 1
CARD, SEAL = "ibforecast", "ibforecast.sha256"
"""The two entries of the file's metadata: everything except the graph, and the fingerprint of the whole file."""

UNSEALED = "0" * 64
_SEAL_MARK = SEAL.encode() + b"\x12\x40"  # the key, then "a text of 64 characters", as protobuf writes it


@dataclass(frozen=True)
class Card:
    """Everything except the graph: what the model says of itself, and what wrote the file."""

    facts: ModelFacts
    exported_with: Mapping[str, str]

    def to_json(self) -> str:
        """Render for the file's metadata."""
        content = {"facts": self.facts.document(), "exported_with": dict(self.exported_with)}
        return document.write(FORMAT, VERSION, content)

    @classmethod
    def from_json(cls, text: str) -> "Card":
        """Read what `to_json` wrote; a newer version is refused."""
        content = document.read(text, FORMAT, VERSION, ModelFileError)
        return cls(ModelFacts.of(content["facts"]), content["exported_with"])


def sealed(content: bytes) -> bytes:
    """Put the fingerprint of a file into the place that was left for it."""
    place = content.rindex(_SEAL_MARK) + len(_SEAL_MARK)
    return content[:place] + sha256(content).encode() + content[place + len(UNSEALED) :]


def read(path: Path) -> bytes:
    """Read a file that `to_onnx` wrote, as it was written; any other is refused before anything looks inside."""
    if not path.is_file():
        raise ModelFileError("a model must be a file", f"{path}, where there is none", "check the path")
    content = path.read_bytes()
    found = content.rfind(_SEAL_MARK)
    if found < 0:
        raise ModelFileError(
            "an ONNX file must be ibforecast's and whole",
            f"{path}, which has no fingerprint of ours",
            "write it with IBForecaster.to_onnx",
        )
    place = found + len(_SEAL_MARK)
    named, blank = content[place : place + len(UNSEALED)], UNSEALED.encode()
    if sha256([content[:place], blank, content[place + len(blank) :]]).encode() != named:
        raise ModelFileError("an ONNX file must match its fingerprint", f"{path}, which was changed", "export it again")
    return content
