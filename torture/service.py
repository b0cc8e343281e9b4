"""The service under attack: every answer to an honest client is compared with what the library computes.

Two services run, one of one process and with a token, one of two processes. Honest clients send forecasts,
explanations, receipts and documents to verify, several hundred at a time. Meanwhile, every other interval, hostile
clients attack from another address; a model is replaced on disk and reloaded; a process is killed, and the service
goes on.
"""

import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any

import numpy as np
import pyarrow as pa

from ibforecast import ExplainedForecast, IBForecaster
from ibforecast.core.limits import Limits
from ibforecast.serve.arrow import STREAM
from torture.attacks import ATTACKS
from torture.tables import LOOK_BACK, forecaster, save_recipe, table
from torture.wire import Address, Lost, Reply, clients_of, connected, request

TOKEN = "a token of the torture"
CLIENTS, ATTACKERS, ADDRESSES = 256, 24, 16
"""How many honest and hostile clients there are, and how many addresses the honest ones have."""

TABLES = 12
"""How many tables of each model are sent."""

INTERVAL = 5.0
"""Seconds of calm and of attack, in turn."""

PATIENCE = 180.0
"""Seconds after which an answer counts as lost."""

IDLE = 4.0
"""Seconds without a request after which the service may close a connection."""

GROWTH = 64 * 2**20
"""Bytes that the memory of a service may grow by between the second quarter of the time and the last one."""

REQUESTS = 200
"""Most requests over one connection: a process that was started again gets only new ones."""

ENDED = "a process of the service ended (signal 9, Killed), and is started again"
PROBE = """
import http.client, sys, time
while True:
    begun, status, port = time.perf_counter(), 0, 0
    try:
        connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), 600, (sys.argv[2], 0))
        connection.connect()
        port = connection.sock.getsockname()[1]
        connection.request("GET", "/health")
        reply = connection.getresponse()
        status = reply.status * bool(reply.read())
        connection.close()
    except OSError:
        pass
    print(status, time.perf_counter() - begun, port, flush=True)
    time.sleep(0.25)
"""
"""Asks for /health in a process of its own, in which nothing else delays it."""

PROBED_FROM, WATCHED_FROM = "127.0.0.3", "127.0.0.4"
"""The addresses of the probe, and of what waits for a process to be back."""

PROGRAM = "from ibforecast.cli.main import run; import sys; run(sys.argv[1:])"
Version = int
"""Which of the two contents of a replaced model: 0 or 1."""


def service(minutes: float, seed: int, clients: int = CLIENTS) -> dict[str, Any]:
    """Serve several models, attack, replace, kill, and compare every answer."""
    with TemporaryDirectory() as place:
        attack = _Torture(Path(place), random.Random(seed), clients, 60 * minutes)
        try:
            asyncio.run(attack.run())
        finally:
            for each in attack.services:
                each.kill()
        return attack.figures()


@dataclass(frozen=True)
class Question:
    """A request, the model it is about, and what checks its answer: empty if the answer of a version is right."""

    kind: str
    model: str
    sent: Callable[[str | None], bytes]
    flaw: Callable[[bytes, Version], str]


