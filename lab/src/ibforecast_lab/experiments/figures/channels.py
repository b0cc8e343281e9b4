"""Time and memory of a training step by number of channels, from the benchmarks' records."""

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from ibforecast_lab.plots.channels import Growth, draw
from ibforecast_lab.plots.records import Form


def figure(folder: Path, form: Form) -> bytes | None:
    """Draw the records of a folder that measured channels; return None if there are none."""
    records = {}
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text())
        if measured := document["measures"].get("channels"):
            records[document["device"]] = measured
    time = _growths(records, "step_seconds", _duration)
    return draw(time, _growths(records, "peak_bytes", _size), form) if time else None


def _growths(records: dict[str, dict[str, float]], name: str, words: Callable[[float], str]) -> list[Growth]:
    growths = []
    for device, measured in records.items():
        matches = ((re.fullmatch(rf"{name}_(\d+)", key), value) for key, value in measured.items())
        sizes = sorted((int(match[1]), float(value)) for match, value in matches if match)
        if sizes:
            growths.append(_growth(device, sizes, words))
    return growths


def _growth(device: str, sizes: Iterable[tuple[int, float]], words: Callable[[float], str]) -> Growth:
    channels, measured = zip(*sizes, strict=True)
    proportional = [measured[0] * count / channels[0] for count in channels]
    return Growth(device, list(channels), list(measured), [words(value) for value in measured], proportional)


def _duration(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _size(count: float) -> str:
    return f"{count / 2**30:.2f} GiB"
