"""One tree of errors, whose messages state the rule, the value and the remedy."""

import inspect
import pickle

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

EVERY = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]
PLAIN = [UsageError, DataError, VerificationError, ModelFileError]


def test_everything_refused_is_one_kind_of_error() -> None:
    assert len(EVERY) == 6
    assert all(issubclass(kind, IBForecastError) for kind in EVERY)


def test_the_tree_that_is_drawn_is_the_tree_there_is() -> None:
    assert errors.__doc__ is not None
    assert all(kind.__name__ in errors.__doc__ for kind in EVERY)


def test_errors_are_also_what_python_calls_them() -> None:
    assert issubclass(UsageError, ValueError)
    assert issubclass(MissingExtraError, ImportError)


def test_a_missing_library_is_named_with_the_command_that_installs_it() -> None:
    message = str(MissingExtraError("matplotlib", "plot"))
    assert "matplotlib" in message
    assert "pip install 'ibforecast[plot]'" in message


@pytest.mark.parametrize("kind", PLAIN)
def test_an_error_survives_the_way_from_another_process(kind: type[Exception]) -> None:
    again = pickle.loads(pickle.dumps(kind("a rule (got 3); a remedy")))
    assert type(again) is kind
    assert str(again) == "a rule (got 3); a remedy"


def test_a_missing_library_survives_the_way_from_another_process() -> None:
    error = MissingExtraError("matplotlib", "plot")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is MissingExtraError
    assert str(again) == str(error)


def test_a_rule_that_holds_is_silent_and_one_that_is_broken_is_told_with_value_and_remedy() -> None:
    require(True, "a must be odd", "a=3", "try 3")
    with pytest.raises(UsageError) as refusal:
        require(False, "a must be odd", "a=2", "try 3")
    assert str(refusal.value) == "a must be odd (got a=2); try 3"


def test_a_word_that_is_not_on_the_list_is_refused_with_the_list() -> None:
    require_choice("kind", "linear", ("linear", "mlp"))
    with pytest.raises(UsageError, match=r"kind must be one of linear, mlp \(got kind='soft'\); choose one"):
        require_choice("kind", "soft", ("linear", "mlp"))


def test_a_word_that_is_not_known_brings_the_nearest_to_mind_or_else_all_there_are() -> None:
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
