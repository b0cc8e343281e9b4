"""Run a cell: train a forecaster, measure it, and return the record."""

import os
import platform
import subprocess
import time
from collections.abc import Iterable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from ibforecast._version import __version__
from ibforecast.core.contracts import Accountable, Forecaster
from ibforecast.core.errors import DataError
from ibforecast.core.files import sha256
from ibforecast.data.windows import Windows
from ibforecast.evaluate.accuracy import Accuracy, accuracy
from ibforecast.evaluate.verification import verify_windows
from ibforecast.model.config import ModelConfig
from ibforecast.zoo.configs import changed
from ibforecast.zoo.recipes import Recipe
from ibforecast.zoo.stages import Trained, train_recipe
from ibforecast_lab.data.fev import SUFFIX as FEV_ITEM
from ibforecast_lab.data.standin import SUFFIX as STAND_IN
from ibforecast_lab.data.suite import SUITE
from ibforecast_lab.experiments.ledger import Cell, Ledger, Record, Scores
from ibforecast_lab.experiments.parts import Parts, fingerprint_of, parts_of, sizes_of
from ibforecast_lab.experiments.plans import FORMER
from ibforecast_lab.experiments.studies import STUDIES
from ibforecast_lab.experiments.variants import varied
from ibforecast_lab.measures.dropped import dropped_batches
from ibforecast_lab.recipes import FITTED
from ibforecast_lab.rivals.fitted import Fitted
from ibforecast_lab.rivals.prepared import Prepared

RESULTS_VERSION = 1
"""The version of the arithmetic behind every record.

Raise it whenever a change of the code changes a number that a run computes: weights after training, a forecast, an
error or a measurement, even in the last bit on the same device. Records of an older version are outdated, and
`reproduce` runs their cells again. Do not raise it for a change of speed, form or words that keeps every number, nor
for a new study or recipe, because its records are new.
"""

VERIFIED_WINDOWS = 1000


def recipe_of(cell: Cell) -> Recipe:
    """Return the recipe of a cell, with the sizes of its data set, the roles of its columns and the cycles to learn.

    On a table of the suite our recipes learn the cycles of a plain fit, and rivals that are trained the longest known
    one. Rivals know no roles: they also read and forecast `past` channels, which do not count, and ignore covariates.
    The former default stays as it was.
    """
    data = cell.data.removesuffix(STAND_IN).removesuffix(FEV_ITEM)
    recipe = varied(cell.recipe, sizes_of(cell), data, cell.budget)
    table = SUITE.get(cell.data)
    if table is None or recipe.forecaster in FITTED:
        return recipe
    if not isinstance(recipe.config, ModelConfig):
        return replace(recipe, config=replace(recipe.config, cycle=max(table.cycle, *table.learned)))
    settings: dict[str, Any] = {"past": len(table.past), "future": len(table.future)}
    if table.past:
        settings["readout"] = {"cross_channel": True}  # needed to read `past` channels, as in ibforecast.fitting
    if cell.recipe != FORMER:
        settings["cycle"], *further = table.learned
        settings["further_cycles"] = tuple(further)
    return replace(recipe, config=changed(recipe.config, settings))


def run(cell: Cell, device: torch.device, checkpoint: Path | None = None) -> Record:
    """Train and measure one cell; the test windows are used once, after the weights are selected.

    With a `checkpoint` path, a run that was killed continues from its last finished epoch.
    """
    recipe = recipe_of(cell)
    forecaster = recipe.build(cell.seed)
    parts = parts_of(cell, device, forecaster.reads_calendar, recipe.config.period)
    if isinstance(forecaster, Prepared):
        recipe = _prepared(recipe, parts.training)
    if isinstance(forecaster, Fitted):
        begun = time.perf_counter()
        forecaster.fit(parts.training)
        return record_of(cell, recipe, forecaster, time.perf_counter() - begun, parts, device)
    identity = f"{recipe.sha256}/{fingerprint_of(cell.data)}/{cell.seed}/{RESULTS_VERSION}/{device.type}"
    trained = train_recipe(recipe, parts.training, parts.validation, cell.seed, checkpoint, sha256(identity.encode()))
    return record_of(cell, recipe, trained, trained.training.seconds, parts, device)


