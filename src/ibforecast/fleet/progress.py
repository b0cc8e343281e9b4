"""The forecasts of a run so far, in a file that grows by one forecast at a time, so that a killed run continues.

Each entry is its length, its fingerprint, and an Arrow stream: the forecast, with its outcome as metadata. A process
that is killed leaves at most one entry that is not whole. It is dropped with everything after it, and computed again.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from hashlib import sha256
from io import FileIO
from pathlib import Path

import pyarrow as pa

from ibforecast.fleet.work import Outcome, read_outcome

ABOUT = b"ibforecast"
LENGTH, FINGERPRINT = 8, 32
"""Bytes of the length and of the fingerprint of an entry."""

Kept = tuple[Outcome, pa.Table]


class Progress:
    """Forecasts that were kept by their identity, and the file that further ones are appended to; None for no file."""

    def __init__(self, file: FileIO | None = None, kept: dict[str, Kept] | None = None) -> None:
        self._file, self._kept = file, kept or {}

    def kept(self, identity: str) -> Kept | None:
        """Return the forecast of an earlier run with the same model, table and moment, or None."""
        if identity not in self._kept:
            return None
        outcome, forecast = self._kept[identity]
        return replace(outcome, state="kept"), forecast

    def add(self, identity: str, outcome: Outcome, forecast: pa.Table) -> None:
        """Append a forecast to the file."""
        if self._file is None:
            return
        about = json.dumps({"identity": identity, "outcome": asdict(outcome)}).encode()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, forecast.schema.with_metadata({ABOUT: about})) as stream:
            stream.write_table(forecast)
        content = sink.getvalue().to_pybytes()
        self._file.write(len(content).to_bytes(LENGTH, "little") + sha256(content).digest() + content)


@contextmanager
def progress_in(path: Path | None) -> Iterator[Progress]:
    """Read the forecasts in a file, drop the end that is not whole, and continue the file; None for no file."""
    if path is None:
        yield Progress()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    content = path.read_bytes() if path.exists() else b""
    kept, whole = dict[str, Kept](), 0
    for entry in _entries(content):
        with pa.ipc.open_stream(pa.py_buffer(entry)) as stream:
            about, forecast = json.loads(stream.schema.metadata[ABOUT]), stream.read_all()
        kept[about["identity"]] = read_outcome(about["outcome"]), forecast.replace_schema_metadata(None)
        whole += LENGTH + FINGERPRINT + len(entry)
    with path.open("ab", buffering=0) as file:
        file.truncate(whole)
        yield Progress(file, kept)


def _entries(content: bytes) -> Iterator[bytes]:
    """Yield the entries up to the first that is not whole."""
    at = 0
    while at < len(content):
        start = at + LENGTH + FINGERPRINT
        end = start + int.from_bytes(content[at : at + LENGTH], "little")
        entry = content[start:end]
        if sha256(entry).digest() != content[at + LENGTH : start]:
            return
        yield entry
        at = end
