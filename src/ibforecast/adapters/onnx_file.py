"""The file a model is exported to: its card, which says everything beside the graph, and its seal."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ibforecast.core.errors import ModelFileError
from ibforecast.core.files import sha256, to_json
from ibforecast.core.verification import ModelFacts

FORMAT = "ibforecast.onnx"
FORMAT_VERSION = 1
CARD, SEAL = "ibforecast", "ibforecast.sha256"
"""The two entries of the file's metadata: everything beside the graph, and the fingerprint of the whole file."""

NOT_EXPORTED = ("further_cycles", "past", "covariates", "known_usual", "known_std")
"""Facts of models with covariates or several cycles, which are not exported."""

UNSEALED = "0" * 64
_SEAL_MARK = SEAL.encode() + b"\x12\x40"  # the key, then "a text of 64 characters", as protobuf writes it


@dataclass(frozen=True)
class Card:
    """Everything beside the graph: what the model says of itself, how its table was read, what wrote the file."""

    facts: ModelFacts
    frequency: str
    zone: str | None
    by_row: bool
    origin: str
    missing_values: tuple[float, ...]
    exported_with: Mapping[str, str]

    def to_json(self) -> str:
        """Render for the file's metadata."""
        facts = asdict(self.facts) | {"mean": self.facts.mean.tolist(), "std": self.facts.std.tolist()}
        facts = {name: fact for name, fact in facts.items() if name not in NOT_EXPORTED}
        document = {"format": FORMAT, "format_version": FORMAT_VERSION} | asdict(self) | {"facts": facts}
        return to_json(document).decode()

    @classmethod
    def from_json(cls, text: str) -> "Card":
        """Read what `to_json` wrote; a newer version is refused."""
        document: dict[str, Any] = json.loads(text)
        form, version = document.pop("format", None), document.pop("format_version", None)
        if form != FORMAT or not isinstance(version, int) or version > FORMAT_VERSION:
            raise ModelFileError(
                f"this ibforecast reads {FORMAT} up to format version {FORMAT_VERSION} (got {form!r}, version "
                f"{version!r}); upgrade ibforecast"
            )
        facts = document.pop("facts")
        facts |= {"channels": tuple(facts["channels"]), "mean": np.array(facts["mean"]), "std": np.array(facts["std"])}
        return cls(facts=ModelFacts(**facts), **document | {"missing_values": tuple(document["missing_values"])})


def sealed(content: bytes) -> bytes:
    """Put the fingerprint of a file into the place that was left for it."""
    place = content.rindex(_SEAL_MARK) + len(_SEAL_MARK)
    return content[:place] + sha256(content).encode() + content[place + len(UNSEALED) :]


def read(path: Path) -> bytes:
    """Read a file that `to_onnx` wrote, as it was written; any other is refused before anything looks inside."""
    if not path.is_file():
        raise ModelFileError(f"a model must be a file (got {path}, where there is none); check the path")
    content = path.read_bytes()
    found = content.rfind(_SEAL_MARK)
    if found < 0:
        raise ModelFileError(
            f"an ONNX file must be ibforecast's and whole (got {path}, which has no fingerprint of ours); "
            "write it with IBForecaster.to_onnx"
        )
    place = found + len(_SEAL_MARK)
    told, blank = content[place : place + len(UNSEALED)], UNSEALED.encode()
    if sha256([content[:place], blank, content[place + len(blank) :]]).encode() != told:
        raise ModelFileError(f"an ONNX file must match its own fingerprint (it was changed, {path}); export it again")
    return content
