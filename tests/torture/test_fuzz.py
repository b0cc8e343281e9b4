"""Readers refuse malformed input with an error of the library; `make torture` gives them a million."""

import resource
from itertools import islice
from pathlib import Path

import pytest
from jaxtyping import TypeCheckError
from torture.fuzz import NAMES, at_random, fuzz
from torture.targets import REFUSED, make


@pytest.mark.parametrize("name", [name for name in NAMES if name != "onnx"])  # an export takes seconds
def test_malformed_input_is_refused_with_an_error_of_the_library(name: str, tmp_path: Path) -> None:
    target, refused = make(name, tmp_path), 0
    for content in islice(at_random(target, 0), 30):
        try:
            target.probe(content)
        except (REFUSED, TypeCheckError):  # in tests the type checker refuses some values before the library does
            refused += 1
    target.close()
    assert refused


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_AS"), reason="needs a limit on memory")
def test_a_small_table_needs_less_than_a_gigabyte_of_address_space() -> None:
    found = fuzz(0.01, 0, ("csv",))
    assert found["broken"] == []
    assert found["inputs"] > 0
