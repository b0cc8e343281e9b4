"""Heat maps: the labels of their columns."""

from itertools import pairwise

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ibforecast.plots.heat import ticks_of


def test_labels_of_columns_do_not_overlap_even_if_one_is_long() -> None:
    for count in (1, 5, 20, 41):
        columns = (*map(str, range(90, 90 - count, -1)), "known ahead, limit")
        ticks = ticks_of(columns)
        assert ticks[0] == len(columns) - 1
        assert len(ticks) > min(count // 3, 5)
        drawing = Figure(figsize=(7.0, 2.0), layout="constrained")
        canvas = FigureCanvasAgg(drawing)
        axes = drawing.subplots()
        image = axes.imshow([range(len(columns))] * 3, aspect="auto")
        axes.set_yticks(range(3), ["a name that is long enough"] * 3, fontsize=7)
        labels = axes.set_xticks(ticks, [columns[tick] for tick in ticks], fontsize=7) and axes.get_xticklabels()
        drawing.colorbar(image, fraction=0.03, pad=0.02)
        canvas.draw()
        boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.x0)
        assert all(one.x1 < other.x0 for one, other in pairwise(boxes))
