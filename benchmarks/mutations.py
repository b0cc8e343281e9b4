"""20,000 random edits of true documents, fingerprints computed again: how many pass as verified."""

import random
from collections import Counter
from typing import Any

import torch
from tests.forgery.conftest import AT_ROW, KINDS, fitted, table
from tests.forgery.mutations import edits

from ibforecast import IBForecaster
from ibforecast.core.errors import IBForecastError

EDITS = 20_000


def mutations(device: torch.device) -> dict[str, Any]:
    """Edit explanations of six kinds of models, and verify each with its table, exactly and as verify does by default.

    By default the last digits may differ by what rounding explains, so that some edits of the last digits pass.
    """
    results: dict[str, Any] = {"edits": 0, "passed_exactly": 0, "passed_by_default": 0}
    places: Counter[str] = Counter()
    for number, kind in enumerate(KINDS):
        model, rows = fitted(kind), table(kind)
        explained, source = model.explain(rows, rows["when"][AT_ROW]), model.open(rows)
        share = EDITS // len(KINDS) + (number < EDITS % len(KINDS))
        for edit in edits(explained, random.Random(kind), share):
            results["edits"] += 1
            results["passed_exactly"] += _passes(model, edit.text, source, exact=True)
            if _passes(model, edit.text, source, exact=False):
                results["passed_by_default"] += 1
                places[".".join(str(key) for key in edit.place if isinstance(key, str))] += 1
    return results | {"places_by_default": dict(places)}


def _passes(model: IBForecaster, text: str, source: Any, exact: bool) -> bool:
    try:
        return bool(model.verify(text, source, exact=exact))
    except IBForecastError:
        return False
