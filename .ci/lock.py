"""Pin the fingerprints of every file of the pinned packages: `python .ci/lock.py`, then commit .ci/locked.txt.

For each version in constraints.txt the file has the SHA-256 of the source archive and of the wheels for the supported
versions of Python, as the index lists them, for all systems. `make locked` downloads the packages with
`pip --require-hashes`, which refuses any other file. PyTorch is left out: its builds for processors and for each CUDA
come from different indices, with fingerprints of their own.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote
from urllib.request import urlopen

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PINS, LOCKED = ROOT / "constraints.txt", ROOT / ".ci" / "locked.txt"
ELSEWHERE = ("torch",)
OLDEST = 11
LINK = re.compile(r"""<a [^>]*href=["'][^"'#]*/([^"'#/]+)#sha256=([0-9a-f]{64})["']""")
"""A file on a page of the index: its name and its fingerprint."""


def main() -> int:
    """Write the fingerprints of all pinned files; return the exit code."""
    pins = dict(pins_in(PINS.read_text("utf8")))
    with ThreadPoolExecutor(8) as threads:
        hashes = dict(
            zip(pins, threads.map(lambda name: fingerprints(page_of(name), name, pins[name]), pins), strict=True)
        )
    if missing := [name for name, found in hashes.items() if not found]:
        sys.stderr.write(f"the index has no file of {', '.join(missing)} in the pinned versions\n")
        return 1
    LOCKED.write_text("".join(f"{name}=={pins[name]} {_options(found)}\n" for name, found in hashes.items()))
    return 0


def pins_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and version of each pinned package whose files are locked."""
    for line in text.split():
        name, _, version = line.partition("==")
        if canonicalize_name(name) not in ELSEWHERE:
            yield name, version


def fingerprints(page: str, name: str, version: str) -> list[str]:
    """Return the fingerprints of the files of a version on a page of the index, sorted."""
    wanted = canonicalize_name(name), Version(version)
    return sorted({sha256 for file, sha256 in LINK.findall(page) if is_of(unquote(unescape(file)), *wanted)})


def is_of(file: str, name: str, version: Version) -> bool:
    """Return whether a file is the source archive of a version, or a wheel of it for a supported Python."""
    try:
        if not file.endswith(".whl"):
            return parse_sdist_filename(file) == (name, version)
        project, release, _, tags = parse_wheel_filename(file)
    except (InvalidSdistFilename, InvalidWheelFilename):  # an egg, an installer
        return False
    return (project, release) == (name, version) and any(_runs_on(tag.interpreter, tag.abi) for tag in tags)


def _runs_on(interpreter: str, abi: str) -> bool:
    minor = re.fullmatch(r"(?:cp|py)3(\d*)", interpreter)
    if minor is None:
        return False
    exact = not minor[1] or OLDEST <= int(minor[1]) <= OLDEST + 2
    return exact or abi in ("abi3", "none")


def page_of(name: str) -> str:
    """Return the page of a package on the index that pip uses."""
    with urlopen(f"{_index()}/{canonicalize_name(name)}/", timeout=60) as page:
        return str(page.read().decode())


@cache
def _index() -> str:
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        sys.exit("pip must have an index; run: pip config set global.index-url ADDRESS")
    return done.stdout.strip().rstrip("/")


def _options(found: list[str]) -> str:
    return " ".join(f"--hash=sha256:{each}" for each in found)


if __name__ == "__main__":
    sys.exit(main())
