"""Folders that are replaced whole or not at all, also by a process that is killed, and the removal of its leftovers."""

import errno
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ibforecast.core.files import HOST, temporary_prefix

AT_WORKING_FOLDER, EXCHANGE = -100, 2
"""AT_FDCWD and RENAME_EXCHANGE of Linux."""

LEFT = re.compile(rf"\.(?P<name>.+)\.{HOST}-(?P<process>\d+)\.[^.]+")
"""A temporary name: that of the file or folder to write, the machine and the process."""

ASIDE = "moved-aside"
"""The name of an old folder while a new one gets its name."""


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder in the parent of `folder`; at the end, remove whatever has its name."""
    temporary = _made(folder)
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def put_in_place(temporary: Path, folder: Path) -> None:
    """Give a finished folder its name; an old one is exchanged with it in one step, and is then `temporary`.

    If the system cannot exchange folders, the old one is moved aside, and restored on failure; if the process was
    killed, by `sweep`. Another process may put a folder in the same place at the same time: the later one stays.
    """
    while not (_renamed(temporary, folder) or exchanged(temporary, folder)):
        aside = _made(folder)
        try:
            with suppress(FileNotFoundError):  # another process has moved it aside
                folder.rename(aside / ASIDE)
            done = _renamed(temporary, folder)
        except BaseException:
            if (aside / ASIDE).exists():
                _renamed(aside / ASIDE, folder)  # if this fails too, `sweep` does it
            shutil.rmtree(aside, ignore_errors=True)
            raise
        shutil.rmtree(aside, ignore_errors=True)
        if done:
            return


def _renamed(one: Path, other: Path) -> bool:
    """Rename a folder; return False if there is one of the new name."""
    try:
        one.rename(other)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
            return False
        raise
    return True


def exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; return False if the system or the file system cannot."""
    if sys.platform != "linux":
        return False
    import ctypes  # only a model that is overwritten needs it

    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:  # a C library older than 2018
        return False
    paths = (AT_WORKING_FOLDER, os.fsencode(one), AT_WORKING_FOLDER, os.fsencode(other))
    return bool(rename(*paths, EXCHANGE) == 0)


@contextmanager
def locked(folder: Path, wait: bool) -> Iterator[bool]:
    """Hold the lock of a folder and yield True. If another process holds it, wait or yield False.

    The system releases the lock when the process ends, and no file is needed. A system without such locks locks
    nothing.
    """
    if os.name != "posix":
        yield True
        return
    import fcntl

    handle, free = os.open(folder, os.O_RDONLY), True
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            free = False
        except OSError:  # such as a disk of a network
            pass
        yield free
    finally:
        os.close(handle)


def sweep(parent: Path) -> None:
    """Remove temporary files and folders of ended processes, and restore a folder that one of them had moved aside."""
    for left in sorted(parent.iterdir()) if parent.is_dir() else ():
        parts = LEFT.fullmatch(left.name)
        if parts is None or not _has_ended(int(parts["process"])):
            continue
        old, folder = left / ASIDE, parent / parts["name"]
        if old.is_dir() and not folder.exists():
            with suppress(FileNotFoundError):  # another process may have restored it
                _renamed(old, folder)
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            with suppress(OSError):  # another process may have removed it
                left.unlink()


def _made(folder: Path) -> Path:
    # In the same parent: a rename is atomic only within one file system.
    return Path(tempfile.mkdtemp(dir=folder.parent, prefix=temporary_prefix(folder)))


def _has_ended(process: int) -> bool:
    if os.name != "posix":  # elsewhere, os.kill has another meaning
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    return False
