"""Forecasts that carry their proof."""

from ibforecast._version import __version__

__all__ = ["__version__"]
