"""How often the truth lies within its interval, and how wide intervals are for that."""

from dataclasses import asdict, dataclass
from typing import Literal

from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.sheet import Sheet
from ibforecast_lab.experiments.tables.measured import NONE, Group, Measurement, groups, mean_of, shown_by_place

STUDY = "coverage"
HEADER = [
    *("data", "horizon", "model", "seeds", "open rate", "level", "coverage", "worst channel", "width"),
    *("coverage, adaptive", "worst channel, adaptive", "width, adaptive"),
]
TITLE = "Coverage and width of prediction intervals on test windows, mean over seeds"
NOTE = (
    "In percent of all forecast values; the worst channel is the one covered least. Widths in standardised units. "
    "Intervals are calibrated on validation windows, by step and channel; adaptive ones follow, window by window, how "
    "earlier forecasts turned out as far as that was known. Bold: within 2 points of the level."
)
CLOSE = 0.02


@dataclass(frozen=True)
class Line:
    """One recipe on one data set at one level: means over seeds."""

    data: str
    horizon: int
    model: str
    budget: float | None
    seeds: int
    open_rate: float
    level: int
    coverage: float | None
    worst_channel: float | None
    width: float | None
    adaptive_coverage: float | None
    adaptive_worst_channel: float | None
    adaptive_width: float | None
    source: Literal["ledger"] = "ledger"


def sheet(records: list[Record]) -> Sheet:
    """Every data set of the plan, and every other forecaster whose intervals were measured."""
    lines = [line for group in groups(records, STUDY) for line in _lines(group)]
    body = shown_by_place(PLANS["coverage"], lines, _shown, len(HEADER))
    return Sheet(TITLE, [asdict(line) for line in lines], HEADER, body, NOTE)


def _lines(group: Group) -> list[Line]:
    rows = group.measurements("coverage")
    return [_line(group, level, rows) for level in sorted({row["level"] for row in rows})]


def _line(group: Group, level: int, rows: list[Measurement]) -> Line:
    def mean(variant: str, name: str) -> float | None:
        return mean_of([row[name] for row in rows if (row["level"], row["variant"]) == (level, variant)])

    return Line(
        data=group.data,
        horizon=group.horizon,
        model=group.model,
        budget=group.budget,
        seeds=group.seeds,
        open_rate=group.open_rate,
        level=level,
        coverage=mean("plain", "coverage"),
        worst_channel=mean("plain", "worst_channel"),
        width=mean("plain", "width"),
        adaptive_coverage=mean("adaptive", "coverage"),
        adaptive_worst_channel=mean("adaptive", "worst_channel"),
        adaptive_width=mean("adaptive", "width"),
    )


def _shown(line: Line) -> list[str]:
    return [
        *(line.data, str(line.horizon), line.model, str(line.seeds), f"{line.open_rate:.1%}", str(line.level)),
        *_variant(line.level, line.coverage, line.worst_channel, line.width),
        *_variant(line.level, line.adaptive_coverage, line.adaptive_worst_channel, line.adaptive_width),
    ]


def _variant(level: int, coverage: float | None, worst: float | None, width: float | None) -> list[str]:
    if coverage is None or worst is None or width is None:
        return [NONE] * 3
    told = f"{coverage:.1%}"
    close = abs(coverage - level / 100) <= CLOSE
    return [f"**{told}**" if close else told, f"{worst:.1%}", f"{width:.3f}"]
