"""Reports: the explorer with one or several verified explanations in one file that needs no server."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ibforecast._version import __version__
from ibforecast.core import document, reading
from ibforecast.core.errors import DataError, UsageError, VerificationError, require
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.verdict import Check, Verification
from ibforecast.core.verification import refuted
from ibforecast.data.tables import Table
from ibforecast.drivers import drivers as drivers_over
from ibforecast.forecaster import IBForecaster
from ibforecast.plots.labels import MANY
from ibforecast.plots.page import DATA_BEGINS, moment, page

MADE = {
    "on": r"2\d{3}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]) ([01]\d|2[0-3]):[0-5]\d UTC",
    "version": r"\d{1,4}(\.\d{1,4}){1,3}((a|b|rc|\.dev|\.post)\d{1,4})?",
}
"""The form of what a page states about how it was made, which nothing can confirm."""

WINDOWS = 24
"""Windows behind the drivers of a report. Eight channels of which 150 values are read take 3 to 4 s."""


def to_html(
    model: IBForecaster,
    table: Any,
    moments: Sequence[Any],
    name: str,
    title: str,
    budget: float | None = None,
    future: Any = None,
    drivers: int | None = None,
    made: Mapping[str, str] | None = None,
) -> bytes:
    """Explain a table at every moment (None: its end), verify each explanation, and return the page with them all.

    Each forecast is compared with the one before it in the report, the first one with that of the day before if the
    table has enough rows. `drivers` is the number of windows over which the page shows what moves each channel. It is
    WINDOWS by default, or 0 if more than MANY channels are forecast, because that would take much longer than all the
    rest. On the page, `name` is the name of the model, `title` that of the table, and `made` the date and version.
    `future` is that of `IBForecaster.explain`. Raises VerificationError unless every check passes.
    """
    if not moments:
        raise UsageError("a report must have at least one moment", "none", "give the last moment to be read")
    source = model.open(table, future)
    unique = {one.at: one for one in (model.explain(source, at, budget=budget) for at in moments)}
    explanations = [one for _, one in sorted(unique.items())]
    first_before = _day_before(model, source, explanations[0], budget)
    fitted, config = model.fitted, model.fitted.config
    content = {
        "made": made or {"on": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", "version": __version__},
        "model": {
            "name": name,
            "horizon": config.horizon,
            "channels": fitted.channels,
            "budget": config.budget,
            "any_budget": config.gate.any_budget,
            "patches": config.patches,
            "patch_len": config.patch_len,
            "past": fitted.layout.past,
        },
        "table": {"id": "report", "name": title, "kind": "report", "channels": fitted.channels},
        "moments": [
            moment(one, one.verify(source).checks, other=before)
            for one, before in zip(explanations, [first_before, *explanations], strict=False)
        ],
        "drivers": _drivers(model, source, drivers),
    }
    return page(content)


def verify_html(model: IBForecaster, report: bytes, table: Any, future: Any = None) -> Verification:
    """Check that a report is, to the last byte, the one that a model writes about a table.

    A report is made again from its moments, so every number, line and word on the page is compared, and its script.
    Only the stated date, version, and names of model and table are taken from it, and the verdict names them. No
    difference is tolerated, not even of rounding on another machine.
    """
    content = _content(report)
    try:
        documents = [ExplainedForecast.from_json(one["document"]) for one in content["moments"]]
        budget = documents[0].budget if model.fitted.config.gate.any_budget else None
        windows = 0 if content["drivers"] is None else reading.whole_number(content["drivers"]["windows"], "windows")
        names = [reading.text(content[part]["name"], f"{part}.name") for part in ("model", "table")]
        made = {name: reading.text(content["made"][name], f"made.{name}") for name in MADE}
    except (KeyError, IndexError, TypeError) as error:
        raise DataError("a report must be complete", str(error)[:200], "give one that `report` wrote") from error
    except VerificationError as error:
        return refuted(error)
    for name, form in MADE.items():
        if not re.fullmatch(form, made[name]):
            return Verification((Check("report", False, f"made.{name} is {made[name]!r:.80}, which no report states"),))
    moments = [one.at for one in documents]
    again = to_html(model, table, moments, names[0], names[1], budget, future, windows, made)
    same, rebuilt = again == report, _content(again)
    stated = f"model {names[0]!r}, table {names[1]!r}, made on {made['on']} with version {made['version']}"
    detail = f"every byte is what this model writes about this table; what it calls itself is not checked: {stated}"
    if not same:
        parts = [name for name in rebuilt if rebuilt[name] != content.get(name)] or ["its script or style"]
        detail = (
            f"it differs from what this model writes about this table here, in {', '.join(parts)}; another machine or "
            "version may write other last digits, so verify the JSON that it exports, or write it again"
        )
    return Verification((Check("report", same, detail),))


def _content(report: bytes) -> dict[str, Any]:
    """Return what a report says as data."""
    parts = report.split(DATA_BEGINS, 1)
    if len(parts) < 2:
        raise DataError("a report must contain its data", "a page without", "give one that `report` wrote")
    content = document.parse(parts[1].split(b"</script>", 1)[0])
    if not isinstance(content, dict):
        raise DataError("a report must contain its data", type(content).__name__, "give one that `report` wrote")
    return content


def _day_before(
    model: IBForecaster, source: Table, explained: ExplainedForecast, budget: float | None
) -> ExplainedForecast | None:
    """Return the explanation of the day before; None if the table does not have its rows."""
    try:
        return model.desk.explain_before(source, explained.at, budget)
    except DataError:
        return None


def _drivers(model: IBForecaster, source: Table, windows: int | None) -> dict[str, Any] | None:
    """Return what moves the channels that a report itemises, over a table and in its events; None without windows."""
    forecast = [name for name in model.fitted.channels if name not in model.fitted.layout.past]
    if windows is None:
        windows = WINDOWS if len(forecast) <= MANY else 0
    require(windows >= 0, "drivers must be a number of windows", windows, "give 0 to leave them out")
    if not windows:
        return None
    averaged = drivers_over(model.desk, source, "all", windows, forecast[:MANY])
    return averaged.document(averaged.by("event") if averaged.windows > 1 else None)
