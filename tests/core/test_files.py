"""Files are written completely or not at all, and have fingerprints."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from ibforecast.core.files import sha256, to_json, write_atomically
from ibforecast.core.folders import sweep


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_written_file_can_be_read_and_no_other_file_is_left(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a" / "b" / "file.bin", b"\x00content")
    assert contents(tmp_path / "a" / "b") == {"file.bin": b"\x00content"}
    write_atomically(tmp_path / "a" / "b" / "file.bin", b"other")
    assert contents(tmp_path / "a" / "b") == {"file.bin": b"other"}


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failed_write_leaves_only_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    path = tmp_path / "file.bin"
    write_atomically(path, b"old")

    def fail(*arguments: object) -> None:
        raise OSError("disk full")

    if failing == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    else:
        monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"new")
    assert contents(tmp_path) == {"file.bin": b"old"}


def test_an_interrupted_write_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "file.bin", b"new")
    assert contents(tmp_path) == {}


def test_the_new_content_is_synced_before_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (order.append("fsync"), fsync(handle))[1])
    monkeypatch.setattr(Path, "replace", lambda path, to: (order.append("replace"), replace(path, to))[1])
    write_atomically(tmp_path / "file.bin", b"new")
    assert order == ["fsync", "replace"]


def test_other_users_may_read_the_written_file(tmp_path: Path) -> None:
    write_atomically(tmp_path / "file.bin", b"new")
    assert (tmp_path / "file.bin").stat().st_mode & 0o777 == 0o644


def test_rendering_a_document_is_deterministic_and_keeps_non_ascii_text() -> None:
    document = {"b": [1, 0.1, None], "a": "τ"}
    assert to_json(document) == to_json({"b": [1, 0.1, None], "a": "τ"})
    assert json.loads(to_json(document)) == document
    assert "τ".encode() in to_json(document)
    assert to_json(document).endswith(b"}\n")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_json_cannot_represent_is_refused(value: float) -> None:
    with pytest.raises(ValueError):
        to_json({"a": value})


def test_the_fingerprint_is_sha256_of_the_pieces_in_order() -> None:
    assert sha256(b"abc") == hashlib.sha256(b"abc").hexdigest()
    assert sha256([b"a", b"bc"]) == sha256(b"abc")
    assert sha256([b"bc", b"a"]) != sha256(b"abc")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process is killed in a copy of it")
def test_a_file_that_a_killed_process_left_is_removed_later_and_others_stay(tmp_path: Path) -> None:
    process = os.fork()
    if process == 0:
        os.fsync = lambda handle: os._exit(9)
        write_atomically(tmp_path / "file.bin", b"new")
    os.waitpid(process, 0)
    (tmp_path / ".file.bin.precious").write_bytes(b"mine")
    assert len(contents(tmp_path)) == 2
    sweep(tmp_path)
    assert contents(tmp_path) == {".file.bin.precious": b"mine"}
