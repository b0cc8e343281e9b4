"""Forecasts with verifiable explanations.

`IBForecaster` is fitted to a table; `explain` returns an `ExplainedForecast`, and `verify` checks it.
"""

import importlib as _importlib
import typing as _typing

from ibforecast._version import __version__
from ibforecast.core.errors import (
    DataError,
    IBForecastError,
    MissingExtraError,
    ModelFileError,
    UsageError,
    VerificationError,
)

if _typing.TYPE_CHECKING:
    from ibforecast.core.explained import ExplainedForecast
    from ibforecast.core.verdict import Verification
    from ibforecast.data.demo import demo_table
    from ibforecast.forecaster import IBForecaster
    from ibforecast.use import Evaluation

__all__ = [
    "DataError",
    "Evaluation",
    "ExplainedForecast",
    "IBForecastError",
    "IBForecaster",
    "MissingExtraError",
    "ModelFileError",
    "UsageError",
    "Verification",
    "VerificationError",
    "__version__",
    "demo_table",
]

_HOMES = {
    "Evaluation": "ibforecast.use",
    "ExplainedForecast": "ibforecast.core.explained",
    "IBForecaster": "ibforecast.forecaster",
    "Verification": "ibforecast.core.verdict",
    "demo_table": "ibforecast.data.demo",
}
"""Names that are imported on first use, so that code that needs no PyTorch does not wait for it."""


def __getattr__(name: str) -> _typing.Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ibforecast' has no attribute {name!r}")
    return globals().setdefault(name, getattr(_importlib.import_module(_HOMES[name]), name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
