"""Run a cell: data in, trained forecaster, record out."""

import os
import platform
import subprocess
import time
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from ibforecast._version import __version__
from ibforecast.core.contracts import Accountable, Forecaster
from ibforecast.core.errors import DataError
from ibforecast.core.sizes import Sizes
from ibforecast.data import catalogue
from ibforecast.data.series import Series
from ibforecast.data.splits import Split
from ibforecast.data.standin import STAND_INS, SUFFIX, stand_in
from ibforecast.data.windows import Standardiser, Windows
from ibforecast.evaluate.accuracy import accuracy
from ibforecast.evaluate.verification import verify_windows
from ibforecast.experiments.ledger import Cell, Ledger, Record, Scores
from ibforecast.train.loop import train
from ibforecast.zoo.recipes import Recipe, resolve

RESULTS_VERSION = 1
"""Raised whenever a change of the code may change a result; older records are then run again."""

VERIFIED_WINDOWS = 1000


def facts_of(name: str) -> catalogue.DataSet:
    """The facts of a data set, or of the stand-in for one."""
    return STAND_INS[name] if name in STAND_INS else catalogue.CATALOGUE[name]


@cache
def series_of(name: str) -> Series:
    """The numbers of a data set, or of the stand-in for one."""
    return stand_in(name) if name in STAND_INS else catalogue.load(name)


def recipe_of(cell: Cell) -> Recipe:
    """The recipe a cell stands for, with its data set's sizes filled in."""
    facts = facts_of(cell.data)
    sizes = Sizes(cell.look_back, cell.horizon, facts.channels, facts.cycle)
    return resolve(cell.recipe, sizes, cell.data.removesuffix(SUFFIX), budget=cell.budget)


def run(cell: Cell, device: torch.device) -> Record:
    """Train and measure one cell; the test windows are looked at once, after selection."""
    recipe, facts, series = recipe_of(cell), facts_of(cell.data), series_of(cell.data)
    forecaster = recipe.build(cell.seed)
    split = Split.by_rule(facts.split, series.rows)
    standardiser = Standardiser.of(series.values[: split.train_end], series.channels)
    starts = split.starts("train", cell.look_back, cell.horizon)
    training = Windows.of(
        series, standardiser, facts.cycle, starts, cell.look_back, cell.horizon, with_calendar=forecaster.reads_calendar
    ).to(device)
    validation = training.at(split.starts("validation", cell.look_back, cell.horizon))
    test = training.at(split.starts("test", cell.look_back, cell.horizon))

    begun = time.perf_counter()
    training_run = train(forecaster, training, validation, recipe.train, cell.seed)
    seconds = time.perf_counter() - begun

    scores = {part: _scores(forecaster, windows) for part, windows in (("validation", validation), ("test", test))}
    cpu = torch.device("cpu")
    checked, failed = (0, 0)
    if isinstance(forecaster, Accountable):
        checked, failed = verify_windows(forecaster.to(cpu), test.to(cpu), VERIFIED_WINDOWS)
    epochs = len(training_run.history)
    return Record(
        cell=cell,
        forecaster=recipe.forecaster,
        **scores,
        verified_windows=checked,
        broken_windows=failed,
        parameters=sum(p.numel() for p in forecaster.parameters() if p.requires_grad),
        epochs=epochs,
        best_epoch=training_run.best_epoch,
        seconds=round(seconds, 3),
        windows_per_second=round(len(training) * epochs / seconds, 1),
        recipe={"config": asdict(recipe.config), "train": asdict(recipe.train)},
        recipe_sha256=recipe.sha256,
        data_sha256=series.sha256,
        results_version=RESULTS_VERSION,
        commit=commit(),
        device=device_name(device),
        versions=versions(),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def missing_from(ledger: Ledger, cells: Iterable[Cell]) -> list[Cell]:
    """The cells that have no record, an outdated one or a damaged one."""
    return [cell for cell in cells if not is_current(_readable(ledger, cell), cell)]


def _readable(ledger: Ledger, cell: Cell) -> Record | None:
    try:
        return ledger.read(cell)
    except DataError:
        return None


def is_current(record: Record | None, cell: Cell) -> bool:
    """Tell whether a record still answers for its cell: same recipe, same data, same version of the results."""
    return (
        record is not None
        and record.recipe_sha256 == recipe_of(cell).sha256
        and record.data_sha256 == series_of(cell.data).sha256
        and record.results_version == RESULTS_VERSION
    )


def commit() -> str:
    """The commit the code stands at: from git, or from IBFORECAST_COMMIT where there is no repository."""
    given = os.environ.get("IBFORECAST_COMMIT")
    if given:
        return given
    folder = Path(__file__).parent
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=False)
    return asked.stdout.strip() or "unknown"


def device_name(device: torch.device) -> str:
    """The device in words."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"


def versions() -> dict[str, str]:
    """Versions of what a result may depend on."""
    found = {"python": platform.python_version(), "ibforecast": __version__}
    for library in ("torch", "numpy"):
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            found[library] = "unknown"
    return found


def _scores(forecaster: Forecaster, windows: Windows) -> Scores:
    measured = accuracy(forecaster, windows)
    return Scores(
        windows=len(windows),
        mse=measured.mse,
        mae=measured.mae,
        open_rate=float(measured.open_rate.mean()),
        largest_open_rate=float(measured.open_rate.max()),
    )