@dataclass
class _Served:
    """One `ibforecast serve`."""

    words: list[str]
    token: str | None
    port: int = 0
    process: "subprocess.Popen[str] | None" = None
    memory: list[tuple[float, int]] = field(default_factory=list)
    health: list[tuple[int, float, Address]] = field(default_factory=list)
    _probe: "subprocess.Popen[str] | None" = None
    _words: IO[str] | None = None

    def start(self) -> None:
        """Start the process, and wait until it answers."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1"} | ({"IBFORECAST_TOKEN": self.token} if self.token else {})
        words = [sys.executable, "-c", PROGRAM, "serve", *self.words, "--port", "0"]
        # A file, because a service whose words nobody reads would wait once a pipe is full.
        self._words = TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(words, env=environment, stderr=self._words, text=True)
        while not (found := re.search(r"^serving .*:(\d+)$", self.words_so_far(), re.MULTILINE)):
            if self.process.poll() is not None:
                raise RuntimeError(f"a service did not start: {self.words_so_far()}")
            time.sleep(0.05)
        self.port = int(found[1])
        words = [sys.executable, "-c", PROBE, str(self.port), PROBED_FROM]
        self._probe = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def words_so_far(self) -> str:
        """Return what the process wrote to stderr."""
        assert self._words is not None
        size = os.fstat(self._words.fileno()).st_size
        return os.pread(self._words.fileno(), size, 0).decode(errors="replace")

    def stop_probe(self) -> None:
        """Stop asking for /health, and keep what was measured; 0 is a request without an answer."""
        if self._probe is not None:
            self._probe.terminate()
            lines, _ = self._probe.communicate()
            answers = [line.split() for line in lines.splitlines() if line.count(" ") == 2]
            self.health += [(int(each), float(taken), (PROBED_FROM, int(port))) for each, taken, port in answers]
            self._probe = None

    def kill(self) -> None:
        """End the process, whatever it does."""
        self.stop_probe()
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
        if self.process is not None:
            self.process.wait()
        if self._words is not None:
            self._words.close()

    @property
    def workers(self) -> list[int]:
        """Its processes that answer requests."""
        assert self.process is not None
        own = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        spawned = [int(each) for each in own if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes()]
        return spawned or [self.process.pid]


def resident(pid: int) -> int:
    """Return the memory of a process in bytes; 0 if it ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def is_stopped(pid: int) -> bool:
    """Return whether a process does nothing because of a signal."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


class _Torture:
    """One run: its models, its services, its clients, and what they saw."""

    def __init__(self, place: Path, dice: random.Random, clients: int, seconds: float) -> None:
        self._dice, self._clients, self._seconds = dice, clients, seconds
        self._library = Library(place, TABLES if seconds >= 60 else 2)
        one = [f"{name}={path}" for name, path in self._library.paths.items()]
        two = [each for each in one if not each.startswith("replaced=")]
        self._single, self._double = _Served(one, TOKEN), _Served([*two, "--workers", "2"], None)
        self.services = (self._single, self._double)
        self._versions, self._floor = [0], 0
        self._over, self._attacking = asyncio.Event(), False
        self._broken = list[str]()
        self._answers, self._attacks, self._refused = Counter[str](), Counter[str](), Counter[int]()
        self._seconds_taken: dict[bool, list[float]] = {False: [], True: []}
        self._rates: dict[bool, list[float]] = {False: [], True: []}
        self._reloads = self._kills = self._lost_to_kills = self._idle = 0
        self._cut = dict[Address, float]()  # clients of killed processes, and when they lost their connection
        self._back = list[float]()
        self._right: set[tuple[int, Version, bytes]] = set()

    async def run(self) -> None:
        """Start everything, and stop when the time is over."""
        _ = self._library.questions  # computed before a service waits for its clients
        for each in self.services:
            await asyncio.to_thread(each.start)
        self._begun = time.monotonic()
        places = self._dice.choices(self.services, k=self._clients)
        tasks = [asyncio.create_task(self._honest(number, one)) for number, one in enumerate(places)]
        hostile = [asyncio.create_task(self._hostile(random.Random(number))) for number in range(ATTACKERS)]
        tasks += [asyncio.create_task(each()) for each in (self._take_turns, self._replace, self._watch, self._kill)]
        try:
            failed, _ = await asyncio.wait(tasks, timeout=self._seconds, return_when=asyncio.FIRST_EXCEPTION)
            while not (self._answers or failed) and time.monotonic() - self._begun < self._seconds + PATIENCE:
                failed, _ = await asyncio.wait(tasks, timeout=0.1, return_when=asyncio.FIRST_EXCEPTION)
            self._over.set()
            self._attacking = False
            for each in self.services:
                each.stop_probe()
            done, late = await asyncio.wait(tasks, timeout=2 * PATIENCE)
            for task in done:
                task.result()
            if late:
                self._note(f"{len(late)} clients never finished")
        finally:
            for task in (*tasks, *hostile):
                task.cancel()
            await asyncio.gather(*tasks, *hostile, return_exceptions=True)
        for each in self.services:
            await self._stop(each)

    # --- honest clients ---

    async def _honest(self, number: int, served: _Served) -> None:
        """Send one request after the other over a connection that is kept, and compare every answer."""
        dice, host = random.Random(number), f"127.0.1.{1 + number % ADDRESSES}"
        questions = [each for each in self._library.questions if served is self._single or each.model != "replaced"]
        while not self._over.is_set():
            # Idle since the last request, not its answer: a busy loop may notice that late.
            begun, idle, own = time.monotonic(), 0.0, ("", 0)
            sent = begun
            try:
                async with connected(served.port, host) as connection:
                    own = connection.own
                    for _ in range(REQUESTS):
                        if self._over.is_set():
                            return
                        idle, sent = time.monotonic() - sent, time.monotonic()
                        await self._one(dice.choice(questions), served, connection)
            except (OSError, Lost) as error:
                if begun < self._cut.get(own, 0.0):
                    self._lost_to_kills += 1
                elif idle > IDLE:
                    self._idle += 1
                else:
                    self._note(f"an answer was lost: {type(error).__name__}: {error}")
                await asyncio.sleep(0.2)

    async def _one(self, question: Question, served: _Served, connection: Any) -> None:
        floor, begun, attacked = self._floor, time.perf_counter(), self._attacking
        reply: Reply = await asyncio.wait_for(connection(question.sent(served.token)), PATIENCE)
        if reply.status in (429, 503):
            self._refused[reply.status] += 1
            if not reply.headers.get("retry-after", "").isdecimal():
                self._note(f"{reply.status} without Retry-After")
            await asyncio.sleep(self._dice.uniform(0.5, 1.5) * float(reply.headers.get("retry-after", 1)))
            return
        self._seconds_taken[attacked].append(time.perf_counter() - begun)
        if reply.status != 200:
            self._note(f"{question.kind} of {question.model}: {reply.status} {reply.body[:200]!r}")
            return
        self._answers[question.kind] += 1
        allowed = dict.fromkeys(self._versions[floor:] if question.model == "replaced" else [0])
        flaws = [self._flaw(question, reply.body, version) for version in allowed]
        if all(flaws):
            self._note(f"{question.kind} of {question.model}: {flaws[0]}")

    def _flaw(self, question: Question, body: bytes, version: Version) -> str:
        """Return what is wrong with an answer; one with the bytes of an answer that was right is right."""
        key = (id(question), version, body)
        if key in self._right:
            return ""
        try:
            flaw = question.flaw(body, version)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        if not flaw:
            self._right.add(key)
        return flaw

    def _note(self, problem: str) -> None:
        if len(self._broken) < 50:
            self._broken.append(f"after {time.monotonic() - self._begun:.0f} s: {problem}")

    # --- what happens to the services meanwhile ---

    async def _take_turns(self) -> None:
        """Let hostile clients attack in every other interval; measure the answers per second in each."""
        length = min(INTERVAL, self._seconds / 4)
        while not self._over.is_set():
            before, begun = self._answers.total(), time.monotonic()
            await asyncio.sleep(length)
            rate = (self._answers.total() - before) / (time.monotonic() - begun)
            self._rates[self._attacking].append(rate)
            self._attacking = not (self._attacking or self._over.is_set())

    async def _hostile(self, dice: random.Random) -> None:
        # Not for ever until cancelled: a timeout that expires at that moment would hide the cancellation.
        while not self._over.is_set():
            if not self._attacking:
                await asyncio.sleep(0.05)
                continue
            served = dice.choice(self.services)
            name = dice.choice(list(ATTACKS))
            with suppress(OSError, Lost, TimeoutError):
                problem = await ATTACKS[name](served.port, served.token, dice, lambda: self._attacking)
                self._attacks[name] += 1
                if problem:
                    self._note(f"attack {name}: {problem}")
            await asyncio.sleep(0.01)

    async def _watch(self) -> None:
        """Measure the memory of the service of one process."""
        served = self._single
        while not self._over.is_set():
            served.memory.append((time.monotonic() - self._begun, sum(map(resident, served.workers))))
            await self._pause(0.5)

    async def _pause(self, seconds: float) -> None:
        """Wait, but not longer than the attack."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), seconds)

    async def _replace(self) -> None:
        """Replace a model on disk and read it again, in turn."""
        pause = min(7.0, self._seconds / 6)
        while not self._over.is_set():
            await self._pause(pause)
            if self._over.is_set():
                return
            new = 1 - self._versions[-1]
            await asyncio.to_thread(self._library.put, new)
            self._versions.append(new)
            try:
                async with connected(self._single.port, PROBED_FROM) as connection:
                    body = b'{"models": ["replaced"]}'
                    sent = request("POST", "/models/reload", body, token=TOKEN)
                    reply = await asyncio.wait_for(connection(sent), PATIENCE)
            except (OSError, Lost) as error:
                self._note(f"a reload was lost: {error}")
                continue
            if reply.status in (429, 503):  # still the old model: the next turn puts it back
                self._versions.append(1 - new)
                await asyncio.to_thread(self._library.put, 1 - new)
                continue
            if reply.status != 200 or json.loads(reply.body)["changed"] != ["replaced"]:
                self._note(f"a reload: {reply.status} {reply.body[:200]!r}")
            # A request that is sent from now on gets the new model.
            self._floor, self._reloads = len(self._versions) - 1, self._reloads + 1

    async def _kill(self) -> None:
        """Kill a process of a service of two; the other one goes on, and the service starts it again."""
        pause, served = min(60.0, self._seconds / 3), self._double
        assert served.process is not None
        while not self._over.is_set():
            await self._pause(pause)
            if self._over.is_set() or self._seconds - (time.monotonic() - self._begun) < pause / 2:
                return
            before = served.workers
            one = self._dice.choice(before)
            os.kill(one, signal.SIGSTOP)
            while not is_stopped(one):  # only then it accepts no connection any more
                await asyncio.sleep(0.01)
            self._cut |= dict.fromkeys(clients_of(one, served.port), time.monotonic())
            os.kill(one, signal.SIGKILL)
            self._kills += 1
            begun = time.monotonic()
            while not (back := await self._answers_again(served, before)):
                if served.process.poll() is not None or time.monotonic() - begun > PATIENCE:
                    break
                await asyncio.sleep(0.05)
            self._back.append(time.monotonic() - begun)
            left = set(served.workers) & set(before) if served.process.poll() is None else set()
            said = served.words_so_far().count(ENDED)
            if not back or left != set(before) - {one} or said != self._kills:
                kept = f"{len(left)} of {len(before) - 1} others left, {served.words_so_far()[-300:]!r}"
                self._note(f"{self._back[-1]:.0f} s after a kill: {'' if back else 'not '}back, {kept}")
            if served.process.poll() is not None:
                return

    async def _answers_again(self, served: _Served, before: list[int]) -> bool:
        """Return whether a request was answered by a process that was not there before."""
        try:
            async with connected(served.port, WATCHED_FROM) as connection:
                reply = await asyncio.wait_for(connection(request("GET", "/health")), PATIENCE)
                new = set(served.workers) - set(before)
                return reply.status == 200 and any(connection.own in clients_of(each, served.port) for each in new)
        except (OSError, Lost):
            return False

    async def _stop(self, served: _Served) -> None:
        """Stop a service, which ends without an error."""
        assert served.process is not None
        served.process.send_signal(signal.SIGTERM)
        try:
            await asyncio.to_thread(served.process.wait, PATIENCE)
        except subprocess.TimeoutExpired:
            self._note("a service did not stop")
            return
        words = served.words_so_far()
        unexpected = [line for line in words.splitlines() if "Traceback" in line or "Error" in line]
        if served.process.returncode or unexpected:
            self._note(f"a stop: exit {served.process.returncode}, {words[-300:]!r}")

    # --- what was seen ---

    def figures(self) -> dict[str, Any]:
        """Return the figures of the run and the promises that were broken."""
        taken = {name: self._seconds_taken[attacked] for name, attacked in (("calm", False), ("attacked", True))}
        every = [each for one in taken.values() for each in one]
        calm, attacked = (median(self._rates[each] or [0.0]) for each in (False, True))
        grown = _growth(self._single.memory, self._seconds)
        if grown > GROWTH:
            self._note(f"the memory grew by {grown / 2**20:.0f} MiB")
        if not every:
            self._note("no request was answered")
        answers = [(status, each) for one in self.services for status, each, own in one.health if own not in self._cut]
        statuses = Counter(status for status, _ in answers)
        if wrong := {status: count for status, count in statuses.items() if status != 200}:
            self._note(f"answers of /health: {wrong}")
        health = [seconds for status, seconds in answers if status == 200]
        return {
            "clients": self._clients,
            "attackers": ATTACKERS,
            "answers": self._answers.total(),
            "answers_by_kind": dict(sorted(self._answers.items())),
            "refused": {str(status): count for status, count in sorted(self._refused.items())},
            "attacks": self._attacks.total(),
            "attacks_by_kind": dict(sorted(self._attacks.items())),
            "reloads": self._reloads,
            "kills": self._kills,
            "lost_to_kills": self._lost_to_kills,
            "back_largest_s": round(max(self._back, default=0.0), 1),
            "closed_while_idle": self._idle,
            "p50_ms": _percentile(every, 50),
            "p99_ms": _percentile(every, 99),
            "p99_ms_calm": _percentile(taken["calm"], 99),
            "p99_ms_attacked": _percentile(taken["attacked"], 99),
            "per_second_calm": round(calm, 1),
            "per_second_attacked": round(attacked, 1),
            "calm_over_attacked": round(calm / attacked, 2) if attacked else None,
            "health": len(health),
            "health_largest_ms": round(1e3 * max(health, default=0.0), 1),
            "health_above_1_s": sum(each > 1 for each in health),
            "memory_mib": round(max((size for _, size in self._single.memory), default=0) / 2**20, 1),
            "memory_grown_mib": round(grown / 2**20, 1),
            "broken": self._broken,
        }


