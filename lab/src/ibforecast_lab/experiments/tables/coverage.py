"""How often the truth is within its interval, and how wide the intervals are."""

from ibforecast_lab.experiments.frame import Row, mean, seeds, select, summarised
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.sheet import Column, Table, marked, number, placed, places, share

KEYS = ("data", "horizon", "model", "budget", "level")
MEASURES = ("coverage", "worst_channel", "width")
CLOSE = 0.02
FIELDS = {
    "seeds": seeds,
    "open_rate": mean("open_rate"),
    **{name: mean(name, variant="plain") for name in MEASURES},
    **{f"adaptive_{name}": mean(name, variant="adaptive") for name in MEASURES},
}


def _lines(rows: list[Row]) -> list[Row]:
    return [
        marked(line, **{name: "**{}**" for name in ("coverage", "adaptive_coverage") if _close(line, name)})
        for line in placed(rows, places(PLANS["coverage"]))
    ]


def _close(line: Row, name: str) -> bool:
    return line.get(name) is not None and abs(line[name] - line["level"] / 100) <= CLOSE


coverage = Table(
    title="Coverage and width of prediction intervals on test windows, mean over seeds",
    keys=("data", "horizon", "model", "level"),
    columns=(
        *(Column(name, name) for name in ("data", "horizon", "model", "seeds")),
        Column("open rate", "open_rate", share),
        Column("level", "level"),
        Column("coverage", "coverage", share),
        Column("worst channel", "worst_channel", share),
        Column("width", "width", number),
        Column("coverage, adaptive", "adaptive_coverage", share),
        Column("worst channel, adaptive", "adaptive_worst_channel", share),
        Column("width, adaptive", "adaptive_width", number),
    ),
    rows=lambda tidy: summarised(select(tidy, study="coverage", measure="coverage"), KEYS, FIELDS),
    lines=_lines,
    note=(
        "Coverage is in percent of all forecast values; the worst channel has the lowest. Widths are in standardised "
        "units. Intervals are calibrated on validation windows, by step and channel; adaptive ones also use, for each "
        "window, the errors of earlier forecasts known by then. Bold: within 2 points of the level."
    ),
    missing=("coverage",),
)
