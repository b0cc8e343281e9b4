"""One tree of errors with the fields rule, got and remedy."""

import inspect
import pickle
from typing import Any

import pytest

from ibforecast.core import errors
from ibforecast.core.errors import (
    DataError,
    IBForecastError,
    MissingExtraError,
    ModelFileError,
    UsageError,
    VerificationError,
    hint,
    require,
    require_choice,
)
from ibforecast.core.sizes import Sizes

EVERY = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__]
PLAIN = [UsageError, DataError, VerificationError, ModelFileError]


def test_every_error_is_an_ibforecast_error() -> None:
    assert len(EVERY) == 6
    assert all(issubclass(kind, IBForecastError) for kind in EVERY)


def test_the_documented_error_tree_matches_the_classes() -> None:
    assert errors.__doc__ is not None
    assert all(kind.__name__ in errors.__doc__ for kind in EVERY)


def test_errors_are_also_builtin_errors() -> None:
    assert issubclass(UsageError, ValueError)
    assert issubclass(MissingExtraError, ImportError)


def test_a_missing_library_is_reported_with_its_install_command() -> None:
    error = MissingExtraError("matplotlib", "plot")
    assert (error.library, error.extra) == ("matplotlib", "plot")
    assert error.rule == "this needs matplotlib, which is not installed"
    assert error.got == ""
    assert error.remedy == "run: pip install 'ibforecast[plot]'"
    assert str(error) == "this needs matplotlib, which is not installed; run: pip install 'ibforecast[plot]'"


@pytest.mark.parametrize("kind", PLAIN)
def test_an_error_has_its_parts_as_text(kind: type[IBForecastError]) -> None:
    error = kind("a rule", 3, "a remedy")
    assert (error.rule, error.got, error.remedy) == ("a rule", "3", "a remedy")
    assert error.args == ("a rule", "3", "a remedy")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (("a rule", 3, "a remedy"), "a rule (got 3); a remedy"),
        (("a rule", 0, "a remedy"), "a rule (got 0); a remedy"),
        (("a rule", None, "a remedy"), "a rule; a remedy"),
        (("a rule", "", "a remedy"), "a rule; a remedy"),
        (("a rule", 3), "a rule (got 3)"),
        (("a rule",), "a rule"),
    ],
)
def test_a_message_omits_empty_parts(parts: tuple[Any, ...], message: str) -> None:
    assert str(IBForecastError(*parts)) == message


@pytest.mark.parametrize(
    ("parts", "error_and_hint"),
    [
        (
            ("a rule", "row 1: a; row 2: b", "try this; or that"),
            ("a rule (got row 1: a; row 2: b)", "try this; or that"),
        ),
        (("a rule", "row 1: a; row 2: b"), ("a rule (got row 1: a; row 2: b)", "")),
        (("a rule; in two clauses", None, "a remedy"), ("a rule; in two clauses", "a remedy")),
        (("a rule",), ("a rule", "")),
        (("a rule (got 3); no remedy",), ("a rule (got 3); no remedy", "")),
    ],
)
def test_error_and_hint_are_correct_when_a_part_contains_a_semicolon(
    parts: tuple[Any, ...], error_and_hint: tuple[str, str]
) -> None:
    assert IBForecastError(*parts).error_and_hint() == error_and_hint


@pytest.mark.parametrize("kind", PLAIN)
def test_an_error_can_be_pickled(kind: type[IBForecastError]) -> None:
    cannot_be_pickled = (number for number in range(3))
    error = kind("a rule", cannot_be_pickled, "a remedy")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (again.rule, again.got, again.remedy) == (error.rule, error.got, error.remedy)
    assert str(again) == str(error)


def test_a_missing_library_error_can_be_pickled() -> None:
    error = MissingExtraError("matplotlib", "plot")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is MissingExtraError
    assert (again.library, again.extra) == ("matplotlib", "plot")
    assert str(again) == str(error)


def test_a_broken_rule_raises_with_value_and_remedy_and_a_kept_one_does_not() -> None:
    require(True, "a must be odd", "a=3", "try 3")
    with pytest.raises(UsageError) as refusal:
        require(False, "a must be odd", "a=2", "try 3")
    assert (refusal.value.rule, refusal.value.got, refusal.value.remedy) == ("a must be odd", "a=2", "try 3")
    assert str(refusal.value) == "a must be odd (got a=2); try 3"


def test_a_word_outside_the_list_is_refused_with_the_list() -> None:
    require_choice("kind", "linear", ("linear", "mlp"))
    with pytest.raises(UsageError, match=r"kind must be one of linear, mlp \(got kind='soft'\); choose one"):
        require_choice("kind", "soft", ("linear", "mlp"))


def test_an_unknown_word_is_refused_with_the_nearest_one_or_with_all() -> None:
    assert hint("lod", ["load", "Wind"]) == "did you mean 'load'?"
    assert hint("WIND", ["load", "Wind"]) == "did you mean 'Wind'?"
    assert hint("xyz", ["load", "Wind"]) == "choose among load, Wind"
    assert hint("xyz", ["load", "Wind"], "name one that is there") == "name one that is there"


@pytest.mark.parametrize("name", ["look_back", "horizon", "channels", "cycle"])
@pytest.mark.parametrize("value", [0, -3])
def test_sizes_below_one_are_refused_by_name(name: str, value: int) -> None:
    sizes = {"look_back": 96, "horizon": 24, "channels": 7, "cycle": 24}
    with pytest.raises(UsageError, match=rf"{name} must be at least 1 \(got {name}={value}\); .+"):
        Sizes(**sizes | {name: value})
