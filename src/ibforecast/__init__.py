"""Forecasts that carry their proof.

`IBForecaster` is fitted to a table; `explain` gives an `ExplainedForecast`, and `verify` checks it.
"""

from ibforecast._version import __version__
from ibforecast.core.errors import (
    DataError,
    IBForecastError,
    MissingExtraError,
    ModelFileError,
    UsageError,
    VerificationError,
)
from ibforecast.data.demo import demo_table
from ibforecast.explained import ExplainedForecast, Verification
from ibforecast.forecaster import Evaluation, IBForecaster

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
