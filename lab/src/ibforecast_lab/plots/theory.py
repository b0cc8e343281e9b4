"""The theorems as pictures: the bits of an explanation, and the least error."""

from collections.abc import Mapping, Sequence

import numpy as np

from ibforecast.plots import labels
from ibforecast.plots.labels import INK
from ibforecast_lab.plots.records import SIZE, finish, paper, rendered
from ibforecast_lab.theory.error_floor import BudgetCurve, RateCurve
from ibforecast_lab.theory.rate_saving import RateSaving


def rate_saving_png(explanations: Mapping[str, RateSaving]) -> bytes:
    """Draw a bar per explanation: the bits that disclosing the context saves, and the bits that are still paid."""
    with paper(0.95 + 0.42 * len(explanations), layout="constrained") as drawing:
        axes = drawing.add_subplot()
        places = np.arange(len(explanations))[::-1]
        savings = list(explanations.values())
        saved = [saving.context_rate for saving in savings]
        paid = [saving.conditional_rate for saving in savings]
        axes.barh(places, saved, 0.55, color=labels.BLUE, alpha=0.45, label="I(C;E), saved by disclosing the context")
        axes.barh(places, paid, 0.55, left=saved, color=labels.GREEN, alpha=0.7, label="I(Δ;E|C), still paid")
        rates = [saving.rate for saving in savings]
        axes.vlines(rates, places - 0.28, places + 0.28, color=labels.BLACK, linewidth=1.6, label="I(X;E)")
        least = [max(saving.least, 0.0) for saving in savings]
        axes.plot(least, places, "D", color=labels.VERMILLION, markersize=4, label="I(C;Y) − ε, the least spent on C")
        axes.set_yticks(places, list(explanations), fontsize=SIZE)
        axes.set_xlim(0, 1.04 * max(rates))
        finish(axes, "bits", "")
        drawing.legend(loc="outside upper left", ncols=2, fontsize=SIZE, frameon=False)
        return rendered(drawing, "png")


def budget_png(curve: BudgetCurve) -> bytes:
    """Draw errors by number of tokens read: every selection, the best one, the newest tokens, and the floor."""
    with paper(3.6, layout="constrained") as drawing:
        axes = drawing.add_subplot()
        axes.plot(
            curve.selections, curve.errors, "_", color=labels.GREY, alpha=0.6, markersize=9, label="one selection"
        )
        axes.plot(curve.budget, curve.newest, ".--", color=labels.GREEN, linewidth=1, label="the newest tokens")
        axes.plot(
            curve.budget, curve.attained, ".-", color=labels.VERMILLION, linewidth=1.4, label="the best selection"
        )
        axes.plot(curve.budget, curve.floor, ":", color=labels.BLUE, linewidth=1.4, label="the theorem's floor")
        axes.set_yscale("log")
        ticks = [tick for tick in (0.5, 1, 2, 5, 10) if tick < 1.3 * curve.errors.max()]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        finish(axes, f"tokens read, of {curve.budget[-1]}", "squared error")
        axes.legend(fontsize=SIZE, frameon=False)
        return rendered(drawing, "png")


def rate_png(curves: Sequence[RateCurve]) -> bytes:
    """Draw the floor by the bits of an explanation, and the errors that noise or cells attain."""
    with paper(3.4, layout="constrained") as drawing:
        axes = drawing.add_subplot()
        for place, curve in enumerate(curves):
            first = place == 0  # one entry in the legend for all curves
            axes.plot(curve.bits, curve.floor, color=labels.BLUE, linewidth=1.2, label="floor" if first else None)
            axes.plot(
                *curve.noisy.T, "o", color=labels.GREEN, markersize=4, label="token with noise on it" if first else None
            )
            axes.plot(
                *curve.quantised.T,
                "s",
                color=labels.VERMILLION,
                markersize=4,
                label="which of 2, 4, 8, 16 cells it lies in" if first else None,
            )
            axes.annotate(
                f"r = {curve.correlation:g}",
                (curve.bits[-1], curve.floor[-1]),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=SIZE,
                color=INK,
            )
        axes.set_ylim(0, 1.03)
        axes.set_xlim(0, 1.1 * curves[0].bits[-1])
        finish(axes, "bits of the token in the explanation, I(Δ;E|C)", "squared error, of 1")
        drawing.legend(loc="outside upper left", ncols=3, fontsize=SIZE, frameon=False)
        return rendered(drawing, "png")
