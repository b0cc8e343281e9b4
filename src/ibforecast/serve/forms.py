"""The forms of an answer about one window, as bytes: JSON, the page's, a picture or a table."""

from collections.abc import Callable
from dataclasses import replace

from pydantic_core import to_json

from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.writing import nullable
from ibforecast.data.sources import to_csv
from ibforecast.plots.scene import scene_of
from ibforecast.plots.svg import to_svg
from ibforecast.serve import wire
from ibforecast.serve.models import Forecasted


def forecast(own: Forecasted) -> bytes:
    """Return a forecast without its explanation as JSON."""
    answer = wire.Forecast(
        at=own.at, times=list(own.ahead), channels=list(own.facts.channels), values=nullable(own.forecast)
    )
    return answer.model_dump_json().encode()


def _document(explained: ExplainedForecast) -> bytes:
    return explained.to_json().encode()


def _page(explained: ExplainedForecast) -> bytes:
    # Without receipts, which would take longer than all the rest: the page requests them once it is drawn.
    scene = scene_of(replace(explained, host=None))
    return to_json({"document": explained.to_json(), "scene": scene.document()})


def _svg(explained: ExplainedForecast) -> bytes:
    return to_svg(scene_of(explained)).encode()


def _csv(explained: ExplainedForecast) -> bytes:
    return to_csv(explained.to_table())


EXPLANATION: dict[str, Callable[[ExplainedForecast], bytes]] = {
    "answer": _document,
    "document": _document,
    "page": _page,
    "svg": _svg,
    "csv": _csv,
}
"""An explanation in each form, by its name."""
