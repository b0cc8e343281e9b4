"""20,000 random edits of true documents with new fingerprints, and the number that pass as verified."""

import random
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import torch
from tests.forgery.conftest import AT_ROW, KINDS, fitted, table
from tests.forgery.mutations import edits

from ibforecast import IBForecaster
from ibforecast.core.errors import IBForecastError

EDITS = 20_000


def mutations(device: torch.device) -> dict[str, Any]:
    """Edit explanations of six kinds of models, and verify each with its table, exactly and by default.

    By default the last digits may differ as far as rounding explains, so some edits of the last digits pass.
    """
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        counts = sum(pool.map(_counted, KINDS), Counter[str]())
    by_default = {name: count for name, count in counts.items() if name not in ("edits", "passed exactly")}
    return {
        "edits": counts["edits"],
        "passed_exactly": counts["passed exactly"],
        "passed_by_default": sum(by_default.values()),
        "passed_by_default_in": dict(sorted(by_default.items())),
    }


def _counted(kind: str) -> "Counter[str]":
    """Count the edits of one kind of model, those that pass exactly, and, by field, those that pass by default."""
    torch.set_num_threads(1)
    model, rows = fitted(kind), table(kind)
    explained, source = model.explain(rows, rows["when"][AT_ROW]), model.open(rows)
    number, counts = list(KINDS).index(kind), Counter[str]()
    share = EDITS // len(KINDS) + (number < EDITS % len(KINDS))
    for edit in edits(explained, random.Random(kind), share):
        counts["edits"] += 1
        counts["passed exactly"] += _passes(model, edit.text, source, exact=True)
        if _passes(model, edit.text, source, exact=False):
            counts[".".join(key for key in edit.place if isinstance(key, str))] += 1
    return counts


def _passes(model: IBForecaster, text: str, source: Any, exact: bool) -> bool:
    try:
        return bool(model.verify(text, source, exact=exact))
    except IBForecastError:
        return False
