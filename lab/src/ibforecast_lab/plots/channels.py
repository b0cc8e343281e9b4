"""Time and memory of a training step by number of channels, compared with proportional growth."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ibforecast.plots import labels
from ibforecast.plots.labels import INK
from ibforecast_lab.plots.records import SIZE, Form, finish, paper, rendered, write_title

if TYPE_CHECKING:
    import matplotlib.axes

_STYLES: tuple[dict[str, Any], ...] = (
    {"color": labels.VERMILLION, "marker": "o"},
    {"color": labels.BLUE, "marker": "s"},
    {"color": labels.GREEN, "marker": "^"},
    {"color": labels.BLACK, "marker": "D"},
)


@dataclass(frozen=True)
class Growth:
    """One device: the measurement at each number of channels, its text, and the value under proportional growth."""

    device: str
    channels: Sequence[int]
    measured: Sequence[float]
    texts: Sequence[str]
    proportional: Sequence[float]


def draw(time: Sequence[Growth], memory: Sequence[Growth], form: Form) -> bytes:
    """Draw both on logarithmic axes; if there is no memory, which is measured only on a GPU, its panel says so."""
    devices = list(dict.fromkeys(growth.device for growth in (*time, *memory)))
    with paper(3.1, layout="constrained") as drawing:
        for axes, title, growths in zip(
            drawing.subplots(1, 2), ("time of a training step", "peak memory"), (time, memory), strict=True
        ):
            for growth in growths:
                _draw_growth(axes, growth, _STYLES[devices.index(growth.device) % len(_STYLES)])
            _scale(axes, growths)
            write_title(axes, title)
        handles = [drawing.axes[0].lines[2 * index] for index in range(len(time))]
        names = [growth.device for growth in time]
        reference = drawing.axes[0].lines[1:2]
        drawing.legend(
            handles=[*handles, *reference],
            labels=[*names, "in proportion to the channels"][: len(handles) + len(reference)],
            loc="outside upper left",
            ncols=len(handles) + 1,
            fontsize=SIZE,
            frameon=False,
        )
        return rendered(drawing, form)


def _draw_growth(axes: "matplotlib.axes.Axes", growth: Growth, style: dict[str, Any]) -> None:
    axes.plot(growth.channels, growth.measured, linewidth=1.3, markersize=5, zorder=3, **style)
    axes.plot(growth.channels, growth.proportional, linewidth=1.0, linestyle=(0, (3, 2)), color=labels.GREY, zorder=2)
    below = growth.measured[-1] < growth.proportional[-1]  # write the numbers on the side away from the other line
    for channels, measured, text in zip(growth.channels, growth.measured, growth.texts, strict=True):
        axes.annotate(
            text,
            (channels, measured),
            xytext=(5, -6) if below else (-5, 6),
            textcoords="offset points",
            ha="left" if below else "right",
            va="top" if below else "bottom",
            fontsize=SIZE,
            color=INK,
        )


def _scale(axes: "matplotlib.axes.Axes", growths: Sequence[Growth]) -> None:
    finish(axes, "channels (both axes logarithmic)", "")
    axes.set_yticks([])
    if not growths:
        axes.set_xticks([])
        axes.text(0.5, 0.5, "measured on a GPU only: not run", transform=axes.transAxes, ha="center", fontsize=SIZE)
        return
    axes.set_xscale("log")
    axes.set_yscale("log")
    counts = sorted({count for growth in growths for count in growth.channels})
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.set_yticks([])
    axes.minorticks_off()
    values = [value for growth in growths for value in (*growth.measured, *growth.proportional)]
    axes.set_xlim(counts[0] / 1.7, counts[-1] * 1.8)
    air = 1.2 * (max(values) / min(values)) ** 0.18
    axes.set_ylim(min(values) / air, max(values) * air)
