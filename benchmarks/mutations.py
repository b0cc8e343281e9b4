"""20,000 random edits of true documents with new fingerprints, and the number that pass as verified.

Two further kinds of edits are made on purpose, because rounding on another machine might explain them: a number of the
forecast is moved to the next one of single precision, or a unit of the last digit of a receipt from one amount to
another.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from decimal import Decimal
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch
from tests.forgery.conftest import AT_ROW, KINDS, fitted, table
from tests.forgery.forgeries import sealed
from tests.forgery.mutations import edits

from ibforecast import IBForecaster
from ibforecast.core.errors import IBForecastError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.receipt import column_of, decimals_for

EDITS, ON_PURPOSE = 20_000, 700
"""How many edits are made: at random, and of each kind that is made on purpose."""


def mutations(device: torch.device) -> dict[str, Any]:
    """Edit explanations of seven kinds of models, and verify each with its table, exactly and by default."""
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        counts = sum(pool.map(_counted, KINDS), Counter[tuple[str, str]]())
    by_default = {place: count for (what, place), count in sorted(counts.items()) if what == "passed by default"}
    return {
        "edits": counts["made", "edits"],
        "passed_exactly": counts["passed exactly", "edits"],
        "passed_by_default": sum(by_default.values()),
        "passed_by_default_in": by_default,
    } | {
        f"{kind}{what}": counts[count, kind]
        for kind in ("steps", "units")
        for what, count in (("", "made"), ("_passed_exactly", "passed exactly"), ("_passed_by_default", "by default"))
    }


def _counted(kind: str) -> "Counter[tuple[str, str]]":
    """Count the edits of one kind of model, those that pass exactly, and, by field, those that pass by default."""
    torch.set_num_threads(1)
    model, rows = fitted(kind), table(kind)
    explained, source = model.explain(rows, rows["when"][AT_ROW]), model.open(rows)
    dice, counts = random.Random(kind), Counter[tuple[str, str]]()
    for edit in edits(explained, dice, _share(EDITS, kind)):
        counts["made", "edits"] += 1
        counts["passed exactly", "edits"] += _passes(model, edit.text, source, exact=True)
        if _passes(model, edit.text, source, exact=False):
            counts["passed by default", ".".join(key for key in edit.place if isinstance(key, str))] += 1
    for name, lies in (("steps", _steps(explained, dice)), ("units", _units(explained, dice))):
        for _, text in zip(range(_share(ON_PURPOSE, kind)), lies, strict=False):
            counts["made", name] += 1
            counts["passed exactly", name] += _passes(model, text, source, exact=True)
            counts["by default", name] += _passes(model, text, source, exact=False)
    return counts


def _share(count: int, kind: str) -> int:
    """Return how many of some edits are of one kind of model."""
    return count // len(KINDS) + (list(KINDS).index(kind) < count % len(KINDS))


def _steps(explained: ExplainedForecast, dice: random.Random) -> Iterator[str]:
    """Yield documents in which one number of the forecast is the next one that a model can compute."""
    units, columns = explained.units, np.flatnonzero(explained.is_forecast).tolist()
    while True:
        forecast, step, column = explained.forecast.copy(), dice.randrange(explained.horizon), dice.choice(columns)
        single = units.standardise(forecast)[step].astype(np.float32)
        forecast[step, column] = units.to_units(np.nextafter(single, np.float32(dice.choice([-9, 9]))))[column]
        yield replace(explained, forecast=forecast).to_json()


def _units(explained: ExplainedForecast, dice: random.Random) -> Iterator[str]:
    """Yield documents with receipts of one step, in one of which two amounts differ by a unit of their last digit."""
    while True:
        document = json.loads(explained.with_receipts(step=dice.randrange(1, explained.horizon + 1)).to_json())
        receipt = dice.choice(document["receipts"])
        unit = Decimal(10) ** -decimals_for(explained, column_of(explained, receipt["channel"]), receipt["step"])
        for number, by in zip(dice.sample(range(len(receipt["read"])), 2), (unit, -unit), strict=True):
            receipt["read"][number] = float(Decimal(repr(receipt["read"][number])) + by)
        yield sealed(document)


def _passes(model: IBForecaster, text: str, source: Any, exact: bool) -> bool:
    try:
        return bool(model.verify(text, source, exact=exact))
    except IBForecastError:
        return False
