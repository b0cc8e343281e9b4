"""The fidelity of every run of a recipe by budget, as dots."""

from collections.abc import Mapping, Sequence

from ibforecast.plots import labels
from ibforecast_lab.plots.records import SIZE, finish, paper, rendered

_COLOURS = (labels.VERMILLION, labels.BLUE, labels.GREEN, labels.GREY, labels.BLACK)
_APART = 0.13
"""The distance between the dots of two data sets at one budget."""


def fidelity_png(scores: Mapping[str, Mapping[str, Sequence[float]]], bar: float = 0.9) -> bytes:
    """Draw a dot per run at its budget, coloured by data set, and the bar of an audit."""
    data_sets = sorted({place.partition(",")[0] for places in scores.values() for place in places})
    with paper(3.2, layout="constrained") as drawing:
        axes = drawing.add_subplot()
        for number, (name, colour) in enumerate(zip(data_sets, _COLOURS, strict=False)):
            shift = _APART * (number - (len(data_sets) - 1) / 2)
            dots = [
                (column + shift, score)
                for column, places in enumerate(scores.values())
                for place, runs in places.items()
                if place.partition(",")[0] == name
                for score in runs
            ]
            across, up = zip(*dots, strict=True)
            axes.plot(across, up, "o", color=colour, markersize=3.5, alpha=0.75, linewidth=0, label=name)
        axes.axhline(
            bar, color=labels.BLACK, linewidth=0.8, linestyle=(0, (3, 2)), label=f"{bar:g}, the bar of an audit"
        )
        axes.set_xticks(range(len(scores)), [f"{100 * float(budget):g} %" for budget in scores])
        finish(axes, "budget", "fidelity, clipped by window")
        drawing.legend(loc="outside upper left", ncols=6, fontsize=SIZE, frameon=False, columnspacing=1.0)
        return rendered(drawing, "png")
