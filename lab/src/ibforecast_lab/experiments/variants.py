"""Variants of recipes, named RECIPE+VARIANT: one part removed or one setting changed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any

from ibforecast.core.contracts import Forecaster
from ibforecast.core.errors import UsageError, hint, require
from ibforecast.core.sizes import Sizes
from ibforecast.model.config import ObjectiveConfig
from ibforecast.zoo.configs import changed
from ibforecast.zoo.recipes import DEFAULT, OURS, Recipe
from ibforecast_lab.networks.ablations import SoftForecast, UngatedForecast, frozen, phaseless
from ibforecast_lab.recipes import names, resolve

JOIN = "+"
NETWORKS: dict[str, Callable[[Any], Forecaster]] = {
    "ibforecast-ungated": UngatedForecast,
    "ibforecast-soft": SoftForecast,
    "ibforecast-phaseless": phaseless,
    "ibforecast-frozen": frozen,
}
"""Networks that only variants use, by the name of the forecaster in their records."""

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Variant:
    """A change of a recipe: settings that replace some of its parts `model` and `train`, or another `network`.

    `words` is its name in tables.
    """

    words: str
    model: Settings = field(default_factory=dict)
    train: Settings = field(default_factory=dict)
    network: str = ""


@dataclass(frozen=True)
class Sweep:
    """The values that a setting is given, one at a time, and the part of a recipe that has it."""

    part: str
    values: tuple[int, ...] | tuple[float, ...]

    def variant(self, setting: str, value: int | float) -> Variant:
        """Return the variant with one of the values."""
        top, _, inner = self.part.partition(".")
        settings: Settings = {inner: {setting: value}} if inner else {setting: value}
        words = f"{setting} = {value:g}"
        return Variant(words, train=settings) if top == "train" else Variant(words, settings)


SWEEPS = {
    "rate_weight": Sweep("model.objective", (0.005, 0.1, 0.5)),
    "contiguity_weight": Sweep("model.objective", (1e-4, 1e-2, 1e-1)),
    "budget_weight": Sweep("model.objective", (0.5, 2.0, 20.0)),
    "prior": Sweep("model.objective", (0.05, 0.1, 0.5)),
    "width": Sweep("model.readout", (128, 512)),
    "dropout": Sweep("model.readout", (0.0, 0.3, 0.5)),
    "frequency_share": Sweep("model.objective", (0.0, 0.25, 0.75)),
    "patch_len": Sweep("model", (2, 3, 6, 12)),
    "recent": Sweep("model.gate", (0, 6)),
    "learning_rate": Sweep("train", (0.002, 0.008)),
    "most_steps": Sweep("train", (42, 168)),
}
"""Settings that are changed one at a time. Other budgets are separate cells."""

_NO_GATE_TERMS = {knob.name: 0.0 for knob in fields(ObjectiveConfig) if knob.name.endswith("_weight")}
"""An objective with only the fit: all other terms are about the choice of the gates, and nothing chooses."""

VARIANTS: dict[str, Variant] = {
    "no-gated-base": Variant("− gated base", network="ibforecast-ungated"),
    "no-hard-gates": Variant("− hard gates", network="ibforecast-soft"),
    "no-profile": Variant("− cycle Q", {"profile": False}),
    "no-budget": Variant("− budget", {"budget": 1.0, "objective": {"budget_weight": 0.0}}),
    "no-contiguity": Variant("− gate TV", {"objective": {"contiguity_weight": 0.0}}),
    "no-diversity": Variant("− diversity", {"diversity_weight": 0.0}),
    "no-departure": Variant("− departure price", {"objective": {"departure_weight": 0.0}}),
    "no-exchange": Variant("− exchange worth", {"objective": {"exchange_weight": 0.0}}),
    "no-spectrum": Variant("− spectrum in the loss", {"objective": {"loss": "mae"}}),
    "squared-error": Variant("squared error as the loss", {"objective": {"loss": "mse"}}),
    "no-phase": Variant("− phase in the readout", network="ibforecast-phaseless"),
    "no-by-channel": Variant("− channels distinguished", {"readout": {"by_channel": False}}),
    "no-cross-channel": Variant("− channels read each other", {"readout": {"cross_channel": False}}),
    "no-seasonal-frame": Variant("− seasonal frame (weighted instead)", {"frame": "weighted"}),
    "no-spread": Variant("− spread start of the mask", {"gate": {"spread": False}}),
    "no-learned-mask": Variant(
        "− learned mask (stays as it starts)", {"gate": {"noise": 0.0}}, network="ibforecast-frozen"
    ),
    "no-averaging": Variant("− averaged weights", train={"averaged": 0.0}),
    "no-anchor": Variant("− anchor", train={"anchor_margin": 0.0}),
    "wide-gate": Variant("gate network of twice the width", {"gate": {"width": 128}}),
    "deep-gate": Variant("gate network of twice the depth", {"gate": {"layers": 2}}),
    "rate_weight=0.02": Variant("rate_weight = 0.02", {"objective": {"rate_weight": 0.02}}),
    "open": Variant(
        "gates open, with the readout and loss of the default",
        {
            "budget": 1.0,
            "level_from": "window",
            "gate": {"kind": "open", "attention": "none"},
            "objective": _NO_GATE_TERMS,
        },
    ),
    **{
        f"{setting}={value:g}": sweep.variant(setting, value)
        for setting, sweep in SWEEPS.items()
        for value in sweep.values
    },
}


@cache  # every row of the ledger needs it, and it lists the folders of recipes
def split_name(name: str) -> tuple[str, str]:
    """Split a name into recipe and variant. The path of your own recipe has no variant."""
    recipe, _, variant = name.partition(JOIN)
    return (recipe, variant) if recipe in names() else (name, "")


def words_for(name: str) -> str:
    """Return the name of a recipe or variant in tables."""
    recipe, variant = split_name(name)
    return VARIANTS[variant].words if variant in VARIANTS else recipe


def varied(name: str, sizes: Sizes, data: str | None = None, budget: float | None = None) -> Recipe:
    """Resolve a recipe or a variant of one. `budget`, if any, replaces theirs."""
    base, called = split_name(name)
    if not called:
        return resolve(name, sizes, data, budget=budget)
    variant = _variant(called)
    settings = dict(variant.model) if budget is None else {**variant.model, "budget": budget}
    recipe = replace(resolve(base, sizes, data, **settings), name=name)
    recipe = replace(recipe, train=changed(recipe.train, variant.train))
    if not variant.network:
        return recipe
    require(
        recipe.forecaster == OURS,
        f"{called} must be a variant of a recipe for {OURS}",
        f"{base}, a recipe for {recipe.forecaster}",
        f"try {DEFAULT}",
    )
    return replace(recipe, forecaster=variant.network, network=NETWORKS[variant.network])


def _variant(name: str) -> Variant:
    if name not in VARIANTS:
        raise UsageError("variant must be known", repr(name), hint(name, list(VARIANTS)))
    return VARIANTS[name]
