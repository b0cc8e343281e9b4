"""Fleets: a small model for every one of many series, fitted and asked for forecasts side by side."""

from ibforecast.core.workers import Here, Processes, Ray
from ibforecast.fleet.fleet import Fleet, Forecasts
from ibforecast.fleet.work import Outcome

__all__ = ["Fleet", "Forecasts", "Here", "Outcome", "Processes", "Ray"]
