"""Counters of a service for Prometheus."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SIZES = (1, 2, 4, 8, 16, 32)


class Metrics:
    """Requests, windows, turns and seconds of one service, in its own registry; safe to use from any thread."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own: dict[str, Any] = {"namespace": "ibforecast", "registry": self.registry}
        self._requests = Counter("requests", "Requests answered, by route and status.", ("route", "status"), **own)
        self.in_flight = Gauge("requests_in_flight", "Requests being served.", **own)
        self._windows = Counter("windows", "Windows computed, by model.", ("model",), **own)
        self._turns = Histogram("batch_windows", "Windows a worker took in one turn.", buckets=SIZES, **own)
        self._seconds = Histogram("request_seconds", "Time to answer, by route.", ("route",), buckets=SECONDS, **own)

    def finished(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request; status 499 means that the client disconnected."""
        self._requests.labels(route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def turn(self, model: str, windows: int) -> None:
        """Count the windows that a worker takes in one turn."""
        self._turns.observe(windows)
        self._windows.labels(model).inc(windows)
