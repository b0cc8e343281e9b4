"""Save a model in processes that are killed before each of their file operations, and load what is left.

A killed process runs no handler, so a test in one process cannot imitate it. Prints one JSON line per kill.
"""

import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ibforecast.core import folders
from ibforecast.core.errors import ModelFileError
from ibforecast.zoo.saved import FittedModel, load

OPERATIONS = ("open", "os.", "shutil.", "tempfile.", "ctypes.call", "ctypes.dlsym")


def save_until(number: int, model: FittedModel, folder: Path) -> bool:
    """Save in another process that is killed before its nth operation; return whether it came to its end."""
    process = os.fork()
    if process == 0:
        left = number

        def count(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal left
            if event.startswith(OPERATIONS):
                left -= 1
                if left < 0:
                    os._exit(9)

        sys.addaudithook(count)
        model.save(folder, overwrite=True)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0


def fingerprint(folder: Path) -> str | None:
    """Return the fingerprint of the model's weights; None if there is no model."""
    try:
        return load(folder).weights_sha256
    except ModelFileError:
        return None


def main(old: Path, new: Path, can_exchange: bool, overwrites: bool) -> None:
    """Kill a save of the model `new` at every operation; `overwrites` says whether `old` is there before."""
    if not can_exchange:
        folders.exchanged = lambda one, other: False  # type: ignore[assignment]
    first, second = load(old), load(new)
    _ = first.weights, second.weights
    for number in range(10_000):
        with TemporaryDirectory() as place:
            folder = Path(place) / "model"
            if overwrites:
                first.save(folder)
            ended = save_until(number, second, folder)
            found = fingerprint(folder)
            second.save(folder, overwrite=True)
            left = sorted(path.name for path in Path(place).iterdir())
            print(json.dumps({"ended": ended, "found": found, "then": fingerprint(folder), "left": left}))
        if ended:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "True", sys.argv[4] == "True")
