"""The default recipe begins sealed; an invalid recipe is refused with the reason."""

from dataclasses import replace
from pathlib import Path

import pytest

from ibforecast.core.errors import UsageError
from ibforecast.core.sizes import Sizes
from ibforecast.model.config import ModelConfig
from ibforecast.train.config import TrainConfig
from ibforecast.zoo.recipes import DEFAULT, OWN, resolve
from ibforecast.zoo.stages import sealed_of

SIZES = Sizes(look_back=96, horizon=96, channels=7, cycle=24)
RULE_VALUE_REMEDY = r"^.+ must .+ \(got .+\); .+"


def write_recipe(folder: Path, text: str) -> str:
    path = folder / "own.toml"
    path.write_text(text, encoding="utf8")
    return str(path)


def test_a_plain_fit_is_sealed_unless_a_contest_is_won() -> None:
    default, sealed, choosing = (resolve(name, SIZES) for name in (DEFAULT, "sealed", "choosing"))
    assert sealed.config.sealed
    assert not default.config.sealed
    assert default.train == replace(choosing.train, contest_margin=0.02, additive_margin=0.05)
    assert choosing.train.single == sealed.train
    assert sealed_of(default).config == sealed.config


def test_an_empty_recipe_equals_the_defaults(tmp_path: Path) -> None:
    recipe = resolve(write_recipe(tmp_path, ""), SIZES)
    assert recipe.config == ModelConfig(**vars(SIZES))
    assert recipe.train == TrainConfig()


def test_an_override_wins_unless_it_is_none() -> None:
    assert resolve("any-budget", SIZES, budget=0.5).config.budget == 0.5
    assert resolve("any-budget", SIZES, budget=None) == resolve("any-budget", SIZES)


@pytest.mark.parametrize(
    ("text", "key"),
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
def test_an_unknown_key_is_refused_by_name(tmp_path: Path, text: str, key: str) -> None:
    with pytest.raises(UsageError, match=RULE_VALUE_REMEDY) as refusal:
        resolve(write_recipe(tmp_path, text), SIZES, "ETTh1")
    assert f"(got {key!r})" in str(refusal.value)


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
        resolve(write_recipe(tmp_path, text), SIZES, "ETTh1")
    assert f"(got {value})" in str(refusal.value)


@pytest.mark.parametrize("text", ["[model]\npatch_len = 10", "[model]\nbudget = 1.5", "[train]\ndecay = 0.0"])
def test_a_value_that_breaks_a_rule_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=RULE_VALUE_REMEDY):
        resolve(write_recipe(tmp_path, text), SIZES)


@pytest.mark.parametrize("name", ["no/such.toml", ""])
def test_an_unknown_name_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError, match=RULE_VALUE_REMEDY) as refusal:
        resolve(name, SIZES)
    assert all(known in str(refusal.value) for known in OWN.names)
    assert f"(got {name!r})" in str(refusal.value)


@pytest.mark.parametrize(("name", "meant"), [("seeled", "sealed"), ("paper.toml", "paper")])
def test_a_misspelt_name_is_refused_with_the_correct_one(name: str, meant: str) -> None:
    with pytest.raises(UsageError, match=rf"\(got '{name}'\); did you mean '{meant}'\?"):
        resolve(name, SIZES)


@pytest.mark.parametrize("text", ["[model", "budget 0.2", "a = 1\na = 2"])
def test_a_file_that_is_not_toml_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"must be valid TOML \(got .+\); correct the file"):
        resolve(write_recipe(tmp_path, text), SIZES)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=RULE_VALUE_REMEDY):
        resolve(str(path), SIZES)