def _growth(memory: list[tuple[float, int]], seconds: float) -> int:
    """Return by how much the largest memory of the last quarter exceeds that of the second one; 0 in a short run."""
    second, last = (
        [size for at, size in memory if low * seconds <= at < high * seconds] for low, high in ((0.25, 0.5), (0.75, 1))
    )
    return max(last) - max(second) if second and last and seconds >= 120 else 0


def _percentile(seconds: list[float], percent: float) -> float | None:
    return round(1e3 * float(np.percentile(seconds, percent)), 1) if seconds else None


# --- what the library computes ---


class Library:
    """The models, and requests about them with what the library computes for each."""

    def __init__(self, place: Path, tables: int = TABLES) -> None:
        self._place, self._tables = place, tables
        extends = {"one": "sealed", "chosen": "choosing", "replaced": "additive"}
        self._models: dict[tuple[str, Version], IBForecaster] = {}
        for name, base in extends.items():
            recipe = save_recipe(place / f"{name}.toml", base, epochs=1)
            for version in (0, 1) if name == "replaced" else (0,):
                self._models[name, version] = forecaster(recipe, seed=version).fit(table())
        fitted = self._models["one", 0].fitted
        limits = Limits(np.array([97.0, -np.inf]), np.array([np.inf, 103.0]), np.array([False, True]))
        self._models["limited", 0] = IBForecaster.of(replace(fitted, limits=limits), device="cpu")
        for (name, version), model in self._models.items():
            model.save(place / (f"{name}-{version}" if name == "replaced" else name))
        self._models["replaced", 0].save(place / "replaced")

    @property
    def paths(self) -> dict[str, Path]:
        """The folders of the models."""
        return {name: self._place / name for name in ("one", "chosen", "limited", "replaced")}

    def put(self, version: Version) -> None:
        """Replace the model that is replaced by one of its versions."""
        self._models["replaced", version].save(self._place / "replaced", overwrite=True)

    @cached_property
    def questions(self) -> list[Question]:
        """All requests, those for forecasts several times."""
        return [each for name in ("one", "chosen", "limited", "replaced") for each in self._questions(name)]

    def _questions(self, name: str) -> Iterator[Question]:
        versions = [model for (own, _), model in self._models.items() if own == name]
        for number in range(self._tables):
            rows = _with_gaps(number)
            columns = {each: [_plain(cell) for cell in rows[each].to_pylist()] for each in rows.column_names}
            asked = {"model": name, "table": columns}
            whys = [model.explain(rows) for model in versions]
            for each in whys if number < 4 else []:
                assert each.verify(rows)
            forecasts = [each.forecast for each in whys]
            yield _json(name, "forecast", "/forecast", asked, partial(_of_json, forecasts))
            for _ in range(2):
                yield _arrow(name, "forecast", rows, [], partial(_of_arrow, [[each] for each in whys], False))
            moments = [str(each) for each in rows["time"].to_pylist()[LOOK_BACK - 1 :: 5]]
            many = [[model.explain(rows, at) for at in moments] for model in versions]
            yield _arrow(name, "forecast", rows, moments, partial(_of_arrow, many, False))
            yield _arrow(name, "explain", rows, [], partial(_of_arrow, [[each] for each in whys], True))
            texts = [each.to_json().encode() for each in whys]
            yield _json(name, "document", "/explain?form=document", asked, partial(_same, texts))
            if number < 4:
                sent = {"explanation": texts[0].decode(), "model": "one" if name == "replaced" else name}
                lie = sent | {"explanation": texts[0].decode().replace('"budget": 0.2', '"budget": 0.3', 1)}
                if name != "replaced":
                    yield _json(name, "verify", "/verify", sent, partial(_verdict, True))
                    yield _json(name, "verify a lie", "/verify", lie, partial(_verdict, False))
                yield _json(name, "receipts", "/receipts", asked | {"step": 1}, partial(_receipts, whys))


