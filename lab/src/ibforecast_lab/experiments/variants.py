"""Variants of recipes, named RECIPE+VARIANT: one part removed or one setting changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any

from ibforecast.core.contracts import Forecaster
from ibforecast.core.errors import UsageError, hint, require
from ibforecast.core.sizes import Sizes
from ibforecast.model.config import ObjectiveConfig
from ibforecast.zoo.recipes import Recipe
from ibforecast_lab.networks.ablations import PhaselessForecast, SoftForecast, UngatedForecast
from ibforecast_lab.recipes import names, resolve

JOIN = "+"
NETWORKS: dict[str, type[Forecaster]] = {
    "ibforecast-ungated": UngatedForecast,
    "ibforecast-soft": SoftForecast,
    "ibforecast-phaseless": PhaselessForecast,
}
"""Networks that only variants use, by the name of the forecaster in their records."""


@dataclass(frozen=True)
class Variant:
    """A change of a recipe: `settings` that replace some of its model part, or another `network` built from it.

    `words` is its name in tables.
    """

    words: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    network: str = ""


SWEEPS: dict[str, tuple[float, ...]] = {
    "rate_weight": (0.005, 0.1, 0.5),
    "contiguity_weight": (1e-4, 1e-2, 1e-1),
    "budget_weight": (0.5, 2.0, 20.0),
    "prior": (0.05, 0.1, 0.5),
}
"""Settings of the objective and the values each is given, one at a time. Other budgets are separate cells."""

_NO_GATE_TERMS = {knob.name: 0.0 for knob in fields(ObjectiveConfig) if knob.name.endswith("_weight")}
"""An objective with only the fit: all other terms are about the choice of the gates, and nothing chooses."""

VARIANTS: dict[str, Variant] = {
    "no-gated-base": Variant("− gated base", network="ibforecast-ungated"),
    "no-hard-gates": Variant("− hard gates", network="ibforecast-soft"),
    "no-profile": Variant("− cycle Q", {"profile": False}),
    "no-budget": Variant("− budget", {"budget": 1.0, "objective": {"budget_weight": 0.0}}),
    "no-contiguity": Variant("− gate TV", {"objective": {"contiguity_weight": 0.0}}),
    "no-diversity": Variant("− diversity", {"diversity_weight": 0.0}),
    "no-departure": Variant("− departure", {"objective": {"departure_weight": 0.0}}),
    "no-consistency": Variant("− self-consistency", {"objective": {"consistency_weight": 0.0}}),
    "no-phase": Variant("− phase in the readout", network="ibforecast-phaseless"),
    "no-bias": Variant("− gate bias", {"gate": {"recent": 0, "every": 0}}),
    "no-exchange": Variant("− exchange worth", {"objective": {"exchange_weight": 0.0}}),
    "rate_weight=0.02": Variant("rate_weight = 0.02", {"objective": {"rate_weight": 0.02}}),
    "open": Variant(
        "gates open",
        {
            "budget": 1.0,
            "level_from": "window",
            "gate": {"kind": "open", "attention": "none"},
            "objective": _NO_GATE_TERMS,
        },
    ),
    **{
        f"{knob}={value:g}": Variant(f"{knob} = {value:g}", {"objective": {knob: value}})
        for knob, values in SWEEPS.items()
        for value in values
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
    settings = dict(variant.settings) if budget is None else {**variant.settings, "budget": budget}
    recipe = replace(resolve(base, sizes, data, **settings), name=name)
    if not variant.network:
        return recipe
    require(
        recipe.forecaster == "ibforecast",
        f"{called} must be a variant of a recipe for ibforecast",
        f"{base}, a recipe for {recipe.forecaster}",
        "try steady",
    )
    return replace(recipe, forecaster=variant.network, network=NETWORKS[variant.network])


def _variant(name: str) -> Variant:
    if name not in VARIANTS:
        raise UsageError("variant must be known", repr(name), hint(name, list(VARIANTS)))
    return VARIANTS[name]
