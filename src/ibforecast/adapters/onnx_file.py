"""The file that a model is exported to: its card, with everything except the graph, and its fingerprint."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ibforecast.core import document
from ibforecast.core.errors import ModelFileError
from ibforecast.core.facts import ModelFacts
from ibforecast.core.files import sha256

FORMAT, VERSION = "ibforecast.onnx", 1
CARD, FINGERPRINT = "ibforecast", "ibforecast.sha256"
"""The two entries of the file's metadata: everything except the graph, and the fingerprint of the whole file."""

BLANK = "0" * 64
"""The place of the fingerprint before it is computed."""

_MARK = (
    FINGERPRINT.encode() + b"\x12\x40"
)  # the key, then the header of a text of 64 characters, as protobuf writes them


@dataclass(frozen=True)
class Card:
    """Everything except the graph: the facts of the model, and the versions that wrote the file."""

    facts: ModelFacts
    exported_with: Mapping[str, str]

    def to_json(self) -> str:
        """Return the card as the text of a document, for the file's metadata."""
        content = {"facts": self.facts.document(), "exported_with": dict(self.exported_with)}
        return document.write(FORMAT, VERSION, content)

    @classmethod
    def from_json(cls, text: str) -> "Card":
        """Read what `to_json` wrote; refuse a newer version."""
        content = document.read(text, FORMAT, VERSION, ModelFileError)
        return cls(ModelFacts.of(content["facts"]), content["exported_with"])


def stamped(content: bytes) -> bytes:
    """Return the content with the fingerprint in the place that was left for it."""
    # The last one: the bytes before it, such as the weights, may contain the same mark by chance.
    place = content.rindex(_MARK) + len(_MARK)
    return content[:place] + sha256(content).encode() + content[place + len(BLANK) :]


def read(path: Path) -> bytes:
    """Read a file that `to_onnx` wrote; refuse any other, and a changed one, before it is parsed."""
    if not path.is_file():
        raise ModelFileError("a model must be a file", f"{path}, where there is no file", "check the path")
    content = path.read_bytes()
    mark = content.rfind(_MARK)
    if mark < 0:
        raise ModelFileError(
            "an ONNX file must be complete and written by ibforecast",
            f"{path}, which has no fingerprint of ibforecast",
            "write it with IBForecaster.to_onnx",
        )
    place = mark + len(_MARK)
    named, blank = content[place : place + len(BLANK)], BLANK.encode()
    if sha256([content[:place], blank, content[place + len(blank) :]]).encode() != named:
        raise ModelFileError("an ONNX file must match its fingerprint", f"{path}, which was changed", "export it again")
    return content
