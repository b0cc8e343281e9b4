"""The verb that prints recipes: its output can be changed and used to fit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ibforecast.core.sizes import Sizes
from ibforecast.zoo.recipes import OWN, resolve

Call = Callable[..., Any]


def test_without_a_name_every_recipe_is_listed(call: Call) -> None:
    assert call("recipe").out.split() == OWN.names
    assert json.loads(call("recipe", "--json").out) == OWN.names


def test_the_printed_text_is_the_recipe(call: Call, tmp_path: Path) -> None:
    copy = tmp_path / "mine.toml"
    copy.write_text(call("recipe", "sealed").out, "utf8")
    sizes = Sizes(96, 24, 3, 24)
    mine, shipped = resolve(str(copy), sizes), resolve("sealed", sizes)
    assert (mine.config, mine.train) == (shipped.config, shipped.train)
    assert json.loads(call("recipe", "sealed", "--json").out)["train"]["epochs"] == shipped.train.epochs


def test_a_misspelt_name_is_refused_with_the_nearest_one(call: Call) -> None:
    outcome = call("recipe", "seeled")
    assert (outcome.code, outcome.out) == (2, "")
    assert "did you mean 'sealed'" in outcome.err
