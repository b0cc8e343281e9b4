"""Fail the disk, move the clock, or let two processes work in one place, under every kind of work that writes files.

The work is that of `torture.kills`. Each fault must end in one of two ways: the work is done, with the same results as
without the fault, or the process ends with an error of the command line: a message, and an exit code that the
documentation lists. It must never be an unexpected error. Everything under its final name is whole in either case, and
the same command afterwards gives the same bits as an undisturbed run and leaves no temporary file.

Most faults are made at the operations that Python reports. Two are made by the system, so that they also meet what
Python does not see: a disk that is really small, which needs Linux and root and is left out otherwise, and a limit on
the size of files.
"""

import errno
import os
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ibforecast.cli.main import EXIT_CODES, SOME_FAILED, _guarded
from torture.faults import (
    CHANGES,
    TAKES_SPACE,
    can_mount,
    clock_jumps,
    ended,
    fail_from,
    install,
    limit_files,
    reported,
    scratch,
    slow,
    small_disk,
    started,
    uneven,
    unreadable_from,
)
from torture.kills import LIMIT, SCENARIOS, Act, Ready, difference, names_below, prepared

DOCUMENTED = {0, 1, SOME_FAILED, *EXIT_CODES.values()}
"""The exit codes of the command line."""

YEAR = 365.25 * 86400
JUMPS = (-1.0, -3600.0, -20 * YEAR, 3600.0, 30 * YEAR)
"""Seconds by which the clock is moved."""

ROOM = 64 << 20
"""The size of the small disk in bytes, before it is full and after there is room again."""


@dataclass(frozen=True)
class Fault:
    """A fault that was drawn, in words, and what begins it in the process that works in a folder.

    Work ends as usual in spite of a `harmless` one. `free` is the space in bytes that a small disk has left. With the
    seed of `two`, two processes work at once, and both are delayed.
    """

    words: str
    start: Callable[[Path], None] = lambda folder: None
    harmless: bool = False
    free: int | None = None
    two: int | None = None


Draw = Callable[[Ready, random.Random], Fault]


def _failing(error: int, times: int = sys.maxsize, failing: tuple[str, ...] = TAKES_SPACE) -> Draw:
    def draw(ready: Ready, dice: random.Random) -> Fault:
        number = dice.randrange(ready.operations)
        return Fault(f"operation {number}", lambda folder: install(fail_from(number, error, times, failing)))

    return draw


def _unreadable(times: int) -> Draw:
    def draw(ready: Ready, dice: random.Random) -> Fault:
        number = dice.randrange(24)
        return Fault(f"file {number}", lambda folder: install(unreadable_from(number, times), folder))

    return draw


def _too_large(ready: Ready, dice: random.Random) -> Fault:
    size = int(2 ** dice.uniform(0, 17))
    return Fault(f"{size} bytes", lambda folder: limit_files(size))


def _small(ready: Ready, dice: random.Random) -> Fault:
    free = 4096 * dice.randrange(64)
    return Fault(f"{free} bytes", free=free)


def _slow(ready: Ready, dice: random.Random) -> Fault:
    return Fault("5 ms", lambda folder: install(slow(0.005)), harmless=True)


def _clock(ready: Ready, dice: random.Random) -> Fault:
    number, seconds = dice.randrange(ready.operations), dice.choice(JUMPS)
    words = f"{seconds:+g} s before operation {number}"
    return Fault(words, lambda folder: install(clock_jumps(number, seconds)), harmless=True)


def _two(ready: Ready, dice: random.Random) -> Fault:
    seed = dice.getrandbits(32)
    return Fault(f"seed {seed}", two=seed)


FAULTS: dict[str, Draw] = {
    "full": _failing(errno.ENOSPC),
    "full once": _failing(errno.ENOSPC, 1),
    "small disk": _small,
    "too large": _too_large,
    "too large once": _failing(errno.EFBIG, 1),
    "broken": _failing(errno.EIO, failing=CHANGES),
    "broken once": _failing(errno.EIO, 1),
    "read-only": _failing(errno.EROFS, failing=CHANGES),
    "unreadable": _unreadable(sys.maxsize),
    "unreadable once": _unreadable(1),
    "slow": _slow,
    "clock": _clock,
    "two at once": _two,
}
"""The kinds of faults; those of the disk last from an operation on, or are over after it."""


