"""The eight data sets of the paper: their facts, their files, and the check that a file is the published one."""

import gzip
import hashlib
import os
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from ibforecast.core.calendar import Clock, Frequency
from ibforecast.core.errors import DataError, UsageError, hint
from ibforecast.data.series import Series
from ibforecast.data.splits import Split

ETT = "https://raw.githubusercontent.com/zhouhaoyi/ETDataset/main/ETT-small"
TSL = "https://huggingface.co/datasets/thuml/Time-Series-Library/resolve/main"
LSTNET = "https://raw.githubusercontent.com/laiguokun/multivariate-time-series-data/master"
JENA = "Max Planck Institute for Biogeochemistry, Jena; terms of the source"
UCI = "UCI ElectricityLoadDiagrams20112014, CC BY 4.0"

Rule = Literal["ett-hour", "ett-minute", "ratio"]
ROWS_OF_A_MONTH = {"ett-hour": 30 * 24, "ett-minute": 30 * 24 * 4}


@dataclass(frozen=True)
class DataSet:
    """The facts of one data set. `checksum` is that of the published file, as "algorithm:digest".

    A "headed" file has a header and a first column of dates. A "bare" file has only numbers, and its times are
    counted from `start`.
    """

    name: str
    channels: int
    rows: int
    frequency: str
    cycle: int
    split: Rule
    url: str
    checksum: str
    licence: str
    form: Literal["headed", "bare"] = "headed"
    start: str = ""

    @property
    def parts(self) -> Split:
        """Borders of the protocol's parts: 12, 4 and 4 months of ETT, and 70, 10 and 20 % of any other data set."""
        if month := ROWS_OF_A_MONTH.get(self.split):
            # The protocol never reads the rows of ETT after month 20.
            return Split(12 * month, 16 * month, 20 * month)
        # As in the published protocol, training and test are rounded down and validation takes the rest.
        return Split(int(self.rows * 0.7), self.rows - int(self.rows * 0.2), self.rows)

    @property
    def file(self) -> str:
        """Name of the published file."""
        return self.url.rsplit("/", 1)[1]

    @property
    def names(self) -> tuple[str, ...]:
        """File names that are recognised: the published one or the name of the data set, gzipped or not."""
        plain = dict.fromkeys((f"{self.name}.csv", f"{self.name.lower()}.csv", self.file))
        return tuple(name for stem in plain for name in (f"{stem}.gz", stem) if not name.endswith(".gz.gz"))


def _ett(name: str, rows: int, frequency: str, cycle: int, split: Rule, sha256: str) -> DataSet:
    url, licence = f"{ETT}/{name}.csv", "CC BY-ND 4.0"
    return DataSet(name, 7, rows, frequency, cycle, split, url, f"sha256:{sha256}", licence)


_ALL = (
    _ett("ETTh1", 17420, "1h", 24, "ett-hour", "f18de3ad269cef59bb07b5438d79bb3042d3be49bdeecf01c1cd6d29695ee066"),
    _ett("ETTh2", 17420, "1h", 24, "ett-hour", "a3dc2c597b9218c7ce1cd55eb77b283fd459a1d09d753063f944967dd6b9218b"),
    _ett("ETTm1", 69680, "15min", 96, "ett-minute", "6ce1759b1a18e3328421d5d75fadcb316c449fcd7cec32820c8dafda71986c9e"),
    _ett("ETTm2", 69680, "15min", 96, "ett-minute", "db973ca252c6410a30d0469b13d696cf919648d0f3fd588c60f03fdbdbadd1fd"),
    DataSet(
        name="Weather",
        channels=21,
        rows=52696,
        frequency="10min",
        cycle=144,
        split="ratio",
        url=f"{TSL}/weather/weather.csv",
        checksum="sha256:34ee981d07313e51da2a50bb600072c8ae4a69cb4b0651f4cb93a069d7a2ba63",
        licence=JENA,
    ),
    DataSet(
        name="Electricity",
        channels=321,
        rows=26304,
        frequency="1h",
        cycle=168,
        split="ratio",
        url=f"{LSTNET}/electricity/electricity.txt.gz",
        checksum="sha256:3c4c069588198c1fcc95cace7bb69c99922129edfd673b7286661dad20badefa",
        licence=UCI,
        form="bare",
        start="2012-01-01",
    ),
    DataSet(
        name="Solar",
        channels=137,
        rows=52560,
        frequency="10min",
        cycle=144,
        split="ratio",
        url=f"{LSTNET}/solar-energy/solar_AL.txt.gz",
        checksum="md5:41ef7fdc958c2ca3fac9cd06d6227073",
        licence="National Renewable Energy Laboratory; terms of the source",
        form="bare",
        start="2006-01-01",
    ),
    DataSet(
        name="Traffic",
        channels=862,
        rows=17544,
        frequency="1h",
        cycle=168,
        split="ratio",
        url=f"{LSTNET}/traffic/traffic.txt.gz",
        checksum="sha256:c7be5a00519d344a5ec0eabdbfec5ea0c7dd1eed5f9b1a3843a93bb88086a56d",
        licence="California Department of Transportation; terms of the source",
        form="bare",
        start="2015-01-01",
    ),
)
CATALOGUE: dict[str, DataSet] = {dataset.name: dataset for dataset in _ALL}


