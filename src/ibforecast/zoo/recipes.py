"""Recipes by name: TOML files with what differs from the defaults, for all tables, a kind of table or a data set."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from ibforecast.core.budget import allowance
from ibforecast.core.errors import UsageError, hint
from ibforecast.core.files import sha256, to_json
from ibforecast.core.sizes import Sizes
from ibforecast.model.config import ModelConfig
from ibforecast.train.config import TrainConfig
from ibforecast.zoo.configs import build, changed, chosen

if TYPE_CHECKING:
    from ibforecast.core.contracts import Forecaster

DEFAULT = "default"
OURS = "ibforecast"

Kind = Literal["many", "wide", "short", "usual"]
MANY, WIDE = 64, 12


def kind_of(sizes: Sizes) -> Kind:
    """Return the kind of a table, which depends on its number of channels and on whether windows exceed the cycle."""
    if sizes.channels > MANY:
        return "many"
    if sizes.channels >= WIDE:
        return "wide"
    return "short" if sizes.look_back <= sizes.cycle else "usual"


@dataclass(frozen=True)
class Book:
    """The packages that contain recipes as TOML files, and by name the forecasters they may be for.

    A forecaster is a pair: the class of its configuration, and what builds a network from one.
    """

    packages: tuple[str, ...]
    forecasters: Mapping[str, tuple[type[Any], Callable[[Any], "Forecaster"]]]

    @property
    def names(self) -> list[str]:
        """Names of the recipes, sorted."""
        return sorted(self._files)

    @property
    def _files(self) -> dict[str, Traversable]:
        files = (file for package in self.packages for file in resources.files(package).iterdir())
        return {Path(file.name).stem: file for file in files if file.name.endswith(".toml")}

    def text(self, name: str) -> str:
        """Return the text of a recipe, given its name or the path of a file."""
        path = Path(name)
        if name in self._files:
            content = self._files[name].read_bytes()
        elif path.suffix == ".toml" and path.is_file():
            content = path.read_bytes()
        else:
            rule = "recipe must be one that ships or a path to a .toml file"
            raise UsageError(rule, repr(name), hint(name, self.names))
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise UsageError("recipe must be valid TOML", f"{error} in {name}", "correct the file") from error

    def read(self, name: str, extended_by: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return a recipe, given its name or the path of a file, laid over the one that it extends, if any."""
        text = self.text(name)
        try:
            document = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # also a number of more than 4,300 digits, and deep nesting
            raise UsageError("recipe must be valid TOML", f"{error} in {name}", "correct the file") from error
        base = document.pop("extends", None)
        if base is None:
            return document
        if not isinstance(base, str) or base in (name, *extended_by):
            raise UsageError(f"recipe {name}: extends must name another recipe", repr(base), f"try {DEFAULT!r}")
        return _laid_over(self.read(base, (name, *extended_by)), document)


def our_network(config: ModelConfig) -> "Forecaster":
    """Return the network of a configuration; PyTorch is imported only now, so that reading a recipe is fast."""
    from ibforecast.model.reading import network_of

    return network_of(config)


OWN = Book(("ibforecast.recipes",), {OURS: (ModelConfig, our_network)})
"""The recipes of this package."""


@dataclass(frozen=True)
class Recipe:
    """A forecaster's name, its whole configuration, how it is trained, and the network built from the configuration."""

    name: str
    forecaster: str
    config: Any
    train: TrainConfig
    network: Callable[[Any], "Forecaster"] = our_network

    def __post_init__(self) -> None:
        for name, part in (("second_epochs", "a second stage"), ("anchor_margin", "an anchor")):
            if (value := getattr(self.train, name)) and not isinstance(self.config, ModelConfig):
                raise UsageError(
                    f"only a recipe for {OURS} can have {part}",
                    f"{name}={value} in {self.name!r}, for {self.forecaster}",
                    f"set {name} = 0",
                )

    @property
    def sha256(self) -> str:
        """Fingerprint of all settings that are not defaults, so that a new setting does not change old recipes.

        If a default gets a new value, the fingerprints of unchanged recipes change: rewrite them in the ledger. If a
        default gets a new meaning, results change: raise RESULTS_VERSION.
        """
        return sha256(to_json([self.forecaster, chosen(self.config), chosen(self.train)]))

    @property
    def epochs(self) -> int:
        """The largest number of epochs of all stages together, with those of a contest."""
        contest = 2 * self.train.contest.epochs if self.train.contest_margin else 0
        return self.train.epochs * (1 + bool(self.train.additive_margin)) + contest + self.train.second_epochs

    def build(self, seed: int) -> "Forecaster":
        """Return the forecaster with initial weights drawn from the seed."""
        import torch

        with torch.random.fork_rng([]):
            torch.manual_seed(seed)
            return self.network(self.config)


