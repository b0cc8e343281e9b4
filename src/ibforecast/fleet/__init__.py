"""Fleets: a small model for each of many series, many of them fitted at the same time, or one model for all."""

from ibforecast.core.workers import Here, Processes, Ray
from ibforecast.fleet.fleet import Fleet, Forecasts
from ibforecast.fleet.work import Outcome

__all__ = ["Fleet", "Forecasts", "Here", "Outcome", "Processes", "Ray"]
