"""The HTML of models and explanations in a notebook: complete, without scripts and without requests."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from tests.core.samples import changed

from ibforecast import ExplainedForecast, IBForecaster
from ibforecast.core.standardiser import Standardiser
from ibforecast.plots.labels import MANY
from ibforecast.plots.notebook import explanation_html

NASTY = "<script>alert('load & \"wind\"')</script>"
LOOK_BACK, HORIZON = 48, 12


def table() -> pd.DataFrame:
    hours, noise = np.arange(300), np.random.default_rng(3).normal(0, 0.3, (300, 2))
    values = np.sin(2 * np.pi * hours / 24)[:, None] + noise
    values[-LOOK_BACK + 2, 1] = np.nan
    when = pd.date_range("2023-01-01", periods=300, freq="h")
    return pd.DataFrame({"time": when, NASTY: values[:, 0], "wind": values[:, 1]})


@pytest.fixture(scope="module")
def model() -> IBForecaster:
    return IBForecaster(HORIZON, LOOK_BACK, 0.25, recipe="any-budget", epochs=1, device="cpu").fit(table())


@pytest.fixture(scope="module")
def explanation(model: IBForecaster) -> ExplainedForecast:
    return model.explain(table())


class Page(HTMLParser):
    """The tags of a piece of HTML, whether they are balanced, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "br":
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_html_runs_and_fetches_nothing_for_any_channel_name(
    model: IBForecaster, explanation: ExplainedForecast
) -> None:
    unfitted = IBForecaster(HORIZON, channels=[NASTY])
    for html in (model._repr_html_(), explanation._repr_html_(), unfitted._repr_html_()):
        page = Page(html)
        assert not {"script", "img", "link", "iframe", "style"} & set(page.tags)
        assert not {"src", "href", "id", "onclick", "onload"} & page.attributes
        assert "alert(" in page.text
        assert "<script" not in html


def test_an_explanation_shows_its_words_and_every_gate(explanation: ExplainedForecast) -> None:
    html = explanation._repr_html_()
    page = Page(html)
    for line in explanation.in_words().splitlines():
        assert line in page.text
    states = re.findall(r'<rect class="(\w+)"', html)
    assert states.count("open") == explanation.open_count
    assert states.count("missing") == int(explanation.missing.sum()) == 1
    assert len(states) == explanation.mask.size
    assert ".verify()" in page.text


def test_gaps_break_the_line_and_no_nan_is_drawn(explanation: ExplainedForecast) -> None:
    html = explanation._repr_html_()
    assert "nan" not in html
    assert any(path.count("M") == 2 for path in re.findall(r'<path class="look-back" d="([^"]+)"', html))


def test_of_many_channels_those_with_the_most_open_tokens_are_drawn(explanation: ExplainedForecast) -> None:
    names = tuple(f"channel {number}" for number in range(20))
    numbers = ("history", "forecast", "level", "scale", "profile", "probability", "missing")
    mask = np.zeros((4, 20), dtype=bool)
    mask[3, -1] = mask[2:, -2] = True
    many = changed(
        explanation,
        host=None,
        channels=names,
        mask=mask,
        evidence=np.zeros((LOOK_BACK, 20), dtype=np.float32),
        units=Standardiser(np.tile(explanation.units.mean, 10), np.tile(explanation.units.std, 10)),
        **{name: np.tile(getattr(explanation, name), 10) for name in numbers},
    )
    html = explanation_html(many)
    drawn = re.findall(r'<g class="channel">\s*<title>(channel \d+)</title>', html)
    assert drawn == [*names[: MANY - 2], *names[-2:]]
    assert f"{20 - MANY} more channels" in html


def test_a_fitted_model_shows_its_inputs_and_training(model: IBForecaster) -> None:
    text = Page(model._repr_html_()).text
    for shown in (
        NASTY,
        "wind",
        "48 steps of 1h",
        "25 % of a window",
        "recipe any-budget",
        model.fitted.weights_sha256[:12],
    ):
        assert shown in text


def test_an_unfitted_model_shows_its_settings_and_the_next_step() -> None:
    text = Page(IBForecaster(24, zone="Europe/Berlin", past=["wind"])._repr_html_()).text
    assert "not fitted" in text
    assert ".fit(table)" in text
    assert "Europe/Berlin" in text
    assert "irregular" not in text


def test_the_repr_of_an_explanation_is_one_line(explanation: ExplainedForecast) -> None:
    assert re.fullmatch(
        r"ExplainedForecast\(at='2023-01-13 11:00', horizon=12, channels=2; read \d of 8 tokens: .+ \(budget 25 %\)\)",
        repr(explanation),
    )
