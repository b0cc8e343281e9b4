"""Kill a process before each of its file operations, run the same command again, and compare with a run that was not.

Every kind of work that writes files is a `Scenario`. A process that is killed runs no handler, so nothing but the order
of its operations protects the files. After a kill, every file under its final name must be whole; after the next run,
everything must be as if nothing had happened: the same weights and numbers, and no temporary file left.
"""

import json
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ibforecast import IBForecaster
from ibforecast.cli.main import SOME_FAILED, main
from ibforecast.core import folders
from ibforecast.fleet import Fleet
from ibforecast.zoo.saved import load
from torture.faults import forked, install, kill_at, scratch
from torture.tables import HORIZON, LOOK_BACK, forecaster, save_recipe, save_table

TIMES = ("seconds", "finished", "windows_per_second", "sha256")
"""Fields that differ between two runs of the same work, and the fingerprint that contains them."""

LIMIT = 120
"""Seconds after which a run counts as hanging."""


Act = Callable[[Path], int | None]
"""Work in a folder, which returns an exit code if it has one."""


@dataclass(frozen=True)
class Scenario:
    """Work in a folder: what is there before, the work itself, and what must be the same in the end.

    `act` is also what continues after a kill. `whole` reads everything that has its final name, and raises if some of
    it is not whole. `rival` writes something else to the same place, where that is possible.
    """

    prepare: Callable[[Path], None]
    act: Act
    outcome: Callable[[Path], Any]
    whole: Callable[[Path], Any]
    rival: Act | None = None


@dataclass(frozen=True)
class Ready:
    """A scenario whose folder is prepared, with the number of its operations and the outcome without a kill."""

    name: str
    scenario: Scenario
    template: Path
    operations: int
    expected: Any


def kills(minutes: float, seed: int, names: Iterable[str] = (), most: int | None = None) -> dict[str, Any]:
    """Kill every scenario before each of its operations, in random order, and then at random pairs of them.

    If there are `names`, only these, each operation once, and at most a number of kills.
    """
    dice, deadline = random.Random(seed), time.monotonic() + 60 * minutes
    killed, broken = Counter[str](), list[str]()
    with TemporaryDirectory() as place:
        ready = [prepared(name, Path(place)) for name in names or SCENARIOS]
        points = [(one, number) for one in ready for number in range(one.operations)]
        once: list[tuple[Ready, int, int | None]] = [
            (one, number, None) for one, number in dice.sample(points, len(points))
        ]
        for one, number, then in once[:most] if names else chain(once, _pairs(ready, dice)):
            if time.monotonic() > deadline:
                break
            problem = _killed(one, number, then)
            killed[one.name if then is None else "twice"] += 1
            if problem:
                broken.append(f"{one.name}, operation {number}, then {then}: {problem}")
    twice = killed.pop("twice", 0)
    return {
        "operations": {one.name: one.operations for one in ready},
        "killed_at": dict(killed),
        "points": sum(killed.values()),
        "killed_twice": twice,
        "resumed_to_the_same_bits": sum(killed.values()) + twice - len(broken),
        "broken": broken,
    }


def _pairs(ready: list[Ready], dice: random.Random) -> Iterator[tuple[Ready, int, int | None]]:
    while True:
        one = dice.choice(ready)
        yield one, dice.randrange(one.operations), dice.randrange(one.operations)


def prepared(name: str, place: Path) -> Ready:
    """Prepare a scenario in a folder, and run it once without a fault."""
    template = place / name
    template.mkdir()
    with scratch():
        SCENARIOS[name].prepare(template)
    return Ready(name, SCENARIOS[name], template, *_undisturbed(SCENARIOS[name], template))


def _undisturbed(scenario: Scenario, template: Path) -> tuple[int, Any]:
    """Run the work once without a fault; return the number of its operations, and the outcome."""
    with scratch() as folder:
        shutil.copytree(template, folder, dirs_exist_ok=True)
        counted = folder.parent / "operations"

        def work() -> None:
            operations: list[str] = []
            install(operations.append)
            scenario.act(folder)
            count = len(operations)
            counted.write_text(str(count))

        code = forked(work, LIMIT)
        assert code == 0, f"the work itself fails with code {code}: set IBFORECAST_DEBUG=1 to see why"
        return int(counted.read_text()), (names_below(folder), scenario.outcome(folder))


def _killed(ready: Ready, number: int, then: int | None) -> str:
    """Kill the work before an operation, continue it, and return what is not as it should be; empty if all is."""
    scenario = ready.scenario
    with scratch() as folder:
        shutil.copytree(ready.template, folder, dirs_exist_ok=True)
        for at in (number,) if then is None else (number, then):
            code = forked(lambda at=at: _until(scenario, folder, at), LIMIT)
            if code not in (0, -signal.SIGKILL):
                return f"ended with code {code}"
            try:
                scenario.whole(folder)
            except Exception as error:
                return f"after a kill: {type(error).__name__}: {error}"
        code = forked(lambda: scenario.act(folder), LIMIT)
        if code:
            return f"the same command again ended with code {code}"
        found = (names_below(folder), scenario.outcome(folder))
        return "" if found == ready.expected else f"other results: {difference(found, ready.expected)}"


