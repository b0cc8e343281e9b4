"""The eight data sets: facts, files, checksums, and the splits of the protocol."""

import gzip
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from ibforecast.core.calendar import Frequency
from ibforecast.core.errors import DataError, UsageError
from ibforecast.data.splits import Part, Split
from ibforecast_lab.data import catalogue
from ibforecast_lab.data.catalogue import CATALOGUE, DataSet

LOOK_BACK, HORIZONS = 96, (96, 192, 336, 720)
ETTH = ((8449, 2785, 2785), (8353, 2689, 2689), (8209, 2545, 2545), (7825, 2161, 2161))
ETTM = ((34369, 11425, 11425), (34273, 11329, 11329), (34129, 11185, 11185), (33745, 10801, 10801))
PROTOCOL = {
    "ETTh1": ETTH,
    "ETTh2": ETTH,
    "ETTm1": ETTM,
    "ETTm2": ETTM,
    "Weather": ((36696, 5175, 10444), (36600, 5079, 10348), (36456, 4935, 10204), (36072, 4551, 9820)),
    "Electricity": ((18221, 2537, 5165), (18125, 2441, 5069), (17981, 2297, 4925), (17597, 1913, 4541)),
    "Solar": ((36601, 5161, 10417), (36505, 5065, 10321), (36361, 4921, 10177), (35977, 4537, 9793)),
    "Traffic": ((12089, 1661, 3413), (11993, 1565, 3317), (11849, 1421, 3173), (11465, 1037, 2789)),
}
ROWS = {
    "ETTh1": (8640, 11520, 14400),
    "ETTh2": (8640, 11520, 14400),
    "ETTm1": (34560, 46080, 57600),
    "ETTm2": (34560, 46080, 57600),
    "Weather": (36887, 42157, 52696),
    "Electricity": (18412, 21044, 26304),
    "Solar": (36792, 42048, 52560),
    "Traffic": (12280, 14036, 17544),
}
PARTS: tuple[Part, ...] = ("train", "validation", "test")

