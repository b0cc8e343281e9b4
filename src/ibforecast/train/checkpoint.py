"""A training run between two epochs, saved as one file that is complete or absent."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from ibforecast.core.errors import ModelFileError
from ibforecast.core.files import write_atomically

PARTS = ("weights", "best_weights", "moments", "averages")


@dataclass(frozen=True)
class Epoch:
    """The outcome of one epoch, and the time it took."""

    loss: float
    open_rate: float
    validation_error: float
    learning_rate: float
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class Checkpoint:
    """Weights, their averages and the optimiser after the last finished epoch; the best weights; the history."""

    identity: str
    history: tuple[Epoch, ...]
    weights: dict[str, Tensor]
    best_weights: dict[str, Tensor]
    moments: dict[str, Tensor]
    averages: dict[str, Tensor]

    def save(self, path: Path) -> None:
        """Write the run to one safetensors file."""
        tensors = {
            f"{part}:{name}": tensor.contiguous() for part in PARTS for name, tensor in getattr(self, part).items()
        }
        history = json.dumps([asdict(epoch) for epoch in self.history])
        write_atomically(path, save(tensors, {"identity": self.identity, "history": history}))

    @classmethod
    def load(cls, path: Path, identity: str) -> "Checkpoint | None":
        """Read the run back; None if there is none, or if it was another run (recipe, data or seed differ)."""
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            tensors = load(content)
            header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]
            epochs = json.loads(header["history"])
            history = tuple(Epoch(**{name: float(number) for name, number in epoch.items()}) for epoch in epochs)
            same = header["identity"] == identity
            parts: dict[str, dict[str, Tensor]] = {part: {} for part in PARTS}
            for name, tensor in tensors.items():
                part, _, key = name.partition(":")
                parts[part][key] = tensor
        except (SafetensorError, ArithmeticError, AttributeError, ValueError, KeyError, TypeError) as error:
            raise ModelFileError(
                "a training checkpoint must be whole", f"{error} in {path}", "delete it to start again"
            ) from error
        if not same:
            return None
        return cls(identity, history, **parts)