def resolve(name: str, sizes: Sizes, data: str | None = None, *, book: Book = OWN, **overrides: Any) -> Recipe:
    """Read a recipe by name or path, with its differences for the kind of table, the data set and the horizon.

    The `overrides` replace settings of the model part, unless they are None.
    """
    settings, where = _settings(book, name, sizes, data), f"recipe {name}"
    forecaster = settings.get("forecaster", OURS)
    if not isinstance(forecaster, str):
        raise UsageError(f"{where}: forecaster must be a name", repr(forecaster), f'write it as "{OURS}"')
    if forecaster not in book.forecasters:
        known = ", ".join(book.forecasters)
        raise UsageError(f"forecaster must be one of {known}", repr(forecaster), "correct the recipe")
    kind, network = book.forecasters[forecaster]
    model = {**vars(sizes), **_table(settings, where, "model")}
    model = _laid_over(model, {key: value for key, value in overrides.items() if value is not None})
    return Recipe(
        name=Path(name).stem,
        forecaster=forecaster,
        config=build(kind, model, f"{where}: model"),
        train=build(TrainConfig, _table(settings, where, "train"), f"{where}: train"),
        network=network,
    )


def resolve_ours(name: str, sizes: Sizes, **overrides: Any) -> Recipe:
    """Like `resolve` with the recipes of this package, and with a patch length that divides the look-back.

    If the look-back is so short that the recipe's budget allows nothing, patches become shorter, and single values get
    the smallest budget that allows one per channel.
    """
    if overrides.get("patch_len") is None:
        own = usual_patch_len(name, sizes)
        overrides["patch_len"] = _nearest_divisor(sizes.look_back, own) if type(own) is int else own
        if overrides.get("budget") is None:
            overrides |= _readable(_budget(name, sizes), overrides["patch_len"], sizes)
    return resolve(name, sizes, **overrides)


def _readable(budget: Any, patch_len: Any, sizes: Sizes) -> dict[str, Any]:
    """Return a patch length, and a budget if it must be larger, with which a value of each channel can be read."""
    if type(patch_len) is not int or type(budget) not in (int, float) or sizes.look_back < 1:
        return {}  # `resolve` refuses it
    patches = max(sizes.look_back // max(patch_len, 1), 1)
    enough = sizes.channels if patch_len == 1 else 1
    if not 0 < budget <= 1 or allowance(budget, patches * sizes.channels) >= enough:
        return {}
    shorter = (n for n in range(patch_len, 0, -1) if sizes.look_back % n == 0)
    for length in shorter:
        if allowance(budget, sizes.look_back // length) >= 1:
            return {"patch_len": length}
    return {"patch_len": 1, "budget": 1 / sizes.look_back}


def _budget(name: str, sizes: Sizes) -> Any:
    """Return the budget of one of our recipes, as it is written."""
    return _table(_settings(OWN, name, sizes, None), f"recipe {name}", "model").get("budget", ModelConfig.budget)


def adapted(recipe: Recipe, sizes: Sizes, **overrides: Any) -> Recipe:
    """Return a resolved recipe for a table of other sizes; `overrides` and patch length as in `resolve_ours`."""
    if recipe.forecaster != OURS:
        raise UsageError(f"recipe must be for {OURS}", f"{recipe.name!r}, for {recipe.forecaster}", f"try {DEFAULT!r}")
    patch_len = _nearest_divisor(sizes.look_back, recipe.config.patch_len)
    changes = {key: value for key, value in overrides.items() if value is not None}
    return replace(recipe, config=changed(recipe.config, {"patch_len": patch_len, **vars(sizes), **changes}))


def usual_patch_len(name: str, sizes: Sizes) -> int:
    """Return the patch length of one of our recipes, whether or not it divides the look-back."""
    model = _table(_settings(OWN, name, sizes, None), f"recipe {name}", "model")
    return model.get("patch_len", ModelConfig.patch_len)  # type: ignore[no-any-return]


def _nearest_divisor(number: int, wanted: int) -> int:
    """Return the divisor nearest to a number, or that number if there is none."""
    return min((n for n in range(1, number + 1) if number % n == 0), key=lambda n: abs(n - wanted), default=wanted)


def _settings(book: Book, name: str, sizes: Sizes, data: str | None) -> dict[str, Any]:
    """Return the settings of a recipe, with its differences for kind of table, data set and horizon merged in."""
    document, where = book.read(name), f"recipe {name}"
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


def _table(document: Mapping[str, Any], where: str, *path: str) -> dict[str, Any]:
    """Return the table at a path of keys, or an empty one if there is none."""
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
