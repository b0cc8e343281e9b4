"""Recipes by name: TOML files with what differs from the defaults, for all tables, a kind of table or a data set."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

import torch

from ibforecast.core.contracts import Forecaster
from ibforecast.core.errors import UsageError, hint
from ibforecast.core.files import sha256, to_json
from ibforecast.core.sizes import Sizes
from ibforecast.model.config import ModelConfig
from ibforecast.train.config import TrainConfig
from ibforecast.zoo.configs import build, changed, chosen
from ibforecast.zoo.registry import entry

DEFAULT = "steady"
OURS = "ibforecast"

Kind = Literal["many", "wide", "short", "usual"]
MANY, WIDE = 64, 12


def kind_of(sizes: Sizes) -> Kind:
    """Return the kind of a table: by its number of channels, or else by whether windows are longer than the cycle."""
    if sizes.channels > MANY:
        return "many"
    if sizes.channels >= WIDE:
        return "wide"
    return "short" if sizes.look_back <= sizes.cycle else "usual"


@dataclass(frozen=True)
class Recipe:
    """A forecaster's name, its whole configuration, and how it is trained."""

    name: str
    forecaster: str
    config: Any
    train: TrainConfig

    @property
    def sha256(self) -> str:
        """Fingerprint of everything that is not a default, so that a new setting leaves old recipes as they are.

        A new value of a default changes the fingerprints of recipes that stay the same: rewrite those in the ledger. A
        default with a new meaning changes results: raise RESULTS_VERSION.
        """
        return sha256(to_json([self.forecaster, chosen(self.config), chosen(self.train)]))

    def build(self, seed: int) -> Forecaster:
        """Build the forecaster with its first weights drawn from the seed."""
        with torch.random.fork_rng([]):
            torch.manual_seed(seed)
            return entry(self.forecaster).forecaster(self.config)


def names() -> list[str]:
    """Names of the recipes that ship with the library."""
    folder = resources.files("ibforecast.recipes")
    return sorted(Path(file.name).stem for file in folder.iterdir() if file.name.endswith(".toml"))


def forecaster_of(name: str) -> str:
    """Return the name of the forecaster a recipe is for, without reading anything else in it."""
    return str(_read(name).get("forecaster", OURS))


def require_ours(name: str) -> None:
    """Refuse the recipe of a rival."""
    if forecaster_of(name) != OURS:
        raise UsageError("recipe must be one of ibforecast's own", f"{name!r}, a rival's", f"try {DEFAULT!r}")


def resolve(name: str, sizes: Sizes, data: str | None = None, **overrides: Any) -> Recipe:
    """Read a recipe by name or path, with its differences for the kind of table, the data set and the horizon.

    The `overrides` replace settings of the model part, unless they are None.
    """
    settings, where = _settings(name, sizes, data), f"recipe {name}"
    forecaster = settings.get("forecaster", OURS)
    if not isinstance(forecaster, str):
        raise UsageError(f"{where}: forecaster must be a name", repr(forecaster), f'write it as "{OURS}"')
    model = {**vars(sizes), **_table(settings, where, "model")}
    model = _laid_over(model, {key: value for key, value in overrides.items() if value is not None})
    return Recipe(
        name=Path(name).stem,
        forecaster=forecaster,
        config=build(entry(forecaster).config, model, f"{where}: model"),
        train=build(TrainConfig, _table(settings, where, "train"), f"{where}: train"),
    )


def resolve_ours(name: str, sizes: Sizes, data: str | None = None, **overrides: Any) -> Recipe:
    """Like `resolve`, for ibforecast only; the patch length, unless one is given, is fitted to the look-back."""
    require_ours(name)
    if overrides.get("patch_len") is None:
        own = usual_patch_len(name, sizes, data)
        overrides["patch_len"] = _nearest_divisor(sizes.look_back, own) if type(own) is int else own
    return resolve(name, sizes, data, **overrides)


def adapted(recipe: Recipe, sizes: Sizes, **overrides: Any) -> Recipe:
    """Return a resolved recipe for a table of other sizes; `overrides` and patch length as in `resolve_ours`."""
    if recipe.forecaster != OURS:
        raise UsageError("recipe must be one of ibforecast's own", f"{recipe.name!r}, a rival's", f"try {DEFAULT!r}")
    patch_len = _nearest_divisor(sizes.look_back, recipe.config.patch_len)
    changes = {key: value for key, value in overrides.items() if value is not None}
    return replace(recipe, config=changed(recipe.config, {"patch_len": patch_len, **vars(sizes), **changes}))


def usual_patch_len(name: str, sizes: Sizes, data: str | None = None) -> int:
    """Return the patch length of one of our recipes, whether or not it divides the look-back."""
    model = _table(_settings(name, sizes, data), f"recipe {name}", "model")
    return model.get("patch_len", ModelConfig.patch_len)  # type: ignore[no-any-return]


def _nearest_divisor(number: int, wanted: int) -> int:
    """Return the divisor nearest to the one wanted, or the one wanted if there is none."""
    return min((n for n in range(1, number + 1) if number % n == 0), key=lambda n: abs(n - wanted), default=wanted)


def _settings(name: str, sizes: Sizes, data: str | None) -> dict[str, Any]:
    """Return the settings of a recipe, with its differences for kind of table, data set and horizon merged in."""
    document, where = _read(name), f"recipe {name}"
    for_kind = _table(document, where, "kind", kind_of(sizes))
    unknown = sorted(set(_table(document, where, "kind")) - set(get_args(Kind)))
    if unknown:
        raise UsageError(
            f"{where}: a kind must be one of {', '.join(get_args(Kind))}", repr(unknown[0]), "rename or remove it"
        )
    for_data = _table(document, where, "data", data) if data else {}
    for_horizon = _table(document, where, "data", data, "horizon", str(sizes.horizon)) if data else {}
    document.pop("kind", None)
    document.pop("data", None)
    for_data.pop("horizon", None)
    settings = document
    for over in (for_kind, for_data, for_horizon):
        settings = _laid_over(settings, over)
    unknown = sorted(set(settings) - {"forecaster", "model", "train"})
    if unknown:
        raise UsageError(f"{where} must hold forecaster, model and train", repr(unknown[0]), "correct it")
    return settings


def text_of(name: str) -> str:
    """Return the text of a recipe, by its name or path."""
    path = Path(name)
    if name in names():
        content = resources.files("ibforecast.recipes").joinpath(f"{name}.toml").read_bytes()
    elif path.suffix == ".toml" and path.is_file():
        content = path.read_bytes()
    else:
        raise UsageError("recipe must be one that ships or a path to a .toml file", repr(name), hint(name, names()))
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UsageError("recipe must be valid TOML", f"{error} in {name}", "correct the file") from error


def _read(name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text_of(name))
    except tomllib.TOMLDecodeError as error:
        raise UsageError("recipe must be valid TOML", f"{error} in {name}", "correct the file") from error


def _table(document: Mapping[str, Any], where: str, *path: str) -> dict[str, Any]:
    """Return the table at the end of a path of keys, an empty one if there is none."""
    table: Any = document
    for depth, key in enumerate(path, start=1):
        table = table.get(key, {})
        if not isinstance(table, Mapping):
            place = ".".join(path[:depth])
            raise UsageError(f"{where}: {place} must be a table", repr(table), f"head it with [{place}]")
    return dict(table)


def _laid_over(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _laid_over(merged[key], value) if both else value
    return merged
