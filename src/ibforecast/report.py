"""Reports: the explorer with one or several verified explanations in one file that needs no server."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ibforecast._version import __version__
from ibforecast.core.errors import UsageError
from ibforecast.forecaster import IBForecaster
from ibforecast.plots.page import moment, page


def to_html(
    model: IBForecaster,
    table: Any,
    moments: Sequence[Any],
    name: str,
    title: str,
    budget: float | None = None,
    future: Any = None,
) -> bytes:
    """Explain a table at every moment (None: its end), verify each explanation, and return the page with them all.

    `name` is the name of the model on the page, `title` that of the table; `future` is that of `IBForecaster.explain`.
    Raises VerificationError unless every check passes.
    """
    if not moments:
        raise UsageError("a report must have at least one moment", "none", "give the last moment to be read")
    source = model.open(table, future)
    explanations = {one.at: one for one in (model.explain(source, at, budget=budget) for at in moments)}
    fitted, config = model.fitted, model.fitted.config
    content = {
        "made": {"on": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", "version": __version__},
        "model": {
            "name": name,
            "horizon": config.horizon,
            "channels": fitted.channels,
            "budget": config.budget,
            "any_budget": config.gate.any_budget,
        },
        "table": {"id": "report", "name": title, "kind": "report", "channels": fitted.channels},
        "moments": [moment(one, one.verify(source).checks) for _, one in sorted(explanations.items())],
    }
    return page(content)
