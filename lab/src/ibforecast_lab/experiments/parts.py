"""The training, validation and test windows of a cell, from real data, stand-ins or generators."""

from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Bool
from torch import Tensor

from ibforecast.core.calendar import DAY, Frequency
from ibforecast.core.files import sha256
from ibforecast.core.sizes import Sizes
from ibforecast.data.series import Series
from ibforecast.data.windows import Windows
from ibforecast_lab.data import catalogue, drivers, fev, framed, suite
from ibforecast_lab.data.resident import resident
from ibforecast_lab.data.standin import STAND_INS, stand_in
from ibforecast_lab.experiments.ledger import Cell

FRAMED: dict[str, framed.Mode] = {f"framed-{mode}": mode for mode in framed.MODES}
"""The modes of the benchmark with planted truth, by the name that each has as a data set."""

DRIVERS = "drivers"
"""The name that the benchmark with several drivers has as a data set."""

GENERATED = (*FRAMED, DRIVERS)


@dataclass(frozen=True)
class Parts:
    """The three parts of a data set on a device; `support` marks the values planted in the test windows, if any."""

    training: Windows
    validation: Windows
    test: Windows
    support: Bool[Tensor, "window look_back channel"] | None = None


def sizes_of(cell: Cell) -> Sizes:
    """Return the lengths, channels and cycle of a cell."""
    facts = framed.FramedConstants() if cell.data in GENERATED else facts_of(cell.data)
    return Sizes(cell.look_back, cell.horizon, facts.channels, facts.cycle)


def facts_of(name: str) -> catalogue.DataSet | suite.SuiteTable | fev.FevItem:
    """Return the facts of a data set, a stand-in, a table of the suite or an item of a fev task."""
    return STAND_INS.get(name) or suite.SUITE.get(name) or fev.FEV.get(name) or catalogue.CATALOGUE[name]


def steps_per_day(name: str) -> int:
    """Return the number of steps in a day: 1 if a step is no shorter, and for generated data, which have no times."""
    if name in GENERATED:
        return 1
    step = Frequency.parse(facts_of(name).frequency).seconds
    return max(DAY // step, 1) if step else 1  # a step of months has no seconds


def fingerprint_of(name: str) -> str:
    """Return the fingerprint of a data set's numbers."""
    return _generated_fingerprint(name) if name in GENERATED else series_of(name).sha256


@cache
def series_of(name: str) -> Series:
    """Return the numbers of a data set, a stand-in, a table of the suite or an item of a fev task."""
    if name in suite.SUITE:
        return suite.load(name)
    if name in fev.FEV:
        return fev.with_gaps(name)
    return stand_in(name) if name in STAND_INS else catalogue.load(name)


def parts_of(cell: Cell, device: torch.device, with_calendar: bool, period: int | None = None) -> Parts:
    """Cut the windows of a cell. Real data are standardised by the training rows; generated windows stay unchanged.

    Of the tables of the suite and the items of fev tasks, which have gaps, only usable windows are taken, as in the
    product: the same for every model. The test windows of a fev task are one horizon apart. Phases repeat after a
    `period`, by default the cycle of the data set.
    """
    if cell.data in GENERATED:
        drawn = _generated(cell.data)
        train, validation, test = (resident(part.window, part.target, part.phase).to(device) for part in drawn)
        support = torch.from_numpy(drawn[2].support).to(device)
        return Parts(train, validation, test, support.any(dim=1) if cell.data == DRIVERS else support)
    facts, series = facts_of(cell.data), series_of(cell.data)
    split = facts.parts
    standardiser, known = series.units(split.train_end)
    starts = {part: split.starts(part, cell.look_back, cell.horizon) for part in ("train", "validation", "test")}
    if cell.data in fev.FEV:
        starts["test"] = starts["test"][:: cell.horizon]
    training = Windows.of(
        series,
        standardiser,
        period or facts.cycle,
        starts["train"],
        cell.look_back,
        cell.horizon,
        with_calendar,
        known,
    ).to(device)
    parts = (training, training.at(starts["validation"]), training.at(starts["test"]))
    return Parts(*(part.usable() for part in parts) if cell.data in (*suite.SUITE, *fev.FEV) else parts)


def _generated(name: str) -> tuple[framed.FramedWindows, ...] | tuple[drivers.DriverWindows, ...]:
    return drivers.splits() if name == DRIVERS else framed.splits(FRAMED[name])


@cache
def _generated_fingerprint(name: str) -> str:
    parts = _generated(name)
    return sha256(array.tobytes() for part in parts for array in (part.window, part.target, part.phase, part.support))
