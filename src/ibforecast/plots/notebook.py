"""A model and an explanation as a notebook shows them: plain HTML with a still picture, and no script."""

from collections.abc import Iterator, Mapping
from html import escape

import numpy as np
from jaxtyping import Float64

from ibforecast.core.account import Account, Token
from ibforecast.plots.labels import GREEN, GREY, MANY, VERMILLION, headline, rate_line, shortened, value_ranges
from ibforecast.zoo.saved import FittedModel

WIDTH, NAMES, ROW, AIR = 720, 130, 34, 4
"""The picture's width, the part of it that names take, the height of a row, and the space below one."""

LETTERS = 18
"""As much of a channel's name as fits beside its row."""

Ends = Float64[np.ndarray, " end"]


def explanation_html(account: Account) -> str:
    """Show one forecast and what it read: the gates as a picture, the rest in words."""
    said, read, *rest = account.in_words().splitlines()
    shown = _most_read(account)
    left_out = len(account.channels) - len(shown)
    return _box(
        headline(account),
        f"{escape(said)}<br>{escape(read)}",
        _bar(account),
        _picture(account, shown),
        _legend() + (f" {left_out} more channels are in <code>.plot(…)</code>." if left_out else ""),
        f"<details{'' if left_out else ' open'}><summary>What was read</summary>"
        f"{'<br>'.join(map(escape, rest))}</details>",
        "<small>Shown as it was computed. <code>.verify()</code> computes the forecast again from this alone, and "
        "raises unless every check passes.</small>",
    )


def model_html(fitted: FittedModel) -> str:
    """Show a fitted model: what it reads and forecasts, its budget, and how it came about."""
    config, layout, summary = fitted.config, fitted.layout, fitted.summary
    tokens = config.patches * config.channels
    facts = {
        "reads": f"{config.look_back} steps of {layout.frequency} of {_listed(fitted.channels)}",
        "forecasts": f"{config.horizon} steps of them" + (f", not of {_listed(layout.past)}" if layout.past else ""),
        "known ahead": _listed(layout.future),
        "budget": f"{100 * config.budget:.3g} % of a window: {config.allowance} of {tokens} tokens at most, "
        f"in patches of {config.patch_len}" + (", to be turned in use" if config.gate.any_budget else ""),
        "cycle": " and ".join(map(str, config.cycles)),
        "trained": f"recipe {summary.recipe}, seed {summary.seed}, {summary.windows:,} windows of {summary.rows:,} "
        f"rows; epoch {summary.best_epoch} of {summary.epochs}, {summary.seconds:.3g} s on {summary.device}",
        "validation error": f"{summary.validation_error:.4g} (MSE, standardised)",
        "intervals": f"calibrated on {fitted.calibration.windows:,} windows" if fitted.calibration else "",
        "weights": fitted.weights_sha256[:12],
    }
    return _box("IBForecaster, fitted", _facts(facts))


def settings_html(settings: Mapping[str, str]) -> str:
    """Show a model that is not fitted: its settings, and what to do next."""
    return _box("IBForecaster, not fitted", _facts(settings), "<small><code>.fit(table)</code> comes next.</small>")


def _box(title: str, *parts: str) -> str:
    inside = "".join(f'<div style="margin-top:.4em">{part}</div>' for part in parts)
    return f'<div style="max-width:{WIDTH}px;line-height:1.4"><strong>{escape(title)}</strong>{inside}</div>'


def _facts(facts: Mapping[str, str]) -> str:
    """Lay names and values out as a table; what has no value is left out."""
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


def _most_read(account: Account) -> list[int]:
    """Choose the channels to draw: all of them, or of many those most was read of, in the table's order."""
    by_reading = np.argsort(-account.mask.sum(axis=0), kind="stable")
    return sorted(by_reading[:MANY].tolist())


def _bar(account: Account) -> str:
    """Draw the read rate as a bar, with the budget as a mark on it."""
    read, budget = 100 * account.open_rate, 100 * account.budget
    return (
        f'<svg viewBox="0 0 100 3" width="100%" height="10" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(rate_line(account))}"><rect width="100" height="3" fill="{GREY}" fill-opacity=".25"/>'
        f'<rect width="{read:.2f}" height="3" fill="{GREEN}"/>'
        f'<rect x="{max(budget - 0.3, 0):.2f}" width=".3" height="3" fill="currentColor"/></svg>'
    )


def _picture(account: Account, shown: list[int]) -> str:
    """Draw a row per channel: its values, the patches that were read behind them, and the forecast."""
    height, patches, tokens = len(shown) * (ROW + AIR), len(account.mask), list(account.tokens())
    rows = "".join(
        f'<g transform="translate(0 {number * (ROW + AIR)})">'
        f"{''.join(_row(account, column, tokens[column * patches : (column + 1) * patches]))}</g>"
        for number, column in enumerate(shown)
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" width="100%" role="img" aria-label="{escape(rate_line(account))}" '
        f'font-size="11" fill="currentColor">{rows}</svg>'
    )


def _row(account: Account, column: int, tokens: list[Token]) -> Iterator[str]:
    channel, look_back = account.channels[column], account.look_back
    ends = np.linspace(NAMES, WIDTH, look_back + account.horizon + 1)
    yield f'<text x="0" y="{ROW / 2 + 4}"><title>{escape(channel)}</title>{escape(shortened(channel, LETTERS))}</text>'
    yield from (
        _token(token, *ends[[n * account.patch_len, (n + 1) * account.patch_len]]) for n, token in enumerate(tokens)
    )
    yield f'<rect x="{ends[look_back]:.1f}" width="1" height="{ROW}" fill="{GREY}"/>'
    places, (low, high) = (ends[:-1] + ends[1:]) / 2, value_ranges(account)[column]
    heights = ROW * (1 - (np.concatenate([account.history, account.forecast])[:, column] - low) / (high - low))
    if account.truth is not None:
        truth = ROW * (1 - (account.truth[:, column] - low) / (high - low))
        yield _line(places[look_back:], truth, "currentColor")
    yield _line(places[:look_back], heights[:look_back], "currentColor")
    yield _line(places[look_back:], heights[look_back:], VERMILLION, width=1.6)


def _token(token: Token, first: float, last: float) -> str:
    state, paint = ("open", GREEN) if token.open else ("missing", GREY) if token.missing else ("closed", "none")
    told = f"{token.channel}, {token.start} to {token.end}: {state}, probability {token.probability:.2f}"
    return (
        f'<rect class="{state}" x="{first:.1f}" width="{last - first:.1f}" height="{ROW}" fill="{paint}" '
        f'fill-opacity=".3" stroke="{GREY}" stroke-opacity=".25" pointer-events="all">'
        f"<title>{escape(told)}</title></rect>"
    )


def _line(places: Ends, heights: Ends, colour: str, width: float = 1.1) -> str:
    """Join what is known; a gap breaks the line."""
    path, pen = [], "M"
    for place, height in zip(places, heights, strict=True):
        if np.isfinite(height):
            path.append(f"{pen}{place:.1f} {height:.1f}")
        pen = "L" if np.isfinite(height) else "M"
    return f'<path d="{"".join(path)}" fill="none" stroke="{colour}" stroke-width="{width}" pointer-events="none"/>'


def _legend() -> str:
    swatches = ((GREEN, "read"), (GREY, "missing"))
    told = " ".join(f'<span style="background:{colour}4d">&emsp;</span> {name}' for colour, name in swatches)
    return f'<small>{told} <span style="color:{VERMILLION}">━</span> forecast; unshaded patches were not read.</small>'
