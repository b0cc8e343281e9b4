"""Faults at the file operations of this process: a function is called before each of them, and may end or fail it.

Operations that change the disk are counted: opening a file for writing, both halves of every write, flushing to the
disk, renaming, removing, making folders, changing permissions. Python reports most of them to audit hooks; writes and
flushes have no event, so `open` and `os.fsync` are replaced. Nothing is restored: use this in a process of its own.
"""

import builtins
import io
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

EVENTS = (
    *("os.chmod", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate"),
    *("shutil.copyfile", "shutil.copymode", "shutil.copystat", "shutil.copytree", "shutil.move", "shutil.rmtree"),
    *("tempfile.mkdtemp", "tempfile.mkstemp", "ctypes.call_function", "ctypes.dlsym"),
)
"""Events of changes. A folder is exchanged by a function of the C library, so finding and calling one count."""

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

Before = Callable[[str], None]
"""Called with the name of an operation before it is done; what it raises is the operation's error."""


def install(before: Before) -> None:
    """Call a function before every operation of this process that changes the disk, from now on."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in EVENTS or (event == "open" and _writes(*arguments[1:])):
            before(event)

    def opened(file: Any, mode: str = "r", buffering: int = -1, *rest: Any, **named: Any) -> Any:
        if not set(mode) & set("wax+"):
            return plain(file, mode, buffering, *rest, **named)
        plainly = mode.replace("b", "").replace("t", "")
        raw = _torn(before)(file, plainly, named.pop("closefd", True), named.pop("opener", None))
        if not buffering:
            return raw
        buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        if "b" in mode:
            return buffered
        return io.TextIOWrapper(buffered, *rest, **named)

    def fsync(file: Any) -> None:
        before("fsync")
        flush(file)

    plain, flush = io.open, os.fsync
    builtins.open = io.open = opened  # type: ignore[assignment]
    os.fsync = fsync
    sys.addaudithook(hook)


def _writes(mode: Any, flags: Any) -> bool:
    return bool(set(mode) & set("wax+") if isinstance(mode, str) else isinstance(flags, int) and flags & WRITING)


def _torn(before: Before) -> type[io.FileIO]:
    class Torn(io.FileIO):
        """A file whose every write is two: a process can end, and a disk can fill up, in the middle of it."""

        def write(self, content: Any) -> int:
            before("write")
            view = memoryview(content).cast("B")
            half = super().write(view[: len(view) // 2]) if len(view) > 1 else 0
            before("write the rest")
            return half + super().write(view[half:])

    return Torn


def kill_at(number: int) -> Before:
    """Return a function that kills this process before its operation of this number, counted from zero."""
    left = number

    def before(operation: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return before


def fail_from(number: int, error: int, times: int = sys.maxsize) -> Before:
    """Return a function that fails operations with an error of the system, from one on: a full disk stays full.

    Removing and leaving is possible on a full disk, so an operation that takes no space is not failed.
    """
    done = 0

    def before(operation: str) -> None:
        nonlocal done
        done += 1
        takes = operation in ("open", "write", "write the rest", "fsync", "os.mkdir", "os.rename", "os.chmod")
        if takes and number < done <= number + times:
            raise OSError(error, os.strerror(error))

    return before


def slow(seconds: float) -> Before:
    """Return a function that delays every operation."""
    return lambda operation: time.sleep(seconds)


def forked(work: Callable[[], Any], limit: float = 120.0) -> int:
    """Do some work in a copy of this process; return its exit code, negative if a signal ended it.

    It is quiet, and its temporary files are its own. A copy that takes too long is killed, with the code of SIGALRM.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process == 0:
        code = 1
        try:
            signal.alarm(int(limit))
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, 1)
            if "IBFORECAST_DEBUG" not in os.environ:
                os.dup2(nothing, 2)
            code = int(work() or 0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield a new folder, which is also that of temporary files, and remove it in the end."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "work").mkdir()
        (place / "temporary").mkdir()
        before, tempfile.tempdir = tempfile.tempdir, str(place / "temporary")
        try:
            yield place / "work"
        finally:
            tempfile.tempdir = before
