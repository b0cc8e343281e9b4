"""A model and an explanation in a notebook: plain HTML with a picture, without scripts."""

from collections.abc import Mapping
from html import escape

from ibforecast.core.explained import ExplainedForecast
from ibforecast.plots.labels import MANY
from ibforecast.plots.scene import scene_of
from ibforecast.plots.svg import to_svg
from ibforecast.zoo.saved import FittedModel

WIDTH = 960
"""The largest width in pixels, which is that of the picture."""


def explanation_html(explained: ExplainedForecast) -> str:
    """Return one forecast and what it read as HTML: the picture, and the rest in words."""
    scene = scene_of(explained)
    title, read, *rest = scene.words.splitlines()
    shown = scene.most_read(MANY)
    left_out = len(scene.channels) - len(shown.channels)
    parts = [
        escape(read),
        to_svg(shown),
        f"{left_out} more channels are in <code>.plot(…)</code>." if left_out else "",
        f"<details{'' if left_out else ' open'}><summary>What was read</summary>"
        f"{'<br>'.join(map(escape, rest))}</details>",
        "<small>Shown as it was computed. <code>.verify()</code> computes the forecast again from only this, and "
        "raises unless every check passes.</small>",
    ]
    return _box(title, *filter(None, parts))


def model_html(fitted: FittedModel) -> str:
    """Return a fitted model as HTML: its input and output, its budget, and how it was trained."""
    config, layout, summary = fitted.config, fitted.layout, fitted.summary
    tokens = config.patches * config.channels
    facts = {
        "reads": f"{config.look_back} steps of {layout.frequency} of {_listed(fitted.channels)}",
        "forecasts": f"{config.horizon} steps of them" + (f", not of {_listed(layout.past)}" if layout.past else ""),
        "known ahead": _listed(layout.future),
        "budget": f"{100 * config.budget:.3g} % of a window: {config.allowance} of {tokens} tokens at most, "
        f"in patches of {config.patch_len}" + (", can be changed after the fit" if config.gate.any_budget else ""),
        "cycle": " and ".join(map(str, config.cycles)),
        "trained": f"recipe {summary.recipe}, seed {summary.seed}, {summary.windows:,} windows of {summary.rows:,} "
        f"rows; epoch {summary.best_epoch} of {summary.epochs}, {summary.seconds:.3g} s on {summary.device}",
        "validation error": f"{summary.validation_error:.4g} (MSE, standardised)",
        "intervals": _intervals(fitted),
        "weights": fitted.weights_sha256[:12],
    }
    return _box("IBForecaster, fitted", _facts(facts))


def _intervals(fitted: FittedModel) -> str:
    calibration = fitted.calibration
    return (calibration.warning or f"calibrated on {calibration.windows:,} windows") if calibration else ""


def settings_html(settings: Mapping[str, str]) -> str:
    """Return a model that is not fitted as HTML: its settings, and the next step."""
    return _box("IBForecaster, not fitted", _facts(settings), "<small><code>.fit(table)</code> comes next.</small>")


def _box(title: str, *parts: str) -> str:
    inside = "".join(f'<div style="margin-top:.4em">{part}</div>' for part in parts)
    return f'<div style="max-width:{WIDTH}px;line-height:1.4"><strong>{escape(title)}</strong>{inside}</div>'


def _facts(facts: Mapping[str, str]) -> str:
    """Return names and values as an HTML table; names without a value are left out."""
    cell = 'style="text-align:left;vertical-align:top;padding:.1em .8em .1em 0"'
    rows = (
        f'<tr><th scope="row" {cell}>{escape(name)}</th><td {cell}>{escape(value)}</td></tr>'
        for name, value in facts.items()
        if value
    )
    return f'<table style="font-size:inherit">{"".join(rows)}</table>'


def _listed(names: tuple[str, ...]) -> str:
    listed = ", ".join(names[:MANY])
    return f"{listed} and {len(names) - MANY} more" if len(names) > MANY else listed
