"""A recipe builds the forecaster it names; its first weights depend only on the seed."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ibforecast.core.errors import UsageError
from ibforecast.core.sizes import Sizes
from ibforecast.model.network import IBForecast
from ibforecast.zoo.configs import build, chosen
from ibforecast.zoo.recipes import OWN, kind_of, resolve, resolve_ours

SIZES = Sizes(look_back=96, horizon=6, channels=2, cycle=24)


def weights(seed: int, name: str = "any-budget") -> dict[str, torch.Tensor]:
    return resolve(name, SIZES).build(seed).state_dict()


def test_first_weights_depend_only_on_the_seed() -> None:
    first = weights(1)
    torch.rand(10)
    again, other = weights(1), weights(2)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_building_leaves_the_global_generator_unchanged() -> None:
    state = torch.get_rng_state()
    weights(1)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", ["default", "paper", "paper-sparse", "dense"])
def test_the_recipes_of_the_package_build_its_network(name: str) -> None:
    assert isinstance(resolve(name, SIZES).build(0), IBForecast)


def test_a_setting_overrides_the_recipe_unless_it_is_none() -> None:
    plain = resolve("any-budget", SIZES)
    assert resolve("any-budget", SIZES, budget=None).sha256 == plain.sha256
    other = resolve("any-budget", SIZES, budget=0.5)
    assert other.config.budget == 0.5
    assert other.sha256 != plain.sha256


@pytest.mark.parametrize("name", OWN.names)
def test_the_settings_that_differ_from_the_defaults_rebuild_the_configuration(name: str) -> None:
    recipe = resolve(name, SIZES, "Weather")
    assert build(type(recipe.config), chosen(recipe.config), name) == recipe.config
    assert build(type(recipe.train), chosen(recipe.train), name) == recipe.train


def test_a_default_written_out_does_not_change_the_fingerprint() -> None:
    plain = resolve("any-budget", SIZES)
    assert resolve("any-budget", SIZES, objective={"absence_weight": 0.0}).sha256 == plain.sha256
    assert resolve("any-budget", SIZES, objective={"absence_weight": 0.1}).sha256 != plain.sha256


def test_an_unknown_forecaster_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('forecaster = "prophet"\n')
    with pytest.raises(UsageError, match=r"forecaster must be one of ibforecast \(got 'prophet'\); correct the recipe"):
        resolve(str(path), SIZES)


@pytest.mark.parametrize(
    ("channels", "cycle", "kind"),
    [(7, 24, "usual"), (7, 95, "usual"), (7, 96, "short"), (12, 96, "wide"), (64, 24, "wide"), (65, 24, "many")],
)
def test_the_kind_of_a_table_depends_on_its_channels_and_its_cycle(channels: int, cycle: int, kind: str) -> None:
    assert kind_of(Sizes(96, 24, channels, cycle)) == kind


def test_settings_for_a_data_set_override_those_for_a_kind(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text("[model]\nbudget = 0.3\n[kind.short.model]\nbudget = 0.4\n[data.ETTm1.model]\nbudget = 0.5\n")
    short = Sizes(96, 24, 7, 96)
    assert resolve(str(path), SIZES).config.budget == 0.3
    assert resolve(str(path), short).config.budget == 0.4
    assert resolve(str(path), short, "ETTm1").config.budget == 0.5


def test_an_unknown_kind_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text("[kind.odd.model]\nbudget = 0.4\n")
    with pytest.raises(UsageError, match=r"a kind must be one of many, wide, short, usual \(got 'odd'\)"):
        resolve(str(path), SIZES)


@pytest.mark.parametrize(("look_back", "patch_len"), [(96, 6), (50, 5), (47, 1)])
def test_the_patch_length_of_a_recipe_is_adapted_to_the_look_back(
    look_back: int, patch_len: int, tmp_path: Path
) -> None:
    path = tmp_path / "own.toml"
    path.write_text("[kind.short.model]\npatch_len = 6\n")
    sizes = Sizes(look_back, 6, 7, look_back)
    assert resolve_ours(str(path), sizes).config.patch_len == patch_len
    assert resolve_ours(str(path), sizes, patch_len=look_back).config.patch_len == look_back


def test_a_patch_length_that_is_not_a_number_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text("[model]\npatch_len = true\n")
    with pytest.raises(UsageError, match=r"patch_len must be a whole number \(got True"):
        resolve_ours(str(path), SIZES)


# --- A recipe that extends another ---


def test_a_recipe_that_extends_another_writes_only_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        'extends = "sealed"\n[model]\nbudget = 0.3\n[model.readout]\nwidth = 64\n[kind.many.train]\nepochs = 3\n'
    )
    own, base = resolve(str(path), SIZES), resolve("sealed", SIZES)
    assert own.name == "own"
    assert own.config == replace(base.config, budget=0.3, readout=replace(base.config.readout, width=64))
    assert own.train == base.train
    many = Sizes(96, 6, 65, 24)
    assert resolve(str(path), many).train == replace(resolve("sealed", many).train, epochs=3)


def test_a_recipe_may_extend_one_that_extends_another(tmp_path: Path) -> None:
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text('extends = "sealed"\n[model]\nbudget = 0.3\n[train]\nepochs = 3\n')
    second.write_text(f'extends = "{first}"\n[model]\nbudget = 0.4\n')
    recipe = resolve(str(second), SIZES)
    assert (recipe.config.budget, recipe.train.epochs, recipe.config.sealed) == (0.4, 3, True)


def test_a_recipe_that_extends_an_unknown_one_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('extends = "seeled"\n')
    with pytest.raises(UsageError, match=r"\(got 'seeled'\); did you mean 'sealed'\?"):
        resolve(str(path), SIZES)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_recipes_that_extend_each_other_are_refused(tmp_path: Path, length: int) -> None:
    paths = [tmp_path / f"{number}.toml" for number in range(length)]
    for path, base in zip(paths, [*paths[1:], paths[0]], strict=True):
        path.write_text(f'extends = "{base}"\n')
    with pytest.raises(UsageError, match=rf"extends must name another recipe \(got '{paths[0]}'\); try 'default'"):
        resolve(str(paths[0]), SIZES)


def test_a_base_that_is_not_a_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text("extends = 3\n")
    with pytest.raises(UsageError, match=r"extends must name another recipe \(got 3\)"):
        resolve(str(path), SIZES)


def test_the_epochs_of_a_recipe_are_those_of_all_its_stages() -> None:
    sealed, choosing, default = (resolve(name, SIZES) for name in ("sealed", "choosing", "default"))
    assert sealed.epochs == sealed.train.epochs
    assert choosing.epochs == sealed.epochs + choosing.train.second_epochs
    assert default.epochs == choosing.epochs + 2 * default.train.contest.epochs + sealed.epochs
    assert resolve("any-budget", SIZES).epochs == resolve("any-budget", SIZES).train.epochs


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (f"[train]\nbatch = {'1' * 5000}", "recipe must be valid TOML"),
        (f"[train]\nbatch = 0x{'f' * 5000}", "train.batch must be a number that 64 bits can hold"),
        (f"[train]\nlearning_rate = {'1' * 400}", "train.learning_rate must be a number that 64 bits can hold"),
        (f"[model]\nbudget = 0x{'f' * 5000}", "model.budget must be a number that 64 bits can hold"),
        ("[model.readout]\nwidth = 10000000000", "width must be positive and at most 16384"),
        ("[model.gate]\nwidth = 10000000000", "width must be positive and at most 16384"),
        ("[model.gate]\nlayers = 10000000000", "layers must be positive, at most 1000"),
        ("[model.objective]\nrate_weight = 1e999", "weights must be finite"),
        (f"x = {'[' * 100_000}", "recipe must be valid TOML"),
    ],
    ids=lambda value: value[:30],
)
def test_a_recipe_with_huge_numbers_is_refused(tmp_path: Path, setting: str, words: str) -> None:
    path = tmp_path / "huge.toml"
    path.write_text(f'extends = "any-budget"\n{setting}\n')
    with pytest.raises(UsageError, match=words) as refusal:
        resolve_ours(str(path), SIZES)
    assert refusal.value.remedy
