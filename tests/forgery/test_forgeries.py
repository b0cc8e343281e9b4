"""No forged explanation passes at any door for any kind of model; every true one does."""

import pytest
from tests.forgery.forgeries import FORGERIES, Case, Forgery

DOORS = ("python", "cli", "onnx", "service")


def test_there_are_enough_kinds_of_forgeries() -> None:
    assert len({forgery.name for forgery in FORGERIES}) == len(FORGERIES) >= 30


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("with_table", [False, True])
def test_a_true_explanation_passes(case: Case, door: str, with_table: bool) -> None:
    assert case.doors[door](case.scene.explained.to_json(), with_table)


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda forgery: forgery.name)
def test_no_forgery_passes(case: Case, forgery: Forgery) -> None:
    text = forgery.make(case.scene)
    if text is None:
        pytest.skip(f"does not apply to a model of the kind {case.kind!r}")
    assert text != case.scene.explained.to_json()
    passed = [door for door in DOORS if case.doors[door](text, forgery.needs_table)]
    assert not passed
