"""Anchors of models that were trained for a few steps only, which may be all of their forecasts."""

from ibforecast import IBForecaster


def halve_anchor(model: IBForecaster) -> IBForecaster:
    """Return the model with half of each share of its anchor, so that what was read matters in every channel."""
    if (anchor := model.fitted.network.decompose.anchor) is not None:
        anchor.blend *= 0.5
    return model