def _plain(cell: Any) -> Any:
    return cell if cell is None or isinstance(cell, float) else str(cell)


def _with_gaps(seed: int) -> pa.Table:
    """Make a short table in which a few values are missing."""
    rows, draw = table(seed, LOOK_BACK + 16), np.random.default_rng(seed)
    for at in (1, 2):
        values = rows.column(at).to_numpy(zero_copy_only=False).copy() / (seed + 1)
        values[draw.random(len(values)) < 0.03] = np.nan
        rows = rows.set_column(at, rows.column_names[at], pa.array(values, from_pandas=True))
    return rows


def _json(model: str, kind: str, path: str, sent: Any, flaw: Callable[[bytes, Version], str]) -> Question:
    body = json.dumps(sent).encode()
    return Question(kind, model, lambda token: request("POST", path, body, token=token), flaw)


def _arrow(
    model: str, route: str, rows: pa.Table, moments: list[str], flaw: Callable[[bytes, Version], str]
) -> Question:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    body = bytes(sink.getvalue())
    path = f"/{route}?form=arrow&model={model}" + "".join(f"&at={each.replace(' ', '%20')}" for each in moments)
    kind = f"{route} as arrow" + (" of many" if moments else "")
    return Question(kind, model, lambda token: request("POST", path, body, STREAM, token), flaw)


