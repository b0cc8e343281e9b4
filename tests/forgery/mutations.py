"""Random edits of a true document, one at a time, with a recomputed fingerprint."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.forgery.forgeries import sealed

from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.writing import STATEMENTS


@dataclass(frozen=True)
class Edit:
    """A place in a document, its values before and after the edit, and the text of the edited document."""

    place: tuple[Any, ...]
    before: Any
    after: Any
    text: str


def edits(explained: ExplainedForecast, dice: random.Random, count: int) -> Iterator[Edit]:
    """Yield edits that change a number, name, time or word somewhere; an edit that changes nothing is drawn again."""
    truth = json.loads(explained.to_json())
    while count:
        lie, place = _edited(json.loads(explained.to_json()), dice)
        before, after = _at(truth, place), _at(lie, place)
        if lie == truth and type(before) is type(after):
            continue
        count -= 1
        # An edited statement or fingerprint stays as it is; everything else is sealed again.
        text = json.dumps(lie) if place[0] in ("sha256", *STATEMENTS) else sealed(lie)
        yield Edit(tuple(place), before, after, text)


def _edited(document: dict[str, Any], dice: random.Random) -> tuple[dict[str, Any], list[Any]]:
    """Change one value of a document; return the document and the path to the value."""
    place: list[Any] = []
    value: Any = document
    while isinstance(value, dict | list) and value:
        # Nested lists and objects are entered; sometimes one is edited as a whole.
        if place and dice.random() < 0.04:
            break
        key = dice.choice(list(value)) if isinstance(value, dict) else dice.randrange(len(value))
        place.append(key)
        value = value[key]
    _at(document, place[:-1])[place[-1]] = _other(value, dice)
    return document, place


def _other(value: Any, dice: random.Random) -> Any:
    if isinstance(value, bool):
        return dice.choice([not value, int(value), None])
    if isinstance(value, int):
        return dice.choice([value + 1, value - 1, -value, value * 2, str(value), None, value + 0.5])
    if isinstance(value, float):
        near = json.loads(json.dumps(value))
        digit = near * (1 + dice.choice([-1, 1]) * 2.0 ** -dice.randrange(1, 53))
        return dice.choice([digit, digit, digit, -near, near + 1, 0.0, None, str(near)])
    if isinstance(value, str):
        return _retyped(value, dice)
    if value is None:
        return dice.choice([0, 0.5, "", [], False])
    if isinstance(value, list):
        edited = list(value)
        if not edited:
            return [0]
        dice.choice([edited.pop, edited.clear, edited.reverse, lambda: edited.append(value[0] if value else 0)])()
        return edited
    edited = dict(value)
    dice.choice([edited.popitem, lambda: edited.update(note=1)])()
    return edited


def _retyped(text: str, dice: random.Random) -> str:
    """Change, drop or add one letter."""
    at, letter = dice.randrange(len(text) + 1), dice.choice("0123456789abcdef -:.é")
    return dice.choice(
        [text[:at] + letter + text[at:], text[:at] + letter + text[at + 1 :], text[: max(at - 1, 0)] + text[at:]]
    )


def _at(document: Any, place: list[Any]) -> Any:
    for key in place:
        document = document[key]
    return document
