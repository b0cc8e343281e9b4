"""Bodies of requests: JSON text becomes a valid question, and its size is limited before anything is built from it."""

import json
from collections.abc import Mapping, Sequence
from email.message import Message
from typing import Any, TypeVar

from pydantic import ValidationError

from ibforecast.core import document
from ibforecast.serve import wire
from ibforecast.serve.refusals import Refused, reading, shortened
from ibforecast.serve.tables import check_names

SMALL = 64 * 2**10
"""Bytes of a body that is read at once: that takes about a millisecond, less than to hand it to a thread and back."""

MOST_NESTED = 500_000
"""Lists and objects in a body. Python is busy with nothing else while it reads JSON, and each of them takes time."""

RULES = {
    "table": "columns as lists, rows as objects, CSV text, or the id of a table kept here",
    "at": "an ISO time or a list of them",
    "explanation": "the document of /explain or its text",
    "other": "the document of /explain or its text",
    "version": f"{wire.VERSION}",
    "channel": "a name or a list of names",
    "step": 'a number of steps ahead, "mean" or "every"',
    "ComparisonOf.channel": "a name",
    "ComparisonOf.step": 'a number of steps ahead or "mean"',
}
"""The rules of fields that may be of several types, for error messages; some are different in one kind of question."""

Q = TypeVar("Q", bound=wire.Question)


def parse(kind: type[Q], body: bytes, content_type: str, strict: bool = False) -> Q:
    """Return the question in a body; refuse one that is not valid.

    If `strict`, also refuse a repeated key: a reader and a verifier could take different values for it.
    """
    if not body:
        raise Refused(422, "body must be sent", "none", "see /openapi.json", "body")
    if not _is_json(content_type):
        raise Refused(
            422, "body must be JSON", shortened(content_type), "send it with content-type: application/json", "body"
        )
    if (nested := body.count(b"[") + body.count(b"{")) > MOST_NESTED:
        raise Refused(
            413, f"a body must have at most {MOST_NESTED} lists and objects", nested, "send columns, or CSV", "body"
        )
    sent = _strictly(body) if strict else _loosely(body)
    if isinstance(sent, dict):
        for field in ("table", "future"):
            if isinstance(columns := sent.get(field), dict):
                check_names(len(columns), field)
        # One unknown field is enough for an error; a million of them would take seconds to list.
        for name in [name for name in sent if name not in kind.model_fields][1:]:
            del sent[name]
    return validated(kind, sent)


def validated(kind: type[Q], sent: Any) -> Q:
    """Return the question with these fields; refuse invalid ones."""
    try:
        return kind.model_validate(sent)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise refusal(first, first["loc"], kind.__name__) from None


def refusal(error: Mapping[str, Any], place: Sequence[int | str], kind: str = "") -> Refused:
    """Return the refusal of an invalid request; it names the field at a place of the request, a question of a kind."""
    names = []
    for part in place:
        if isinstance(part, str) and ("[" in part or part in ("str", "int")):  # the name of a type, not of a field
            break
        names.append(str(part))
    field = ".".join(names) or "body"
    if error["type"] == "missing":
        return Refused(422, f"{field} must be sent", "none", "see /openapi.json", field)
    rule = RULES.get(f"{kind}.{field}", RULES.get(field, error["msg"]))
    rule = f"{field} must be as the wire format says, {rule[:1].lower()}{rule[1:]}"
    return Refused(422, rule, shortened(error.get("input")), "see /openapi.json", field)


def _is_json(content_type: str) -> bool:
    message = Message()
    message["content-type"] = content_type
    kind = message.get_content_subtype()
    return message.get_content_maintype() == "application" and (kind == "json" or kind.endswith("+json"))


def _strictly(body: bytes) -> Any:
    with reading("explanation"):
        return document.parse(body)


def _loosely(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused(422, "body must be valid JSON", str(error)[:200], "write it again", "body") from error