def lookup(name: str) -> DataSet:
    """Find a data set by its name; upper and lower case are the same."""
    by_lower = {known.lower(): dataset for known, dataset in CATALOGUE.items()}
    if dataset := by_lower.get(name.lower()):
        return dataset
    raise UsageError("a data set must be in the catalogue", repr(name), hint(name, list(CATALOGUE)))


def cache_folder() -> Path:
    """Return the folder for downloads: `IBFORECAST_CACHE`, or the user's cache."""
    if chosen := os.environ.get("IBFORECAST_CACHE"):
        return Path(chosen)
    usual = {"win32": os.environ.get("LOCALAPPDATA"), "darwin": "~/Library/Caches"}.get(sys.platform)
    return Path(os.environ.get("XDG_CACHE_HOME") or usual or "~/.cache").expanduser() / "ibforecast"


def folders() -> list[Path]:
    """Return the folders that are searched, in order: `IBFORECAST_DATA`, then the cache."""
    chosen = os.environ.get("IBFORECAST_DATA")
    return [*([Path(chosen)] if chosen else []), cache_folder()]


def find(name: str) -> Path | None:
    """Find the file of a data set; None if it is not on this machine."""
    paths = (folder / file for folder in folders() for file in lookup(name).names)
    return next((path for path in paths if path.is_file()), None)


def locate(name: str) -> Path:
    """Return the path of the file of a data set; raise `DataError` if it is not on this machine."""
    dataset = lookup(name)
    if path := find(name):
        return path
    raise DataError(
        f"{dataset.name} must be in one of the folders that are searched",
        f"none of {', '.join(dataset.names)} in {' and '.join(map(str, folders()))}",
        f"set IBFORECAST_DATA, pass download=True, or run: ibforecast datasets --download {dataset.name}",
    )


def download(name: str) -> Path:
    """Fetch the published file into the cache, and keep it only if its checksum is right."""
    return _fetch(lookup(name))


def load(name: str, download: bool = False) -> Series:
    """Read a data set, its phases counted by row number as in the protocol; refuse a damaged file."""
    dataset = lookup(name)
    path = find(name) or (_fetch(dataset) if download else locate(name))
    return _parse(dataset, _verified(dataset, path))


def _fetch(dataset: DataSet) -> Path:
    import pooch

    pooch.get_logger().setLevel("WARNING")
    try:
        path = pooch.retrieve(dataset.url, known_hash=dataset.checksum, fname=dataset.file, path=cache_folder())
    except (OSError, ValueError) as error:
        raise DataError(
            f"the download of {dataset.url} must be complete",
            error,
            "try again, or put the file into the folder named by IBFORECAST_DATA",
        ) from error
    return Path(path)


def unzipped(content: bytes, path: Path) -> bytes:
    """Return the unpacked content of a gzip file; the error for a damaged one names its path."""
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} must be a complete gzip file", error, "delete it and fetch it again") from error


def _verified(dataset: DataSet, path: Path) -> str:
    """Return the text of a file whose published form has the known checksum."""
    content = path.read_bytes()
    plain = unzipped(content, path) if path.name.endswith(".gz") else content
    algorithm, expected = dataset.checksum.split(":")
    # The checksum is of the file as published, so a file that was zipped later is unzipped before it is hashed.
    digest = hashlib.new(algorithm, content if dataset.file.endswith(".gz") else plain).hexdigest()
    if digest != expected:
        raise DataError(
            f"{path} must be the published file, whose {algorithm} is {expected}",
            digest,
            f"delete it and fetch {dataset.url} again",
        )
    return plain.decode("utf8", errors="replace")


def _parse(dataset: DataSet, text: str) -> Series:
    lines = text.splitlines()
    frequency = Frequency.parse(dataset.frequency)
    if dataset.form == "bare":
        values = np.loadtxt(lines, delimiter=",", ndmin=2)
        channels = tuple(str(column) for column in range(values.shape[1]))
        start = np.datetime64(dataset.start, "us")
        stamps = frequency.after(start, np.arange(len(values)), day=1)
    else:
        header = lines.pop(0).split(",")
        values = np.loadtxt(lines, delimiter=",", ndmin=2, usecols=range(1, len(header)))
        channels = tuple(header[1:])
        stamps = np.array([line.split(",", 1)[0] for line in lines], dtype="datetime64[us]")
    if values.shape != (dataset.rows, dataset.channels):
        raise DataError(
            f"{dataset.name} must be {dataset.rows} x {dataset.channels}",
            f"{values.shape[0]} x {values.shape[1]}",
            "delete the file and fetch it again",
        )
    return Series(values, channels, Clock(stamps, frequency, by_row=True))
