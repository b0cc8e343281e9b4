"""Malformed files, documents and requests: readers refuse them with an error of the library, in little memory and time.

Each reader runs in a process of its own, with a gigabyte of address space above what it has after its start. If atheris
is installed (`pip install 'ibforecast[fuzz]'`), it chooses inputs by the lines they reach. Otherwise inputs are changed
at random, and those that end in a new place are changed further. Run as a script, this file is such a process.
"""

import hashlib
import mmap
import os
import random
import re
import resource
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torture.targets import Target

NAMES = ("csv", "gz", "parquet", "arrow", "columns", "recipe", "document", "model", "onnx", "http")
SECONDS = 10
"""The longest time for an input."""

MEMORY = 2**30
"""The address space for an input, in bytes, in addition to that of the process after its start."""

LONGEST = 2**20
"""The longest input, in bytes."""

GROWN = 400
"""How many inputs the random changes start from."""


def fuzz(minutes: float, seed: int, names: tuple[str, ...] = NAMES) -> dict[str, Any]:
    """Give every reader malformed inputs for its share of the time."""
    share = 60 * minutes / len(names)
    inputs, refused, broken = Counter[str](), Counter[str](), list[str]()
    guided = find_spec("atheris") is not None
    for name in names:
        until, number = time.monotonic() + share, seed
        while (left := until - time.monotonic()) > 1 or number == seed:
            outcome = _process(name, number, max(left, 1), guided)
            inputs[name] += outcome["inputs"]
            refused[name] += outcome["refused"]
            broken += [f"{name}: {line}" for line in outcome["broken"] if f"{name}: {line}" not in broken]
            number += 1
    return {
        "guided_by_coverage": guided,
        "inputs": inputs.total(),
        "inputs_by_reader": dict(inputs),
        "refused_by_reader": dict(refused),
        "broken": broken,
    }


def _process(name: str, seed: int, seconds: float, guided: bool) -> dict[str, Any]:
    """Run one process to its end, or until an input takes too long; return its counts and the promises it broke."""
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        folder = Path(place)
        (folder / "state").write_bytes(bytes(24 + LONGEST))
        words = [sys.executable, "-m", "torture.fuzz", name, str(seed), str(seconds), str(guided), place]
        with (folder / "words").open("wb") as words_of_it:
            process = subprocess.Popen(words, stdout=words_of_it, stderr=words_of_it, cwd=Path(__file__).parents[1])
        counted, since, stuck = -1, time.monotonic(), False
        while process.poll() is None:
            time.sleep(0.1)
            count = _state(folder)[0]
            if count != counted or not count:
                counted, since = count, time.monotonic()
            elif stuck := time.monotonic() - since > 3 * SECONDS:
                process.kill()
                process.wait()
        inputs, refused, last = _state(folder)
        findings = folder / "findings"
        broken = findings.read_text().splitlines() if findings.exists() else []
        end = (folder / "words").read_text(errors="replace").strip()
        if stuck or process.returncode:
            why = "more than 30 s" if stuck else f"exit {process.returncode}: {end[-300:]}"
            broken.append(f"{why}: {_shown(last)}")
        return {"inputs": inputs, "refused": refused, "broken": broken}


def _state(folder: Path) -> tuple[int, int, bytes]:
    content = (folder / "state").read_bytes()
    inputs, refused, size = (int.from_bytes(content[at : at + 8], "little") for at in (0, 8, 16))
    return inputs, refused, content[24 : 24 + size]


def _shown(content: bytes) -> str:
    return f"{hashlib.sha256(content).hexdigest()[:16]}, {len(content)} bytes, {content[:150]!r}"


