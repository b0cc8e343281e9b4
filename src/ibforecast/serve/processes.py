"""Processes that answer on one port: one that ends is started again, and the others go on meanwhile."""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from ibforecast.core.errors import UsageError
from ibforecast.serve.refusals import log

GRACE = 30
"""Seconds that requests under way have to finish once the service is stopped."""

MOST_ENDS, QUIET = 5, 30.0
"""How many processes may end before all have run together for this many seconds; then the count begins again."""

Identities = dict[str, str]
"""The fingerprint of each model and table that a process answers from, by what it is called in messages."""


@dataclass(frozen=True)
class _Member:
    """A process, and the end of a pipe on which it says what it answers from once it is ready."""

    process: SpawnProcess
    word: Connection

    @property
    def end(self) -> str:
        """How the process ended; empty if it runs."""
        code = self.process.exitcode
        if code is None:
            return ""
        return f"exit code {code}" if code >= 0 else f"signal {-code}, {signal.strsignal(-code)}"

    def heard(self) -> Identities | None:
        """Return what the process answers from; None if it has not said so, or ended before it could."""
        try:
            identities: Identities | None = self.word.recv() if self.word.poll() else None
        except (EOFError, OSError):
            return None
        return identities


class Crew:
    """Several processes that do the same, `target(*arguments, word)`, each with one end of a pipe of its own."""

    def __init__(self, target: Callable[..., None], arguments: tuple[Any, ...], size: int) -> None:
        self._target, self._arguments, self._size = target, arguments, size
        self._context = get_context("spawn")  # a fork would copy the threads of PyTorch in an unknown state
        self._starting, self._ready = list[_Member](), list[_Member]()
        self._identities: Identities | None = None
        self._ends, self._whole_since = 0, 0.0

    def run(self, on_ready: Callable[[], None], is_stopped: Callable[[], bool]) -> None:
        """Start the processes, call `on_ready` once all are ready, and keep them running until stopped."""
        announced = False
        while not is_stopped():
            while len(self._starting) + len(self._ready) < self._size:
                self._start()
            words = [each.word for each in self._starting]
            wait([*words, *(each.process.sentinel for each in self._members)], 0.2)
            self._hear()
            for member in [each for each in self._members if each.end]:
                # Again: a signal that stops all processes may reach this one last.
                if not is_stopped():
                    self._bury(member, announced)
            if len(self._ready) == self._size and not announced:
                announced = True
                on_ready()

    @property
    def _members(self) -> list[_Member]:
        return [*self._starting, *self._ready]

    def _start(self) -> None:
        own, given = self._context.Pipe(duplex=False)
        process = self._context.Process(target=self._target, args=(*self._arguments, given))
        process.start()
        given.close()
        self._starting.append(_Member(process, own))

    def _hear(self) -> None:
        """Enter the processes that became ready; refuse one that answers from something else than the others."""
        for member in list(self._starting):
            if (identities := member.heard()) is None:
                continue
            known = self._identities = self._identities or identities
            if other := [name for name, one in identities.items() if known.get(name) != one]:
                raise UsageError(
                    "the processes of a service must read the same models and tables",
                    f"another {other[0]} by the one that was started last",
                    "start the service again",
                )
            self._starting.remove(member)
            self._ready.append(member)
            self._whole_since = time.monotonic()

    def _bury(self, member: _Member, announced: bool) -> None:
        """Forget a process that ended; refuse to go on if it never was ready at first, or if too many end."""
        if not announced:
            raise UsageError("every process of a service must start", member.end, "see what it printed")
        if len(self._ready) == self._size and time.monotonic() - self._whole_since >= QUIET:
            self._ends = 0
        self._ends += 1
        if self._ends > MOST_ENDS:
            raise UsageError(
                f"at most {MOST_ENDS} processes of a service may end before all have run for {QUIET:g} s",
                f"one more, {member.end}",
                "see what they printed",
            )
        log.warning("a process of the service ended (%s), and is started again", member.end)
        own = self._ready if member in self._ready else self._starting
        own.remove(member)
        member.word.close()

    def stop(self) -> None:
        """End all processes: they have some time for the requests under way."""
        for each in self._members:
            each.process.terminate()
        for each in self._members:
            each.process.join(GRACE + 5)
            each.process.kill()
            each.process.join()
