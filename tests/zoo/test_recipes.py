"""What a recipe builds: the forecaster it names, with first weights drawn from the seed alone."""

from pathlib import Path

import pytest
import torch

from ibforecast.core.errors import UsageError
from ibforecast.core.sizes import Sizes
from ibforecast.model.network import IBForecast
from ibforecast.zoo.configs import build, chosen
from ibforecast.zoo.recipes import OWN, kind_of, resolve, resolve_ours

SIZES = Sizes(look_back=96, horizon=6, channels=2, cycle=24)


def weights(seed: int, name: str = "exact") -> dict[str, torch.Tensor]:
    return resolve(name, SIZES).build(seed).state_dict()


def test_first_weights_come_from_the_seed_alone() -> None:
    first = weights(1)
    torch.rand(10)
    again, other = weights(1), weights(2)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_building_leaves_the_global_generator_where_it_was() -> None:
    state = torch.get_rng_state()
    weights(1)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", ["exact", "paper", "paper-sparse", "dense"])
def test_our_own_recipes_build_our_own_network(name: str) -> None:
    assert isinstance(resolve(name, SIZES).build(0), IBForecast)


def test_a_setting_laid_over_a_recipe_wins_and_none_leaves_it_alone() -> None:
    plain = resolve("exact", SIZES)
    assert resolve("exact", SIZES, budget=None).sha256 == plain.sha256
    other = resolve("exact", SIZES, budget=0.5)
    assert other.config.budget == 0.5
    assert other.sha256 != plain.sha256


@pytest.mark.parametrize("name", OWN.names)
def test_what_is_not_a_default_is_enough_to_build_the_configuration_again(name: str) -> None:
    recipe = resolve(name, SIZES, "Weather")
    assert build(type(recipe.config), chosen(recipe.config), name) == recipe.config
    assert build(type(recipe.train), chosen(recipe.train), name) == recipe.train


def test_the_fingerprint_does_not_tell_a_default_from_its_own_value() -> None:
    plain = resolve("exact", SIZES)
    assert resolve("exact", SIZES, objective={"absence_weight": 0.0}).sha256 == plain.sha256
    assert resolve("exact", SIZES, objective={"absence_weight": 0.1}).sha256 != plain.sha256


def test_an_unknown_forecaster_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('forecaster = "prophet"\n')
    with pytest.raises(UsageError, match=r"forecaster must be one of ibforecast \(got 'prophet'\); correct the recipe"):
        resolve(str(own), SIZES)


@pytest.mark.parametrize(
    ("channels", "cycle", "kind"),
    [(7, 24, "usual"), (7, 95, "usual"), (7, 96, "short"), (12, 96, "wide"), (64, 24, "wide"), (65, 24, "many")],
)
def test_the_kind_of_a_table_goes_by_its_channels_and_by_windows_that_outlast_the_cycle(
    channels: int, cycle: int, kind: str
) -> None:
    assert kind_of(Sizes(96, 24, channels, cycle)) == kind


def test_what_a_kind_wants_lies_under_what_a_data_set_wants(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text("[model]\nbudget = 0.3\n[kind.short.model]\nbudget = 0.4\n[data.ETTm1.model]\nbudget = 0.5\n")
    short = Sizes(96, 24, 7, 96)
    assert resolve(str(own), SIZES).config.budget == 0.3
    assert resolve(str(own), short).config.budget == 0.4
    assert resolve(str(own), short, "ETTm1").config.budget == 0.5


def test_an_unknown_kind_is_refused_with_those_there_are(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text("[kind.odd.model]\nbudget = 0.4\n")
    with pytest.raises(UsageError, match=r"a kind must be one of many, wide, short, usual \(got 'odd'\)"):
        resolve(str(own), SIZES)


@pytest.mark.parametrize(("look_back", "patch_len"), [(96, 6), (50, 5), (47, 1)])
def test_a_patch_length_of_the_recipes_own_is_fitted_to_the_look_back(
    look_back: int, patch_len: int, tmp_path: Path
) -> None:
    own = tmp_path / "own.toml"
    own.write_text("[kind.short.model]\npatch_len = 6\n")
    sizes = Sizes(look_back, 6, 7, look_back)
    assert resolve_ours(str(own), sizes).config.patch_len == patch_len
    assert resolve_ours(str(own), sizes, patch_len=look_back).config.patch_len == look_back


def test_a_patch_length_that_is_no_number_is_refused(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text("[model]\npatch_len = true\n")
    with pytest.raises(UsageError, match=r"patch_len must be a whole number \(got True"):
        resolve_ours(str(own), SIZES)