def storage(
    minutes: float, seed: int, names: Iterable[str] = (), kinds: Iterable[str] = (), most: int | None = None
) -> dict[str, Any]:
    """Make every kind of fault in every kind of work, at random places, again and again.

    If there are names of work or kinds of faults, only these, and at most a number of faults in all.
    """
    dice, deadline = random.Random(seed), time.monotonic() + 60 * minutes
    wanted = [kind for kind in kinds or FAULTS if kind != "small disk" or can_mount()]
    points, failed, broken = Counter[str](), Counter[str](), list[str]()
    with TemporaryDirectory() as place:
        ready = [prepared(name, Path(place)) for name in names or SCENARIOS]
        for count, (kind, one) in enumerate(_rounds(wanted, ready, dice)):
            if time.monotonic() > deadline or count == most:
                break
            words, has_failed, problem = _tried(one, FAULTS[kind](one, dice))
            points[kind] += 1
            failed[kind] += has_failed
            if problem:
                broken.append(f"{kind}, {one.name}, {words}: {problem}")
    return {
        "points": points.total(),
        "points_by_fault": {kind: points[kind] for kind in wanted},
        "ended_with_an_error": {kind: failed[kind] for kind in wanted},
        "finished_to_the_same_bits": points.total() - len(broken),
        "broken": broken,
    }


def _rounds(kinds: list[str], ready: list[Ready], dice: random.Random) -> Iterator[tuple[str, Ready]]:
    """Yield every kind of fault with every kind of work, and again in another order; neighbours differ in both."""
    while True:
        order, works = dice.sample(kinds, len(kinds)), dice.sample(ready, len(ready))
        for shift in range(len(works)):
            for number, kind in enumerate(order):
                yield kind, works[(number + shift) % len(works)]


def _tried(ready: Ready, fault: Fault) -> tuple[str, bool, str]:
    """Make a fault; return its words, whether the work ended with an error, and the promise that was broken."""
    with scratch() as folder:

        def attack(heal: Callable[[], None]) -> str:
            try:
                return str(int(_attacked(ready, fault, folder, heal)))
            except BrokenPromiseError as problem:
                return f"1{problem}"

        def on_small_disk() -> str:
            small_disk(folder.parent, ROOM)
            for each in (folder, folder.parent / "temporary"):
                each.mkdir()
            shutil.copytree(ready.template, folder, dirs_exist_ok=True)
            disk = os.statvfs(folder)
            small_disk(folder.parent, (disk.f_blocks - disk.f_bfree) * disk.f_frsize + (fault.free or 0))
            return attack(lambda: small_disk(folder.parent, ROOM))

        if fault.free is not None:
            answer = reported(on_small_disk)
        else:
            shutil.copytree(ready.template, folder, dirs_exist_ok=True)
            answer = attack(lambda: None)
    return fault.words, answer[0] == "1", answer[1:]


class BrokenPromiseError(Exception):
    """A promise that was broken."""


def _attacked(ready: Ready, fault: Fault, folder: Path, heal: Callable[[], None]) -> bool:
    """Work with a fault, look at what is there, and work again without it; return whether there was an error."""
    scenario = ready.scenario
    if fault.two is None:
        works = [_start(scenario.act, folder, fault.start)]
    else:
        delays = [lambda folder, seed=fault.two + n: install(uneven(seed, 0.05)) for n in range(2)]
        works = [_start(scenario.act, folder, delays[0]), _start(scenario.rival or scenario.act, folder, delays[1])]
    codes = [_documented(work) for work in works]
    if fault.harmless and any(codes):
        raise BrokenPromiseError(f"ended with code {codes[0]}")
    heal()
    try:
        scenario.whole(folder)
    except Exception as error:
        raise BrokenPromiseError(f"not whole: {type(error).__name__}: {error}") from error
    for record in folder.glob("*/members/*/member.json"):
        if "unexpected" in record.read_text():
            raise BrokenPromiseError(record.read_text())
    if fault.two is None and not any(codes):
        _compare(scenario.outcome(folder), ready.expected[1])
    if code := _documented(_start(scenario.act, folder, lambda folder: None)):
        raise BrokenPromiseError(f"the same command again ended with code {code}")
    _compare((names_below(folder), scenario.outcome(folder)), ready.expected)
    return any(codes)


def _compare(found: Any, expected: Any) -> None:
    if found != expected:
        pair = isinstance(found, tuple)
        raise BrokenPromiseError(
            f"other results: {difference(found if pair else ([], found), expected if pair else ([], expected))}"
        )


def _start(act: Act, folder: Path, begin: Callable[[Path], None]) -> tuple[int, int]:
    """Start work as the command line does it, with a fault; return its process, and a pipe with its messages."""
    reader, writer = os.pipe()

    def work() -> int:
        os.dup2(writer, 2)
        begin(folder)
        return _guarded(lambda: act(folder), as_json=False)

    process = started(work, LIMIT)
    os.close(writer)
    return process, reader


def _documented(work: tuple[int, int]) -> int:
    """Wait for some work; return its exit code if it is documented, and if an error has a message of the library."""
    process, reader = work
    with os.fdopen(reader, errors="replace") as text:
        words = text.read()
    code = ended(process)
    if code not in DOCUMENTED or "unexpected" in words or "Traceback" in words:
        raise BrokenPromiseError(f"ended with code {code}: {words[-1000:]}")
    if code not in (0, SOME_FAILED) and not ("error: " in words and "hint: " in words):
        raise BrokenPromiseError(f"ended with code {code} and no message: {words[-1000:]}")
    return code