TEXT = "date,x,y\n" + "".join(f"2020-01-01 {hour:02}:00:00,{hour},{hour / 10}\n" for hour in range(5))


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IBFORECAST_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("IBFORECAST_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DataSet]:
    """A data set of five rows, published by a local server."""
    (tmp_path / "tiny_set.csv").write_text(TEXT)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/tiny_set.csv"
    checksum = f"sha256:{hashlib.sha256(TEXT.encode()).hexdigest()}"
    dataset = DataSet("Tiny", 2, 5, "1h", 24, "ratio", url, checksum, "none")
    monkeypatch.setitem(CATALOGUE, "Tiny", dataset)
    yield dataset
    server.shutdown()
    server.server_close()


def test_the_catalogue_has_the_eight_data_sets_of_the_paper() -> None:
    facts = {name: (dataset.channels, dataset.rows, dataset.cycle) for name, dataset in CATALOGUE.items()}
    assert facts == {
        "ETTh1": (7, 17420, 24),
        "ETTh2": (7, 17420, 24),
        "ETTm1": (7, 69680, 96),
        "ETTm2": (7, 69680, 96),
        "Weather": (21, 52696, 144),
        "Electricity": (321, 26304, 168),
        "Solar": (137, 52560, 144),
        "Traffic": (862, 17544, 168),
    }


@pytest.mark.parametrize("dataset", CATALOGUE.values(), ids=lambda dataset: dataset.name)
def test_every_entry_is_complete(dataset: DataSet) -> None:
    algorithm, digest = dataset.checksum.split(":")
    assert len(digest) == 2 * hashlib.new(algorithm).digest_size
    assert str(Frequency.parse(dataset.frequency)) == dataset.frequency
    assert dataset.url.startswith("https://")
    assert dataset.licence
    assert bool(dataset.start) == (dataset.form == "bare")


@pytest.mark.parametrize("name", ["ETTh1", "ETTh2", "ETTm1", "ETTm2", "Weather"])
def test_the_published_files_are_read_by_row_number(name: str, data_folder: Path) -> None:
    dataset, series = CATALOGUE[name], catalogue.load(name.lower())
    assert series.values.shape == (dataset.rows, dataset.channels)
    assert series.channels[-1] == "OT"
    assert np.isfinite(series.values).all()
    assert (series.clock.phase(0, dataset.rows, dataset.cycle) == np.arange(dataset.rows) % dataset.cycle).all()


def test_weather_keeps_its_sentinels(data_folder: Path) -> None:
    assert (catalogue.load("Weather").values == -9999).sum() == 81


@pytest.mark.parametrize("file", ["Tiny.csv", "tiny.csv", "tiny_set.csv", "Tiny.csv.gz", "tiny_set.csv.gz"])
def test_a_file_is_found_under_each_of_its_names(file: str, folder: Path, tiny: DataSet) -> None:
    content = TEXT.encode()
    (folder / file).write_bytes(gzip.compress(content) if file.endswith(".gz") else content)
    series = catalogue.load("Tiny")
    assert series.channels == ("x", "y")
    np.testing.assert_array_equal(series.values[:, 1], np.arange(5) / 10)
    assert series.clock.labels(4, 2) == ("2020-01-01 04:00", "2020-01-01 05:00")


def test_bare_files_have_numbered_channels_and_counted_times(
    folder: Path, tiny: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = gzip.compress(b"1,2\n3,4\n5,6\n7,8\n9,10\n")
    (folder / "bare.txt.gz").write_bytes(content)
    checksum = f"md5:{hashlib.md5(content).hexdigest()}"
    bare = replace(tiny, url="https://x/bare.txt.gz", checksum=checksum, form="bare", start="2012-01-01")
    monkeypatch.setitem(CATALOGUE, "Tiny", bare)
    series = catalogue.load("Tiny")
    assert series.channels == ("0", "1")
    assert series.values[4].tolist() == [9, 10]
    assert series.clock.labels(0, 2) == ("2012-01-01 00:00", "2012-01-01 01:00")


def test_a_damaged_file_is_refused_with_both_checksums(folder: Path, tiny: DataSet) -> None:
    (folder / "Tiny.csv").write_text(TEXT[:-1])
    actual = hashlib.sha256(TEXT[:-1].encode()).hexdigest()
    expected = tiny.checksum.split(":")[1]
    with pytest.raises(DataError, match=rf"whose sha256 is {expected} \(got {actual}\); delete it and fetch"):
        catalogue.load("Tiny")


def test_a_truncated_file_is_refused(folder: Path, tiny: DataSet) -> None:
    (folder / "Tiny.csv.gz").write_bytes(gzip.compress(TEXT.encode())[:-12])
    with pytest.raises(DataError, match="must be a complete gzip file"):
        catalogue.load("Tiny")


def test_a_file_of_another_size_is_refused(folder: Path, tiny: DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "Tiny.csv").write_text(TEXT)
    monkeypatch.setitem(CATALOGUE, "Tiny", replace(tiny, rows=6))
    with pytest.raises(DataError, match=r"must be 6 x 2 \(got 5 x 2\)"):
        catalogue.load("Tiny")


def test_nothing_is_downloaded_by_default(folder: Path, tiny: DataSet) -> None:
    with pytest.raises(DataError, match=r"(?s)data and .*cache\).*download=True.*ibforecast datasets --download Tiny"):
        catalogue.load("Tiny")
    assert catalogue.find("Tiny") is None


def test_a_download_is_stored_in_the_cache_and_found_there(folder: Path, tiny: DataSet) -> None:
    series = catalogue.load("Tiny", download=True)
    assert series.rows == 5
    assert catalogue.find("Tiny") == catalogue.cache_folder() / "tiny_set.csv"
    assert catalogue.load("Tiny").sha256 == series.sha256


def test_a_download_with_the_wrong_checksum_is_not_kept(
    folder: Path, tiny: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CATALOGUE, "Tiny", replace(tiny, checksum=f"sha256:{'0' * 64}"))
    with pytest.raises(DataError, match="must be complete"):
        catalogue.download("Tiny")
    assert catalogue.find("Tiny") is None


def test_a_failed_download_is_reported(folder: Path, tiny: DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CATALOGUE, "Tiny", replace(tiny, url=tiny.url.replace("tiny_set", "gone")))
    with pytest.raises(DataError, match=r"must be complete .*404"):
        catalogue.download("Tiny")


def test_an_unknown_name_is_refused_with_the_closest_one() -> None:
    with pytest.raises(UsageError, match="did you mean 'Electricity'"):
        catalogue.lookup("electricty")
    with pytest.raises(UsageError, match="choose among ETTh1"):
        catalogue.lookup("zzz")


def test_the_environment_sets_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("IBFORECAST_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert catalogue.cache_folder() == tmp_path / "ibforecast"
    monkeypatch.setenv("IBFORECAST_CACHE", str(tmp_path / "mine"))
    assert catalogue.cache_folder() == tmp_path / "mine"


def test_every_data_set_of_the_catalogue_is_in_the_protocol() -> None:
    assert set(PROTOCOL) == set(ROWS) == set(CATALOGUE)


@pytest.mark.parametrize("data", PROTOCOL)
def test_parts_end_at_the_rows_of_the_protocol(data: str) -> None:
    split = CATALOGUE[data].parts
    assert (split.train_end, split.validation_end, split.test_end) == ROWS[data]


@pytest.mark.parametrize(("place", "horizon"), list(enumerate(HORIZONS)))
@pytest.mark.parametrize("data", PROTOCOL)
def test_every_part_has_the_number_of_windows_of_the_protocol(data: str, place: int, horizon: int) -> None:
    counts = tuple(len(CATALOGUE[data].parts.starts(part, LOOK_BACK, horizon)) for part in PARTS)
    assert counts == PROTOCOL[data][place]


def test_the_default_fractions_give_the_splits_of_the_protocol() -> None:
    for data in ("Weather", "Electricity", "Solar", "Traffic"):
        assert Split.by_fractions((0.7, 0.1, 0.2), CATALOGUE[data].rows) == CATALOGUE[data].parts


def test_a_file_is_located_and_one_that_is_missing_is_an_error(folder: Path, tiny: DataSet) -> None:
    with pytest.raises(DataError, match=r"Tiny must be in one of the folders .*ibforecast datasets --download Tiny"):
        catalogue.locate("Tiny")
    (folder / "Tiny.csv").write_text(TEXT)
    assert catalogue.locate("tiny") == folder / "Tiny.csv"