class _Watched:
    """A reader whose inputs are counted, and whose defects are written to a file, each kind once."""

    def __init__(self, name: str, folder: Path) -> None:
        from torture import targets

        self.target = targets.make(name, folder)
        self._refused = targets.REFUSED
        with (folder / "state").open("r+b") as file:
            self._state = mmap.mmap(file.fileno(), 0)
        self._folder, self._counts, self._known = folder, [0, 0], set[str]()
        self._ends = set[tuple[str, ...]]()

    def __call__(self, content: bytes) -> bool:
        """Read an input; return whether reading ended in a new place, or without an error for the twentieth time."""
        content = content[:LONGEST]
        end: tuple[str, ...] = ("read", str((self._counts[0] - self._counts[1]) // 20))
        # Written before it is read: if the process dies, the last input is known.
        self._state[16:24] = len(content).to_bytes(8, "little")
        self._state[24 : 24 + len(content)] = content
        begun = time.perf_counter()
        try:
            self.target.probe(content)
        except self._refused as error:
            self._counts[1] += 1
            end = _end(error)
        except Exception as error:
            self._find(error, content)
        taken = time.perf_counter() - begun
        if taken > SECONDS:
            self._note("slow", f"{taken:.1f} s: {_shown(content)}", content)
        self._counts[0] += 1
        for place, count in enumerate(self._counts):
            self._state[8 * place : 8 * place + 8] = count.to_bytes(8, "little")
        known = len(self._ends)
        self._ends.add(end)
        return len(self._ends) > known

    def _find(self, error: Exception, content: bytes) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames[-4:]))
        text = f"{type(error).__name__}: {str(error)[:160]} at {where}".replace("\n", " ")
        self._note(f"{type(error).__name__} {where}", f"{text}: {_shown(content)}", content)

    def _note(self, kind: str, line: str, content: bytes) -> None:
        if kind in self._known:
            return
        self._known.add(kind)
        with (self._folder / "findings").open("a") as file:
            file.write(line + "\n")
        if kept := os.environ.get("TORTURE_KEEP"):  # the inputs themselves, to find the cause
            (Path(kept) / f"{hashlib.sha256(content).hexdigest()[:16]}.bin").write_bytes(content)


def _end(error: BaseException | None) -> tuple[str, ...]:
    """Return the lines that an error passed, and those of its causes, with their first words."""
    end: list[str] = []
    while error is not None:
        end += [f"{frame.f_code.co_filename}:{line}" for frame, line in traceback.walk_tb(error.__traceback__)]
        end += re.findall("[A-Za-z]+", str(error))[:3] if not hasattr(error, "rule") else []
        error = error.__cause__
    return tuple(end)


def _bound_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    if pages:
        most = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def at_random(target: "Target", seed: int) -> Generator[bytes, bool | None, None]:
    """Yield inputs for a reader with random changes: of true ones, and of those after which True was sent."""
    from torture.mutate import changed

    dice, pool = random.Random(seed), list(target.seeds)
    while True:
        content = dice.randbytes(dice.randrange(1, 48)) if target.drawn else changed(dice.choice(pool), pool, dice)
        if (yield content):
            place = len(pool) if len(pool) < GROWN else dice.randrange(len(target.seeds), GROWN)
            pool[place : place + 1] = [content[:20_000]]


def _guided(name: str, seed: int, seconds: float, folder: Path) -> None:
    """Let atheris choose the inputs, by the lines of this library that they reach."""
    import atheris

    with atheris.instrument_imports(include=["ibforecast"]):
        import ibforecast.adapters.onnx
        import ibforecast.data.tables
        import ibforecast.engine
        import ibforecast.forecaster
        import ibforecast.serve.app
        import ibforecast.zoo.saved  # noqa: F401
    watched = _Watched(name, folder)
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, content in enumerate(watched.target.seeds):
        (corpus / str(number)).write_bytes(content)
    watched(watched.target.seeds[0])
    _bound_memory()

    def read(content: bytes) -> None:  # atheris expects no answer
        watched(content)

    limits = [
        f"-max_total_time={max(1, int(seconds))}",
        f"-seed={seed + 1}",
        "-rss_limit_mb=0",
        f"-timeout={3 * SECONDS}",
    ]
    atheris.Setup([sys.argv[0], str(corpus), f"-max_len={64 if watched.target.drawn else 65536}", *limits], read)
    atheris.Fuzz()


def main(name: str, seed: int, seconds: float, guided: bool, folder: Path) -> None:
    """Give one reader inputs for some seconds."""
    import torch

    torch.set_num_threads(1)
    if guided:
        _guided(name, seed, seconds, folder)
    else:
        watched = _Watched(name, folder)
        watched(watched.target.seeds[0])
        _bound_memory()
        until, inputs, new = time.monotonic() + seconds, at_random(watched.target, seed), None
        while time.monotonic() < until:
            new = watched(inputs.send(new))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4] == "True", Path(sys.argv[5]))
