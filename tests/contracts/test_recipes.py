"""Every recipe that ships is whole and repeats no default; a broken one is refused with the reason."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from ibforecast.zoo.registry import FORECASTERS

from ibforecast.core.errors import UsageError
from ibforecast.core.sizes import Sizes
from ibforecast.model.config import ModelConfig
from ibforecast.train.config import TrainConfig
from ibforecast.zoo.recipes import DEFAULT, OURS, names, resolve, text_of
from ibforecast_lab.data.catalogue import CATALOGUE

HORIZONS = (96, 192, 336, 720)
SIZES = Sizes(look_back=96, horizon=96, channels=7, cycle=24)
RULE_VALUE_REMEDY = r"^.+ must .+ \(got .+\); .+"


def sizes_of(data: str, horizon: int) -> Sizes:
    facts = CATALOGUE[data]
    return Sizes(look_back=96, horizon=horizon, channels=facts.channels, cycle=facts.cycle)


def written(folder: Path, text: str) -> str:
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
        assert isinstance(recipe.config, FORECASTERS[recipe.forecaster].config)
        assert isinstance(recipe.config, Sizes)
        assert {key: getattr(recipe.config, key) for key in vars(sizes)} == vars(sizes)
        assert recipe.train.rate_at(0) == recipe.train.learning_rate
        assert recipe.sha256 == resolve(name, sizes, data).sha256


@pytest.mark.parametrize("name", names())
def test_a_recipe_resolves_for_a_table_of_ones_own(name: str) -> None:
    assert resolve(name, SIZES).config.horizon == 96


def test_every_forecaster_has_a_recipe_and_the_default_is_one_of_them() -> None:
    assert {resolve(name, SIZES).forecaster for name in names()} == set(FORECASTERS)
    assert DEFAULT in names()


def test_the_default_recipe_is_the_defaults_for_a_usual_table() -> None:
    recipe = resolve(DEFAULT, SIZES)
    assert recipe.config == ModelConfig(**vars(SIZES))
    assert recipe.train == TrainConfig()


def flat(settings: Mapping[str, Any], *place: str) -> dict[tuple[str, ...], Any]:
    """Every single setting, by the keys that lead to it."""
    nested = [
        flat(value, *place, key) if isinstance(value, Mapping) else {(*place, key): value}
        for key, value in settings.items()
    ]
    return {key: value for part in nested for key, value in part.items()}


def repeated(document: dict[str, Any]) -> set[tuple[str, ...]]:
    """The settings that could be left out, because what lies under them has the same value."""
    kinds, data = document.pop("kind", {}), document.pop("data", {})
    config = FORECASTERS[document.get("forecaster", OURS)].config
    defaults = flat({"forecaster": OURS, "model": asdict(config(**vars(SIZES))), "train": asdict(TrainConfig())})
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
def test_no_recipe_repeats_a_default_or_what_a_setting_under_it_says(name: str) -> None:
    assert not repeated(tomllib.loads(text_of(name)))


def test_settings_that_repeat_what_is_under_them_are_noticed() -> None:
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


def test_what_a_data_set_and_a_horizon_want_is_laid_over_the_rest(tmp_path: Path) -> None:
    name = written(
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


def test_an_override_wins_unless_it_is_none() -> None:
    assert resolve("exact", SIZES, budget=0.5).config.budget == 0.5
    assert resolve("exact", SIZES, budget=None) == resolve("exact", SIZES)


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ("[model]\nbugdet = 0.2", "bugdet"),
        ("[model.gate]\nwidht = 8", "widht"),
        ("[train]\nepoch = 3", "epoch"),
        ("[modell]\nbudget = 0.2", "modell"),
        ("seed = 1", "seed"),
        ("[data.ETTh1.modell]\nbudget = 0.2", "modell"),
        ("[data.ETTh1.horizon.96.trian]\nepochs = 2", "trian"),
        ('forecaster = "prophet"', "prophet"),
    ],
)
def test_an_unknown_key_is_refused_by_name(tmp_path: Path, text: str, culprit: str) -> None:
    with pytest.raises(UsageError, match=RULE_VALUE_REMEDY) as refusal:
        resolve(written(tmp_path, text), SIZES, "ETTh1")
    assert f"(got {culprit!r})" in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('[model]\nbudget = "a fifth"', "'a fifth'"),
        ("[model]\nbudget = true", "True"),
        ("[model]\npatch_len = 12.0", "12.0"),
        ("[model]\npatch_len = true", "True"),
        ("[model]\nprofile = 1", "1"),
        ('[model]\nframe = "median"', "'median'"),
        ('[model.gate]\nkind = "soft"', "'soft'"),
        ("[model]\nfurther_cycles = 168", "168"),
        ("[model]\ngate = 3", "3"),
        ("[train]\nepochs = 3.5", "3.5"),
        ('[train]\nlearning_rate = "1e-3"', "'1e-3'"),
        ("forecaster = 3", "3"),
        ("model = 3", "3"),
        ("train = [1]", "[1]"),
        ("data = 3", "3"),
        ("[data]\nETTh1 = 3", "3"),
        ("[data.ETTh1]\nhorizon = 3", "3"),
        ("[data.ETTh1]\nhorizon.96 = 3", "3"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(tmp_path: Path, text: str, value: str) -> None:
    with pytest.raises(UsageError, match=RULE_VALUE_REMEDY) as refusal:
        resolve(written(tmp_path, text), SIZES, "ETTh1")
    assert f"(got {value})" in str(refusal.value)


@pytest.mark.parametrize("text", ["[model]\npatch_len = 10", "[model]\nbudget = 1.5", "[train]\ndecay = 0.0"])
def test_a_value_that_breaks_a_rule_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=RULE_VALUE_REMEDY):
        resolve(written(tmp_path, text), SIZES)


@pytest.mark.parametrize("name", ["no/such.toml", ""])
def test_an_unknown_name_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(UsageError, match=RULE_VALUE_REMEDY) as refusal:
        resolve(name, SIZES)
    assert all(known in str(refusal.value) for known in names())
    assert f"(got {name!r})" in str(refusal.value)


@pytest.mark.parametrize(("name", "meant"), [("exakt", "exact"), ("paper.toml", "paper")])
def test_a_name_that_is_nearly_one_is_refused_with_that_one(name: str, meant: str) -> None:
    with pytest.raises(UsageError, match=rf"\(got '{name}'\); did you mean '{meant}'\?"):
        resolve(name, SIZES)


@pytest.mark.parametrize("text", ["[model", "budget 0.2", "a = 1\na = 2"])
def test_what_is_not_toml_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"must be valid TOML \(got .+\); correct the file"):
        resolve(written(tmp_path, text), SIZES)


def test_what_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=RULE_VALUE_REMEDY):
        resolve(str(path), SIZES)
