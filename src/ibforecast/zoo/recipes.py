"""Recipes by name: a TOML file, with what a data set or a horizon wants otherwise laid over it."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import torch

from ibforecast.core.contracts import Forecaster
from ibforecast.core.errors import UsageError
from ibforecast.core.files import sha256
from ibforecast.core.sizes import Sizes
from ibforecast.train.config import TrainConfig
from ibforecast.zoo.configs import build
from ibforecast.zoo.registry import entry

DEFAULT = "exact"


@dataclass(frozen=True)
class Recipe:
    """A forecaster's name, its whole configuration, and how it is trained."""

    name: str
    forecaster: str
    config: Any
    train: TrainConfig

    @property
    def sha256(self) -> str:
        """Fingerprint of everything in it."""
        return sha256(repr((self.forecaster, self.config, self.train)).encode())

    def build(self, seed: int) -> Forecaster:
        """Build the forecaster with its first weights drawn from the seed."""
        with torch.random.fork_rng([]):
            torch.manual_seed(seed)
            return entry(self.forecaster).forecaster(self.config)


def names() -> list[str]:
    """Names of the recipes that ship with the library."""
    folder = resources.files("ibforecast.recipes")
    return sorted(Path(file.name).stem for file in folder.iterdir() if file.name.endswith(".toml"))


def resolve(name: str, sizes: Sizes, data: str | None = None, **overrides: Any) -> Recipe:
    """Read a recipe by name or path, as the data set and the horizon want it; `overrides` go into the model part."""
    document = _read(name)
    for_data = document.pop("data", {}).get(data, {}) if data else {}
    for_horizon = for_data.pop("horizon", {}).get(str(sizes.horizon), {}) if for_data else {}
    document.pop("data", None)
    settings = _laid_over(_laid_over(document, for_data), for_horizon)
    unknown = sorted(set(settings) - {"forecaster", "model", "train"})
    if unknown:
        raise UsageError(f"recipe {name} must hold forecaster, model and train (got {unknown[0]!r}); correct it")
    forecaster = settings.get("forecaster", "ibforecast")
    model = {**vars(sizes), **settings.get("model", {})}
    model |= {key: value for key, value in overrides.items() if value is not None}
    return Recipe(
        name=Path(name).stem,
        forecaster=forecaster,
        config=build(entry(forecaster).config, model, f"recipe {name}: model"),
        train=build(TrainConfig, settings.get("train", {}), f"recipe {name}: train"),
    )


def _read(name: str) -> dict[str, Any]:
    path = Path(name)
    if name in names():
        text = resources.files("ibforecast.recipes").joinpath(f"{name}.toml").read_text()
    elif path.suffix == ".toml" and path.is_file():
        text = path.read_text()
    else:
        raise UsageError(f"recipe must be one of {', '.join(names())}, or a path to a .toml file (got {name!r})")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"recipe must be valid TOML (got {error} in {name}); correct the file") from error


def _laid_over(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _laid_over(merged[key], value) if both else value
    return merged
