"""Every recipe of both packages resolves for every data set and repeats no default."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from ibforecast.core.errors import UsageError
from ibforecast.core.sizes import Sizes
from ibforecast.model.config import ModelConfig
from ibforecast.train.config import TrainConfig
from ibforecast.zoo.recipes import DEFAULT, OURS
from ibforecast_lab.data.catalogue import CATALOGUE
from ibforecast_lab.recipes import BOOK, names, resolve

HORIZONS = (96, 192, 336, 720)
SIZES = Sizes(look_back=96, horizon=96, channels=7, cycle=24)


def sizes_of(data: str, horizon: int) -> Sizes:
    facts = CATALOGUE[data]
    return Sizes(look_back=96, horizon=horizon, channels=facts.channels, cycle=facts.cycle)


def write_recipe(folder: Path, text: str) -> str:
    path = folder / "own.toml"
    path.write_text(text, encoding="utf8")
    return str(path)


@pytest.mark.parametrize("data", CATALOGUE)
@pytest.mark.parametrize("name", names())
def test_a_recipe_resolves_for_every_data_set_and_horizon(name: str, data: str) -> None:
    for horizon in HORIZONS:
        sizes = sizes_of(data, horizon)
        recipe = resolve(name, sizes, data)
        assert recipe.name == name
        assert isinstance(recipe.config, BOOK.forecasters[recipe.forecaster][0])
        assert isinstance(recipe.config, Sizes)
        assert {key: getattr(recipe.config, key) for key in vars(sizes)} == vars(sizes)
        assert 0 < recipe.train.rate_at(0) <= recipe.train.learning_rate
        assert recipe.sha256 == resolve(name, sizes, data).sha256


@pytest.mark.parametrize("name", names())
def test_a_recipe_resolves_for_any_table(name: str) -> None:
    assert resolve(name, SIZES).config.horizon == 96


def test_every_forecaster_has_a_recipe_and_the_default_is_one_of_them() -> None:
    assert {resolve(name, SIZES).forecaster for name in names()} == set(BOOK.forecasters)
    assert DEFAULT in names()


RIVALS = [name for name, (kind, _) in BOOK.forecasters.items() if not issubclass(kind, ModelConfig)]


@pytest.mark.parametrize("forecaster", RIVALS)
def test_a_rival_with_a_second_stage_is_refused_when_its_recipe_is_resolved(forecaster: str, tmp_path: Path) -> None:
    own = write_recipe(tmp_path, f'forecaster = "{forecaster}"\n\n[train]\nsecond_epochs = 5\n')
    with pytest.raises(UsageError, match="only a recipe for ibforecast can have a second stage") as refused:
        resolve(own, SIZES)
    assert refused.value.got == f"second_epochs=5 in 'own', for {forecaster}"
    assert refused.value.remedy == "set second_epochs = 0"


def flat(settings: Mapping[str, Any], *place: str) -> dict[tuple[str, ...], Any]:
    """Return every setting by the keys that lead to it."""
    nested = [
        flat(value, *place, key) if isinstance(value, Mapping) else {(*place, key): value}
        for key, value in settings.items()
    ]
    return {key: value for part in nested for key, value in part.items()}


def repeated(document: dict[str, Any]) -> set[tuple[str, ...]]:
    """Return the settings that could be left out, because the settings below them have the same value."""
    kinds, data, extended = document.pop("kind", {}), document.pop("data", {}), document.pop("extends", None)
    config = BOOK.forecasters[document.get("forecaster", OURS)][0]
    defaults = flat({"forecaster": OURS, "model": asdict(config(**vars(SIZES))), "train": asdict(TrainConfig())})
    defaults |= flat(BOOK.read(extended)) if extended else {}
    common = defaults | flat(document)
    by_kind = [common, *(common | flat(settings) for settings in kinds.values())]
    pairs = [((), document, [defaults])]
    pairs += [(("kind", kind), settings, [common]) for kind, settings in kinds.items()]
    for name, settings in data.items():
        horizons = settings.pop("horizon", {})
        by_data = [under | flat(settings) for under in by_kind]
        pairs += [(("data", name), settings, by_kind)]
        pairs += [(("data", name, "horizon", horizon), over, by_data) for horizon, over in horizons.items()]
    return {
        (*place, *key)
        for place, over, unders in pairs
        for key, value in flat(over).items()
        if all(under[key] == value for under in unders)
    }


@pytest.mark.parametrize("name", names())
def test_no_recipe_repeats_a_default_or_a_setting_it_overrides(name: str) -> None:
    assert not repeated(tomllib.loads(BOOK.text(name)))


def test_a_recipe_that_extends_another_must_not_repeat_its_settings() -> None:
    document = 'extends = "sealed"\n[model]\npatch_len = 1\nbudget = 0.3\n[model.gate]\nspread = false\n'
    assert repeated(tomllib.loads(document)) == {("model", "patch_len")}


def test_the_check_for_repeated_settings_finds_them() -> None:
    document = """
        forecaster = "ibforecast"
        [model]
        budget = 0.2
        patch_len = 6
        [train]
        batch = 64
        [kind.many.train]
        batch = 32
        [kind.wide.model]
        patch_len = 6
        [data.Solar.train]
        batch = 64
        epochs = 36
        [data.Solar.horizon.96.model]
        patch_len = 6
        """
    assert repeated(tomllib.loads(document)) == {
        ("forecaster",),
        ("model", "budget"),
        ("kind", "wide", "model", "patch_len"),
        ("data", "Solar", "train", "epochs"),
        ("data", "Solar", "horizon", "96", "model", "patch_len"),
    }


def test_settings_for_a_data_set_and_a_horizon_override_the_others(tmp_path: Path) -> None:
    name = write_recipe(
        tmp_path,
        """
        forecaster = "tqnet"
        [model]
        width = 64
        dropout = 0.3
        [train]
        epochs = 7
        [data.Weather.model]
        width = 32
        [data.Weather.horizon.192.model]
        dropout = 0.0
        [data.Weather.horizon.192.train]
        batch = 8
        """,
    )
    plain, weather = resolve(name, SIZES), resolve(name, SIZES, "Weather")
    longer = resolve(name, sizes_of("Weather", 192), "Weather")
    assert [(at.config.width, at.config.dropout) for at in (plain, weather, longer)] == [(64, 0.3), (32, 0.3), (32, 0)]
    assert [(at.train.epochs, at.train.batch) for at in (plain, weather, longer)] == [(7, 256), (7, 256), (7, 8)]
    assert len({at.sha256 for at in (plain, weather, longer)}) == 3
