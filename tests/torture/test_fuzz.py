"""Readers refuse malformed input with an error of the library; `make torture` gives them as much as its time allows."""

import resource
from itertools import islice
from pathlib import Path
from statistics import median

import pytest
from jaxtyping import TypeCheckError
from torture.fuzz import LONGEST, NAMES, _Watched, at_random, fuzz
from torture.targets import REFUSED, Target, make


@pytest.mark.parametrize("name", [name for name in NAMES if name != "onnx"])  # an export takes seconds
def test_malformed_input_is_refused_with_an_error_of_the_library(name: str, tmp_path: Path) -> None:
    target, refused = make(name, tmp_path), 0
    for content in islice(at_random(target, 0), 30):
        try:
            target.probe(content)
        except (*REFUSED, TypeCheckError):  # in tests the type checker refuses some values before the library does
            refused += 1
    target.close()
    assert refused


def test_inputs_that_end_in_a_new_place_are_told_from_others(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(bytes(24 + LONGEST))
    watched = _Watched("csv", tmp_path)
    assert watched(b"time,a\n2024-01-01,x\n2024-01-02,1\n2024-01-03,1\n")
    assert not watched(b"time,a\n2024-02-01,y\n2024-02-02,2\n2024-02-03,1\n")
    assert watched(b"time,a\n2024-01-01\n")
    assert not watched(b"time,a\n2024-01-01,1,2,3\n")


def test_an_input_that_reached_a_new_place_is_changed_further() -> None:
    inputs = at_random(Target(lambda content: None, (b"a" * 100,)), 0)
    next(inputs)
    once, further = (median(len(inputs.send(new).strip(b"a")) for _ in range(200)) for new in (None, True))
    assert further > 1.5 * once


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_AS"), reason="needs a limit on memory")
def test_a_small_table_needs_less_than_a_gigabyte_of_address_space() -> None:
    found = fuzz(0.01, 0, ("csv",))
    assert found["broken"] == []
    assert found["inputs"] > 0
