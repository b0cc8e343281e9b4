"""Documents: the fingerprint covers the content, and a changed document is refused."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibforecast.core import document
from ibforecast.core.errors import DataError, ModelFileError

LEAVES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
TREES = st.recursive(
    LEAVES | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
CONTENT = st.dictionaries(
    st.text().filter(lambda name: name not in ("format", "version", "sha256")), TREES, min_size=1, max_size=4
)


def read(text: str | bytes) -> dict[str, Any]:
    return document.read(text, "thing", 1)


def same(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@given(CONTENT)
def test_a_written_document_reads_back(content: dict[str, Any]) -> None:
    assert same(read(document.write("thing", 1, content)), content)


@given(CONTENT)
def test_another_client_may_rewrite_a_document(content: dict[str, Any]) -> None:
    parsed = json.loads(document.write("thing", 1, content))
    backwards = dict(reversed(parsed.items()))
    assert same(read(json.dumps(backwards, indent=7)), content)


@given(CONTENT, CONTENT)
def test_two_contents_share_a_fingerprint_only_if_they_are_equal(one: dict[str, Any], other: dict[str, Any]) -> None:
    equal = document.fingerprint(one) == document.fingerprint(other)
    assert equal == (_as_doubles(one) == _as_doubles(other))


def _as_doubles(value: Any) -> Any:
    """Return the value as read by a client that has only doubles; booleans stay distinct from numbers."""
    if isinstance(value, dict):
        return {name: _as_doubles(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_as_doubles(one) for one in value]
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int) and abs(value) > 2**53:
        return ("int", value)
    return float(value) if isinstance(value, int) else value


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["ab", "c"], ["a", "bc"]),
        ([["a"], []], [[], ["a"]]),
        ([1], [True]),
        ([0], [False]),
        ([None], ["n"]),
        ([""], [None]),
        ({"a": {"b": 1}}, {"a": {}, "b": 1}),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.zeros(4, np.float32), np.zeros(2, np.float64)),
        (np.array([1.0]), [1.0]),
        (np.array([True]), np.array([1], np.int8)),
    ],
)
def test_contents_that_look_alike_have_different_fingerprints(one: Any, other: Any) -> None:
    assert document.fingerprint(one) != document.fingerprint(other)


def test_number_formatting_and_the_sign_of_zero_do_not_change_the_fingerprint() -> None:
    assert document.fingerprint([1, 1.0, -0.0]) == document.fingerprint([1.0, 1, 0])
    assert document.fingerprint(np.array([-0.0])) == document.fingerprint(np.array([0.0]))
    big_endian = np.arange(3, dtype=">f4")
    assert document.fingerprint(big_endian) == document.fingerprint(big_endian.astype("<f4"))


WHOLE = document.write("thing", 1, {"a": {"b": 1}, "c": [1.5, None]})


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (WHOLE.replace('"b":1', '"b":2'), "match its fingerprint"),
        (WHOLE.replace("null", "0"), "match its fingerprint"),
        (WHOLE.replace('"b":1', '"b":1,"d":1'), "match its fingerprint"),
        (WHOLE.replace('"b":1', '"b":2,"b":1'), "a key must appear once"),
        (WHOLE.replace('"c":', '"a": {}, "c":'), "a key must appear once"),
        (WHOLE.replace("1.5", "NaN"), "a number must be finite"),
        (WHOLE.replace("1.5", "-Infinity"), "a number must be finite"),
        (WHOLE.replace("1.5", "1e999"), "a number must be finite"),
        (WHOLE.replace("1.5", "9" * 5000), "valid JSON"),
        (WHOLE.replace("1.5", "[" * 100 + "]" * 100), "nested deeply"),
        (WHOLE.replace("1.5", "[" * 100_000 + "]" * 100_000), "valid JSON"),
        (WHOLE.replace("thing", "other"), "have the format 'thing'"),
        (WHOLE.replace('"version": 1', '"version": 2'), "up to version 1"),
        (WHOLE.replace('"version": 1', '"version": true'), "up to version 1"),
        (WHOLE.replace('"version": 1', '"version": 0'), "must have version 1"),
        (WHOLE.replace('"sha256"', '"sha512"'), "name its fingerprint"),
        (WHOLE[:-10], "valid JSON"),
        ("[]", "have the format"),
        ("", "valid JSON"),
    ],
)
def test_a_changed_document_is_refused_with_the_reason(text: str, rule: str) -> None:
    assert read(WHOLE) == {"a": {"b": 1}, "c": [1.5, None]}
    with pytest.raises(DataError, match=rule):
        read(text)


def test_bytes_that_are_not_text_are_refused_with_the_callers_error_class() -> None:
    with pytest.raises(ModelFileError, match="valid JSON"):
        document.read(b"\xff\xfe\x00", "thing", 1, ModelFileError)


def test_numbers_that_are_not_finite_are_not_written() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        document.write("thing", 1, {"a": float("nan")})


def canonical(value: Any) -> bytes:
    parts: list[bytes] = []
    document._feed(value, parts.append)
    return b"".join(parts)


def test_numbers_in_a_list_have_the_same_fingerprint_together_and_one_by_one() -> None:
    numbers = [0.0, -0.0, 1.5, 1e-300, -2.25e7]
    together = canonical(numbers)
    one_by_one = b"".join(map(canonical, numbers))
    assert together.endswith(one_by_one)
    assert document.fingerprint([1.0, 2.0]) == document.fingerprint([1, 2.0])


def test_fingerprints_are_those_of_documents_written_by_earlier_versions() -> None:
    content = {
        "b": ["é", "\ud800", "", None, True, False, 0, -1, 2**60, 1.5, -0.0, 1e300],
        "a": {"x": np.array([[1.5, np.nan], [-0.0, 3.0]], dtype=np.float32), "y": (np.arange(3), np.zeros((2, 0)))},
        "mask": np.array([True, False]),
    }
    # A document that is kept must stay valid, so this number must never change.
    assert document.fingerprint(content) == "2af780f6e5b60151145ee3b295d497fc85e667be0f4b6a5a33d7c1dbd86f15dd"
