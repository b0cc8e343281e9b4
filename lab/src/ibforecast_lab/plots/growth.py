"""How the cost grows with the size of a table, on logarithmic axes."""

from collections.abc import Mapping

from ibforecast.plots import labels
from ibforecast_lab.plots.records import SIZE, finish, paper, rendered

AXES = {"rows": "rows", "channels": "channels", "look_back": "steps of look-back", "patches": "patches of a channel"}
_COLOURS = (labels.BLUE, labels.VERMILLION, labels.GREEN, labels.BLACK)
_ROOM = 8
"""How many times as high as the largest time an axis reaches, so that the legend hides no line."""


def growth_png(measured: Mapping[str, float]) -> bytes:
    """Draw the processor seconds of each kind of work by size; the fitted exponent is in the legend.

    The names of `measured` are AXIS_WORK_SIZE and AXIS_WORK_exponent, as the benchmark `growth` writes them.
    """
    with paper(6.2, layout="constrained") as drawing:
        for axes, (axis, words) in zip(drawing.subplots(2, 2).flat, AXES.items(), strict=True):
            for (work, times), colour in zip(times_of(measured, axis).items(), _COLOURS, strict=False):
                exponent = measured[f"{axis}_{work}_exponent"]
                label = f"{work.replace('_', ', ')}: {exponent:.2f}"
                axes.plot(*zip(*sorted(times.items()), strict=True), ".-", color=colour, linewidth=1.1, label=label)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_ylim(top=_ROOM * axes.get_ylim()[1])
            axes.tick_params(which="minor", labelleft=False, labelbottom=False)
            finish(axes, words, "processor seconds")
            axes.legend(fontsize=SIZE - 1, frameon=False, loc="upper left", ncols=2)
        return rendered(drawing, "png")


def times_of(measured: Mapping[str, float], axis: str) -> dict[str, dict[int, float]]:
    """Return the seconds by size of each kind of work along one axis."""
    times: dict[str, dict[int, float]] = {}
    for name, seconds in measured.items():
        work, _, size = name.removeprefix(f"{axis}_").rpartition("_")
        if name.startswith(f"{axis}_") and size.isdigit():
            times.setdefault(work, {})[int(size)] = seconds
    return times