def _until(scenario: Scenario, folder: Path, number: int) -> None:
    install(kill_at(number))
    scenario.act(folder)


def names_below(folder: Path) -> list[str]:
    """Return the paths of everything in a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def difference(found: Any, expected: Any) -> str:
    """Say what is other than expected: names of files, or parts of the outcome."""
    (names, outcome), (other, due) = found, expected
    if names != other:
        return f"files {sorted(set(names) ^ set(other))}"
    keys = [key for key in due if outcome.get(key) != due[key]] if isinstance(due, dict) else []
    return str(keys or outcome)[:300]


# --- the kinds of work ---


def timeless(document: Any) -> Any:
    """Return a document without what depends on the clock."""
    if isinstance(document, dict):
        return {key: timeless(value) for key, value in document.items() if key not in TIMES}
    return [timeless(value) for value in document] if isinstance(document, list) else document


def model_outcome(folder: Path) -> dict[str, Any]:
    """Return a saved model: the fingerprint of its weights, of its intervals, and its document."""
    model = load(folder)
    quantiles = None if model.calibration is None else model.calibration.quantiles.numpy().tobytes().hex()
    return {
        "weights": model.weights_sha256,
        "intervals": quantiles,
        "document": timeless(json.loads((folder / "model.json").read_text())),
    }


def _whole_model(folder: Path) -> None:
    """Load a model if there is one, or one that the next start restores."""
    folders.sweep(folder.parent)
    if folder.exists():
        load(folder)


VERBS = [import_module(f"ibforecast.cli.{verb}") for verb in ("fit", "calibrate", "tune", "explain")]
"""Imported now and not when they are used: a long run must not see a file of the library that changes meanwhile."""


def _command(*words: object) -> None:
    main([str(word) for word in words], standalone_mode=False)


def _fit(folder: Path, seed: int = 0) -> None:
    model = folder / "model"
    sizes = ("--horizon", HORIZON, "--look-back", LOOK_BACK, "--device", "cpu", "--seed", seed)
    again = ("--overwrite",) if model.exists() else ()
    _command("fit", folder / "table.csv", *sizes, "--recipe", folder / "recipe.toml", "--out", model, *again)


def _prepare_fit(folder: Path, extends: str = "default") -> None:
    save_table(folder / "table.csv")
    save_recipe(folder / "recipe.toml", extends, further="second_epochs = 2\n" if extends == "choosing" else "")


def fit(extends: str) -> Scenario:
    """`ibforecast fit`, with its checkpoints."""
    return Scenario(
        lambda folder: _prepare_fit(folder, extends),
        _fit,
        lambda folder: model_outcome(folder / "model"),
        lambda folder: _whole_model(folder / "model"),
        lambda folder: _fit(folder, seed=1),
    )


def _prepare_model(folder: Path) -> None:
    _prepare_fit(folder, "sealed")
    forecaster(folder / "recipe.toml").fit(folder / "table.csv").save(folder / "model")


def save(overwrites: bool, can_exchange: bool) -> Scenario:
    """Save a model, as the first one or over another, with the exchange of folders or with renames."""

    def prepare(folder: Path) -> None:
        _prepare_model(folder)
        (folder / "model").rename(folder / "old")
        forecaster(folder / "recipe.toml", seed=1).fit(folder / "table.csv").save(folder / "new")
        if overwrites:
            shutil.copytree(folder / "old", folder / "model")

    def act(folder: Path, name: str = "new") -> None:
        if not can_exchange:
            folders.exchanged = lambda one, other: False  # type: ignore[assignment]
        load(folder / name).save(folder / "model", overwrite=True)

    def whole(folder: Path) -> None:
        folders.sweep(folder)
        if overwrites or (folder / "model").exists():
            weights = (folder / "model" / "weights.safetensors").read_bytes()
            assert weights in [(folder / one / "weights.safetensors").read_bytes() for one in ("old", "new")]
            load(folder / "model")

    return Scenario(
        prepare, act, lambda folder: model_outcome(folder / "model"), whole, lambda folder: act(folder, "old")
    )


def _prepare_calibrate(folder: Path) -> None:
    _prepare_model(folder)
    (folder / "model" / "audit.json").write_text("{}")


def _calibrate(folder: Path) -> None:
    _command("calibrate", folder / "model", folder / "table.csv", "--split", "test", "--device", "cpu")


def _whole_calibrated(folder: Path) -> None:
    folders.sweep(folder)
    load(folder / "model")
    assert (folder / "model" / "audit.json").read_text() == "{}"


def _prepare_fleet(folder: Path) -> None:
    save_recipe(folder / "recipe.toml", "sealed", epochs=1)
    (folder / "tables").mkdir()
    for seed in range(3):
        save_table(folder / "tables" / f"meter{seed}.csv", seed, names=("y",))


def _prepare_fleet_again(folder: Path) -> None:
    _prepare_fleet(folder)
    _fleet(folder)
    for seed in range(2):
        save_table(folder / "tables" / f"meter{seed}.csv", seed + 5, names=("y",))


def _fleet(folder: Path) -> int:
    outcomes = Fleet(folder / "fleet").fit(folder / "tables", forecaster(folder / "recipe.toml"))
    return SOME_FAILED if any(outcome.state == "failed" for outcome in outcomes) else 0


def _fleet_outcome(folder: Path) -> dict[str, Any]:
    members = sorted((folder / "fleet" / "members").iterdir())
    names = [line.split(",")[0] for line in (folder / "fleet" / "fleet.csv").read_text().splitlines()]
    return {member.name: model_outcome(member) for member in members} | {"report": names}


def _whole_fleet(folder: Path) -> None:
    fleet = folder / "fleet"
    if (fleet / "fleet.json").exists():
        json.loads((fleet / "fleet.json").read_text())
        folders.sweep(fleet / "members")
    for member in (fleet / "members").glob("[!.]*"):
        if json.loads((member / "member.json").read_text())["state"] == "fitted":
            load(member)


def _tune(folder: Path) -> None:
    sizes = ("--horizon", HORIZON, "--look-back", LOOK_BACK, "--device", "cpu", "--trials", 3)
    files = ("--storage", folder / "search.log", "--best", folder / "tuned.toml")
    again = ("--overwrite",) if (folder / "tuned.toml").exists() else ()
    _command("tune", folder / "table.csv", *sizes, "--recipe", folder / "recipe.toml", *files, *again)


def _whole_tuning(folder: Path) -> None:
    best = folder / "tuned.toml"
    if best.exists():
        IBForecaster(HORIZON, LOOK_BACK, recipe=str(best))


def _ledger(folder: Path) -> None:
    """Write records, pack them, write newer and further ones, and pack again."""
    from ibforecast_lab.experiments.ledger import Ledger

    ledger = Ledger(folder / "results" / "ledger.jsonl.zst")
    for round_ in range(3):
        for seed in range(4):
            record = _record(seed + 2 * round_, f"2026-01-0{round_ + 1}T00:00:00+00:00")
            kept = ledger.read(record.cell)
            if kept is None or kept.finished < record.finished:
                ledger.write(record)
        ledger.pack()


def _record(seed: int, finished: str) -> Any:
    from ibforecast_lab.experiments.ledger import Cell, Record, Scores

    scores = Scores(1, 0.25 + seed, 0.5, 0.1, 0.1)
    return Record(
        cell=Cell("ETTh1", 96, "exact", seed),
        forecaster="ibforecast",
        validation=scores,
        test=scores,
        verified_windows=1,
        broken_windows=0,
        parameters=1,
        epochs=1,
        best_epoch=1,
        seconds=1.0,
        windows_per_second=1.0,
        recipe={},
        recipe_sha256="a" * 64,
        data_sha256="b" * 64,
        results_version=1,
        commit="c" * 40,
        device="CPU",
        versions={},
        finished=finished,
    )


def _ledger_outcome(folder: Path) -> Any:
    from ibforecast_lab.experiments.ledger import Ledger

    return [asdict(record) for record in Ledger(folder / "results" / "ledger.jsonl.zst").records()]


def _explain(folder: Path) -> None:
    _command("explain", folder / "model", folder / "table.csv", "--out", folder / "why.json")


def _explanation(folder: Path) -> str:
    return (folder / "why.json").read_text()


def _whole_explanation(folder: Path) -> None:
    if (folder / "why.json").exists():
        assert IBForecaster.load(folder / "model", device="cpu").verify(_explanation(folder))


SCENARIOS: dict[str, Scenario] = {
    "fit": fit("default"),
    "fit choosing": fit("choosing"),
    "save": save(overwrites=False, can_exchange=True),
    "overwrite": save(overwrites=True, can_exchange=True),
    "overwrite by renames": save(overwrites=True, can_exchange=False),
    "calibrate": Scenario(
        _prepare_calibrate, _calibrate, lambda folder: model_outcome(folder / "model"), _whole_calibrated
    ),
    "fleet": Scenario(_prepare_fleet, _fleet, _fleet_outcome, _whole_fleet),
    "fleet again": Scenario(_prepare_fleet_again, _fleet, _fleet_outcome, _whole_fleet),
    "tune": Scenario(
        _prepare_fit, _tune, lambda folder: {"recipe": (folder / "tuned.toml").read_text()}, _whole_tuning
    ),
    "ledger": Scenario(lambda folder: None, _ledger, _ledger_outcome, _ledger_outcome),
    "explain": Scenario(_prepare_model, _explain, _explanation, _whole_explanation),
}
