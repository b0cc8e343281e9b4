"""All recipes of both packages by name: ours, the rivals', and those of single experiments."""

from typing import Any

from ibforecast.core.sizes import Sizes
from ibforecast.zoo.recipes import OWN, Book, Recipe
from ibforecast.zoo.recipes import resolve as resolve_from
from ibforecast_lab.networks.factors import FactorConfig, FactorForecast
from ibforecast_lab.rivals.cyclenet import CycleNet, CycleNetConfig
from ibforecast_lab.rivals.dlinear import DLinear, DLinearConfig
from ibforecast_lab.rivals.itransformer import ITransformer, ITransformerConfig
from ibforecast_lab.rivals.olinear import OLinear, OLinearConfig
from ibforecast_lab.rivals.patchdecomp import PatchDecomp, PatchDecompConfig
from ibforecast_lab.rivals.patchtst import PatchTST, PatchTSTConfig
from ibforecast_lab.rivals.pretrained import Pretrained, PretrainedConfig
from ibforecast_lab.rivals.protots import ProtoTS, ProtoTSConfig
from ibforecast_lab.rivals.ridge import Ridge, RidgeConfig
from ibforecast_lab.rivals.seasonal_naive import SeasonalNaive, SeasonalNaiveConfig
from ibforecast_lab.rivals.tft import TFT, TFTConfig
from ibforecast_lab.rivals.timeemb import TimeEmb, TimeEmbConfig
from ibforecast_lab.rivals.timesnet import TimesNet, TimesNetConfig
from ibforecast_lab.rivals.timexer import TimeXer, TimeXerConfig
from ibforecast_lab.rivals.tqnet import TQNet, TQNetConfig
from ibforecast_lab.rivals.trees import Trees, TreesConfig

FITTED = {
    "seasonal-naive": (SeasonalNaiveConfig, SeasonalNaive),
    "ridge": (RidgeConfig, Ridge),
    "lightgbm": (TreesConfig, Trees),
    "pretrained": (PretrainedConfig, Pretrained),
}
"""The forecasters that are fitted at once or were trained elsewhere: without weights to train here."""

BOOK = Book(
    packages=(*OWN.packages, "ibforecast_lab.recipes"),
    forecasters={
        **OWN.forecasters,
        "ibforecast-factors": (FactorConfig, FactorForecast),
        "dlinear": (DLinearConfig, DLinear),
        "patchdecomp": (PatchDecompConfig, PatchDecomp),
        "tft": (TFTConfig, TFT),
        "protots": (ProtoTSConfig, ProtoTS),
        "tqnet": (TQNetConfig, TQNet),
        "cyclenet": (CycleNetConfig, CycleNet),
        "itransformer": (ITransformerConfig, ITransformer),
        "patchtst": (PatchTSTConfig, PatchTST),
        "timesnet": (TimesNetConfig, TimesNet),
        "olinear": (OLinearConfig, OLinear),
        "timeemb": (TimeEmbConfig, TimeEmb),
        "timexer": (TimeXerConfig, TimeXer),
        **FITTED,
    },
)


def names() -> list[str]:
    """Return the names of all recipes, sorted."""
    return BOOK.names


def resolve(name: str, sizes: Sizes, data: str | None = None, **overrides: Any) -> Recipe:
    """Resolve a recipe of either package for a table of these sizes; see `ibforecast.zoo.recipes.resolve`."""
    return resolve_from(name, sizes, data, book=BOOK, **overrides)
