"""Every forecaster by name: a literal table, so that nothing is found by searching."""

from typing import Any, NamedTuple

from ibforecast.baselines.cyclenet import CycleNet, CycleNetConfig
from ibforecast.baselines.dlinear import DLinear, DLinearConfig
from ibforecast.baselines.itransformer import ITransformer, ITransformerConfig
from ibforecast.baselines.patchdecomp import PatchDecomp, PatchDecompConfig
from ibforecast.baselines.patchtst import PatchTST, PatchTSTConfig
from ibforecast.baselines.protots import ProtoTS, ProtoTSConfig
from ibforecast.baselines.tft import TFT, TFTConfig
from ibforecast.baselines.timesnet import TimesNet, TimesNetConfig
from ibforecast.baselines.tqnet import TQNet, TQNetConfig
from ibforecast.core.contracts import Forecaster
from ibforecast.core.errors import UsageError
from ibforecast.model.config import ModelConfig
from ibforecast.model.factors import FactorConfig, FactorForecast
from ibforecast.model.network import IBForecast


class Entry(NamedTuple):
    """A forecaster's configuration and the network built from it."""

    config: type[Any]
    forecaster: type[Forecaster]


FORECASTERS: dict[str, Entry] = {
    "ibforecast": Entry(ModelConfig, IBForecast),
    "ibforecast-factors": Entry(FactorConfig, FactorForecast),
    "dlinear": Entry(DLinearConfig, DLinear),
    "patchdecomp": Entry(PatchDecompConfig, PatchDecomp),
    "tft": Entry(TFTConfig, TFT),
    "protots": Entry(ProtoTSConfig, ProtoTS),
    "tqnet": Entry(TQNetConfig, TQNet),
    "cyclenet": Entry(CycleNetConfig, CycleNet),
    "itransformer": Entry(ITransformerConfig, ITransformer),
    "patchtst": Entry(PatchTSTConfig, PatchTST),
    "timesnet": Entry(TimesNetConfig, TimesNet),
}


def entry(name: str) -> Entry:
    """Look a forecaster up by name."""
    if name not in FORECASTERS:
        raise UsageError(f"forecaster must be one of {', '.join(FORECASTERS)}", repr(name), "correct the recipe")
    return FORECASTERS[name]
