"""Counters of a service, as Prometheus reads them."""

from collections import Counter
from collections.abc import Iterator
from threading import Lock

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
NAMESPACE = "ibforecast"


class Histogram:
    """How often a value fell below each bound."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds, self.counts, self.total, self.count = bounds, [0] * len(bounds), 0.0, 0

    def add(self, value: float) -> None:
        """Count a value."""
        self.total, self.count = self.total + value, self.count + 1
        for place, bound in enumerate(self.bounds):
            self.counts[place] += value <= bound

    def lines(self, name: str, labels: str = "") -> Iterator[str]:
        """Render in the text format."""
        more = f"{labels}," if labels else ""
        for bound, count in zip(self.bounds, self.counts, strict=True):
            yield f'{name}_bucket{{{more}le="{bound:g}"}} {count}'
        yield f'{name}_bucket{{{more}le="+Inf"}} {self.count}'
        wrapped = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{wrapped} {self.total:.9g}"
        yield f"{name}_count{wrapped} {self.count}"


class Metrics:
    """Requests, windows, turns and seconds; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._windows: Counter[str] = Counter()
        self._seconds: dict[str, Histogram] = {}
        self._turns = Histogram(SIZES)
        self.in_flight = 0

    def finished(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered; 499 is one whose client went away."""
        with self._lock:
            self._requests[route, status] += 1
            self._seconds.setdefault(route, Histogram(SECONDS)).add(seconds)

    def turn(self, model: str, windows: int) -> None:
        """Count the windows a worker takes in one turn."""
        with self._lock:
            self._turns.add(float(windows))
            self._windows[model] += windows

    def windows(self, model: str) -> int:
        """Number of windows computed with a model."""
        with self._lock:
            return self._windows[model]

    def text(self) -> str:
        """Render everything in the text format."""
        with self._lock:
            return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield from _head("requests_total", "counter", "Requests answered, by route and status.")
        for (route, status), count in sorted(self._requests.items()):
            yield f'{NAMESPACE}_requests_total{{route="{_escaped(route)}",status="{status}"}} {count}'
        yield from _head("requests_in_flight", "gauge", "Requests at work.")
        yield f"{NAMESPACE}_requests_in_flight {self.in_flight}"
        yield from _head("windows_total", "counter", "Windows computed, by model.")
        for model, count in sorted(self._windows.items()):
            yield f'{NAMESPACE}_windows_total{{model="{_escaped(model)}"}} {count}'
        yield from _head("batch_windows", "histogram", "Windows a worker took in one turn.")
        yield from self._turns.lines(f"{NAMESPACE}_batch_windows")
        yield from _head("request_seconds", "histogram", "Time to answer, by route.")
        for route, histogram in sorted(self._seconds.items()):
            yield from histogram.lines(f"{NAMESPACE}_request_seconds", f'route="{_escaped(route)}"')


def _head(name: str, kind: str, told: str) -> Iterator[str]:
    yield f"# HELP {NAMESPACE}_{name} {told}"
    yield f"# TYPE {NAMESPACE}_{name} {kind}"


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
