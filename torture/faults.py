"""Faults at the file operations of this process: a function is called before each of them, and may end or fail it.

Operations that change the disk are counted: opening a file for writing, both halves of every write, flushing to the
disk, renaming, removing, making folders, changing permissions. Python reports most of them to audit hooks; writes and
flushes have no event, so `open` and `os.fsync` are replaced. Nothing is restored: use this in a process of its own.

Code that is not Python's own is not seen: the copy of a file inside the system (`shutil.copyfile`), and libraries that
open files themselves. So there are also faults of the system, which nothing escapes: `small_disk` and `limit_files`.
"""

import builtins
import ctypes
import datetime
import errno
import io
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
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


def install(before: Before, below: Path | None = None) -> None:
    """Call a function before every operation of this process that changes the disk, from now on.

    With a folder `below`, opening a file in it for reading is an operation, too, named "read".
    """

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in EVENTS or (event == "open" and _writes(*arguments[1:])):
            before(event)
        elif event == "open" and below is not None and str(arguments[0]).startswith(str(below)):
            before("read")

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


TAKES_SPACE = ("open", "write", "write the rest", "fsync", "os.mkdir", "os.rename", "os.chmod")
"""Operations that fail on a full disk; removing and leaving is possible."""

CHANGES = (*TAKES_SPACE, "os.link", "os.remove", "os.rmdir", "os.truncate", "ctypes.call_function")
"""Operations that fail if nothing can be changed."""


def fail_from(number: int, error: int, times: int = sys.maxsize, failing: tuple[str, ...] = TAKES_SPACE) -> Before:
    """Return a function that fails operations with an error of the system, from one on: a full disk stays full."""
    done = 0

    def before(operation: str) -> None:
        nonlocal done
        done += 1
        if operation in failing and number < done <= number + times:
            raise OSError(error, os.strerror(error))

    return before


def unreadable_from(number: int, times: int = sys.maxsize) -> Before:
    """Return a function that fails to open files for reading, from one on, with an error of the device."""
    done = 0

    def before(operation: str) -> None:
        nonlocal done
        done += operation == "read"
        if operation == "read" and number < done <= number + times:
            raise OSError(errno.EIO, os.strerror(errno.EIO), "a file of the folder")

    return before


def slow(seconds: float) -> Before:
    """Return a function that delays every operation."""
    return lambda operation: time.sleep(seconds)


def uneven(seed: int, most: float) -> Before:
    """Return a function that delays every operation by another time, so that two processes meet in other places."""
    dice = Random(seed)
    return lambda operation: time.sleep(most * dice.random() ** 3)


def clock_jumps(number: int, seconds: float) -> Before:
    """Return a function that moves this process's clock before an operation; it replaces the clock of Python."""
    done, moved = 0, 0.0

    def before(operation: str) -> None:
        nonlocal done, moved
        moved = seconds if done >= number else 0.0
        done += 1

    plain_time, plain = time.time, datetime.datetime

    class Kind(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, plain)

    class Moved(plain, metaclass=Kind):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return plain.now(tz) + datetime.timedelta(seconds=moved)

    time.time = lambda: plain_time() + moved
    time.time_ns = lambda: int((plain_time() + moved) * 1e9)
    datetime.datetime = Moved  # type: ignore[misc]
    for module in list(sys.modules.values()):
        if vars(module).get("datetime") is plain:
            module.datetime = Moved  # type: ignore[attr-defined]
    return before


def limit_files(size: int) -> None:
    """Let no file of this process become larger: the system fails the write with EFBIG."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))  # Python ignores the signal


CLONE_NEWNS, MS_REMOUNT, MS_REC, MS_PRIVATE = 0x20000, 32, 16384, 1 << 18


def small_disk(folder: Path, size: int) -> None:
    """Put a disk of this size on a folder, or change its size; only this process and those it starts see it."""
    if not os.path.ismount(folder):
        _system("unshare", CLONE_NEWNS)
        _system("mount", b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)
        _system("mount", b"none", os.fsencode(folder), b"tmpfs", ctypes.c_ulong(0), b"size=%d" % size)
    else:
        _system("mount", b"none", os.fsencode(folder), b"tmpfs", ctypes.c_ulong(MS_REMOUNT), b"size=%d" % size)


def _system(name: str, *arguments: Any) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)


def can_mount() -> bool:
    """Return whether this process may make a small disk: on Linux, as root."""
    if sys.platform != "linux":
        return False
    with scratch() as folder:
        return forked(lambda: small_disk(folder, 1 << 20)) == 0


def reported(work: Callable[[], str]) -> str:
    """Do some work in a copy of this process, and return the text that it returns; raise if it fails."""
    reader, writer = os.pipe()

    def write() -> None:
        os.write(writer, work().encode())

    code = forked(write, 4 * 120)
    os.close(writer)
    with os.fdopen(reader, "rb") as text:
        content = text.read().decode()
    return content if code == 0 else f"the attack itself ended with code {code}"


def forked(work: Callable[[], Any], limit: float = 120.0) -> int:
    """Do some work in a copy of this process; return its exit code, negative if a signal ended it.

    It is quiet. A copy that takes too long is killed, with the code of SIGALRM.
    """
    return ended(started(work, limit))


def ended(process: int) -> int:
    """Wait for a copy of this process and return its exit code, negative if a signal ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def started(work: Callable[[], Any], limit: float = 120.0) -> int:
    """Start some work in a copy of this process, and return its number."""
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
    return process


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
