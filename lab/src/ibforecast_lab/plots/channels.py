"""How a training step grows with the channels: its time and its memory, beside growth in proportion."""

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
    """One device: what was measured at so many channels, in words too, and what growth in proportion would give."""

    device: str
    channels: Sequence[int]
    measured: Sequence[float]
    told: Sequence[str]
    proportional: Sequence[float]


def draw(time: Sequence[Growth], memory: Sequence[Growth], form: Form) -> bytes:
    """Draw both on logarithmic axes; without memory, which a GPU alone tells, that panel says so."""
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
    below = growth.measured[-1] < growth.proportional[-1]  # the numbers keep clear of the line above or below
    for channels, measured, told in zip(growth.channels, growth.measured, growth.told, strict=True):
        axes.annotate(
            told,
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
