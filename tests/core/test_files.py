"""Files are written completely or not at all, and have fingerprints."""

import errno
import hashlib
import json
import os
from pathlib import Path

import pytest

from ibforecast.core import folders
from ibforecast.core.files import sha256, to_json, write_atomically
from ibforecast.core.folders import new_folder, put_in_place, sweep


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


def new(folder: Path, name: str) -> Path:
    folder.mkdir()
    (folder / name).touch()
    return folder


def test_an_old_folder_that_cannot_be_restored_is_kept_aside_and_restored_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, newer, rename = new(tmp_path / "model", "old"), new(tmp_path / "newer", "new"), Path.rename
    broken = {"model"}

    def fail(path: Path, to: Path) -> Path:
        if to.name in broken and path.name != "model":
            raise OSError(errno.ENOTEMPTY if old.exists() else errno.EIO, "Input/output error")
        return rename(path, to)

    monkeypatch.setattr(folders, "exchanged", lambda one, other: False)
    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OSError, match="Input/output"):
        put_in_place(newer, old)
    assert not old.exists()
    broken.clear()
    monkeypatch.setattr(folders, "_has_ended", lambda process: True)
    sweep(tmp_path)
    assert list(old.iterdir()) == [old / "old"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "newer"]


def test_a_folder_that_is_replaced_never_loses_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, newer, rename = new(tmp_path / "model", "old"), new(tmp_path / "newer", "new"), Path.rename
    if not folders.exchanged(old, newer):
        pytest.skip("this system cannot exchange folders")
    folders.exchanged(old, newer)
    renamed: list[Path] = []
    monkeypatch.setattr(Path, "rename", lambda path, to: renamed.append(path) or rename(path, to))
    put_in_place(newer, old)
    assert old not in renamed
    assert [path.name for path in old.iterdir()] == ["new"]


@pytest.mark.parametrize("can_exchange", [True, False])
def test_of_two_processes_that_replace_a_folder_the_later_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    model, exchanged = new(tmp_path / "model", "old"), folders.exchanged
    rivals = iter(["one", "two"])

    def overtaken(one: Path, other: Path) -> bool:
        if (name := next(rivals, None)) is not None:  # another process moves it aside, and writes its own
            other.rename(tmp_path / f"was {name}")
            new(other, name)
        return can_exchange and exchanged(one, other)

    monkeypatch.setattr(folders, "exchanged", overtaken)
    with new_folder(model) as temporary:
        (temporary / "mine").touch()
        put_in_place(temporary, model)
    assert list(model.iterdir()) == [model / "mine"]
    assert not list(tmp_path.glob(".*"))