def _of_json(forecasts: list[np.ndarray], body: bytes, version: Version) -> str:
    values = json.loads(body)["forecasts"][0]["values"]
    return "" if np.array(values, dtype=np.float64).tobytes() == forecasts[version].tobytes() else "another forecast"


def _of_arrow(whys: list[list[ExplainedForecast]], explained: bool, body: bytes, version: Version) -> str:
    rows = pa.ipc.open_stream(body).read_all()
    own = whys[version]
    if rows.schema.metadata[b"weights_sha256"].decode() != own[0].weights_sha256 or len(rows) != len(own):
        return "an answer of another model"
    forecasts = rows["forecast"].combine_chunks().values.to_numpy()
    if forecasts.tobytes() != b"".join(each.forecast.tobytes() for each in own):
        return "another forecast"
    if explained:
        evidence = rows["evidence"].combine_chunks().values.to_numpy()
        if evidence.tobytes() != b"".join(each.evidence.tobytes() for each in own):
            return "other evidence"
    return "" if [str(at) for at in rows["at"].to_pylist()] == [each.at for each in own] else "another moment"


def _same(texts: list[bytes], body: bytes, version: Version) -> str:
    ExplainedForecast.from_json(body)  # its fingerprint is that of its content
    return "" if body == texts[version] else "another document"


def _verdict(expected: bool, body: bytes, version: Version) -> str:
    verified = json.loads(body)["verified"]
    return "" if verified is expected else f"verified is {verified}"


def _receipts(whys: list[ExplainedForecast], body: bytes, version: Version) -> str:
    answer = json.loads(body, parse_float=Decimal)
    own = whys[version]
    if answer["sha256"] != own.sha256:
        return "a receipt of another explanation"
    for each in answer["receipts"]:
        column = own.channels.index(each["channel"])
        if float(each["forecast"]) != float(own.itemised(each["channel"], 1).forecast) or not np.isclose(
            float(each["forecast"]), own.forecast[0, column], rtol=1e-6
        ):
            return "a receipt of another forecast"
        if sum((Decimal(part["amount"]) for part in each["parts"]), Decimal(0)) != Decimal(each["forecast"]):
            return "the parts of a receipt do not add up"
    return ""