def record_of(
    cell: Cell,
    recipe: Recipe,
    outcome: Trained | Fitted,
    seconds: float,
    parts: Parts,
    device: torch.device,
    stacked: int = 1,
) -> Record:
    """Measure what was trained in some seconds, together with all of `stacked` models, and return the record."""
    forecaster: Forecaster = outcome.forecaster if isinstance(outcome, Trained) else outcome
    config, contest, epochs, best_epoch, libraries = recipe.config, None, 0, 0, tuple[str, ...]()
    if isinstance(outcome, Trained):
        config, contest, history = outcome.recipe.config, outcome.contest, outcome.training.history
        epochs, best_epoch = len(history), outcome.training.best_epoch
    else:
        libraries = outcome.libraries
    validation, test = accuracy(forecaster, parts.validation), accuracy(forecaster, parts.test)
    measurements = STUDIES[cell.study](forecaster, parts, cell) if cell.study else []
    measurements.extend(dropped_batches(test))
    if contest:
        measurements.append({"measure": "contest", "winner": contest.winner, "gain": contest.gain, **asdict(contest)})
    if stacked > 1:
        measurements.append({"measure": "stacked", "models": stacked})
    cpu = torch.device("cpu")
    checked, failed = (0, 0)
    if isinstance(forecaster, Accountable):
        checked, failed = verify_windows(forecaster.to(cpu), parts.test.to(cpu), VERIFIED_WINDOWS)
    return Record(
        cell=cell,
        forecaster=recipe.forecaster,
        validation=_scores(validation),
        test=_scores(test),
        verified_windows=checked,
        broken_windows=failed,
        parameters=sum(p.numel() for p in forecaster.parameters() if p.requires_grad),
        epochs=epochs,
        best_epoch=best_epoch,
        seconds=round(seconds, 3),
        windows_per_second=round(len(parts.training) * epochs / seconds, 1),
        recipe={"config": asdict(config), "train": asdict(recipe.train)},
        recipe_sha256=recipe.sha256,
        data_sha256=fingerprint_of(cell.data),
        results_version=RESULTS_VERSION,
        commit=commit(),
        device=device_name(device),
        versions=versions(*libraries),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        measurements=measurements,
    )


def _prepared(recipe: Recipe, training: Windows) -> Recipe:
    """Return the recipe whose network has the statistics of the training rows from the beginning."""

    def network(config: Any) -> Prepared:
        forecaster = recipe.network(config)
        assert isinstance(forecaster, Prepared)
        forecaster.prepare(training)
        return forecaster

    return replace(recipe, network=network)


def missing_from(ledger: Ledger, cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells that have no record, an outdated one or a damaged one."""
    return [cell for cell in cells if not is_current(_readable(ledger, cell), cell)]


def _readable(ledger: Ledger, cell: Cell) -> Record | None:
    try:
        return ledger.read(cell)
    except DataError:
        return None


def is_current(record: Record | None, cell: Cell) -> bool:
    """Return whether a record is valid for a cell: same recipe, same data, same version of the results."""
    return (
        record is not None
        and record.recipe_sha256 == recipe_of(cell).sha256
        and record.data_sha256 == fingerprint_of(cell.data)
        and record.results_version == RESULTS_VERSION
    )


def commit() -> str:
    """Return the commit of the code: IBFORECAST_COMMIT if it is set, otherwise from git."""
    if from_environment := os.environ.get("IBFORECAST_COMMIT"):
        return from_environment
    folder = Path(__file__).parent
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=False)
    return head.stdout.strip() or "unknown"


def device_name(device: torch.device) -> str:
    """Return the name of a device."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"


def versions(*further: str) -> dict[str, str]:
    """Return the versions of Python and of the packages that a result may depend on, with some further ones."""
    collected = {"python": platform.python_version(), "ibforecast": __version__}
    for library in ("torch", "numpy", *further):
        try:
            collected[library] = version(library)
        except PackageNotFoundError:
            collected[library] = "unknown"
    return collected


def _scores(measured: Accuracy) -> Scores:
    return Scores(
        windows=len(measured.squared_error),
        mse=measured.mse,
        mae=measured.mae,
        open_rate=float(measured.open_rate.mean()),
        largest_open_rate=float(measured.open_rate.max()),
    )
