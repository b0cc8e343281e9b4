"""The influence of closed tokens on a forecast: none if context and mask are fixed; measured with nothing held."""

from ibforecast_lab.experiments.frame import RUN, Row, Summary, mean, seeds, select, summarised, total
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.sheet import UNDEFINED, Column, Table, count, placed, places

STUDIES = ("promises", "explanations")
"""The studies that measure a certificate. If a run has both, the first counts."""

KEYS = ("data", "horizon", "model", "budget")
COUNTS = {
    "windows": "windows",
    "replay_bits": "bits changed on replay",
    "scramble_bits": "bits changed on scramble",
    "compared": "values compared",
    "scrambled": "closed points scrambled",
}
SHARES = {
    "sensitivity_squared": "end to end, of the squared shift",
    "sensitivity_root": "end to end, root of it",
    "gates_sensitivity_squared": "by gates only, of the squared shift",
    "gates_sensitivity_root": "by gates only, root of it",
    "masks_changed": "masks changed",
}
UNREAD = {
    "unread_windows": "windows scrambled, nothing held",
    "unread_masks": "masks changed by it",
    "unread_contexts": "contexts changed by it",
    "unread_forecasts": "forecasts changed by it",
    "unread_changed": "windows changed by it",
}


def _unread(field: str) -> Summary:
    """Sum a count over the kinds of scrambling and the seeds; None if any run was not measured in this way."""
    summed = total(field.removeprefix("unread_"), measure="unread")
    return lambda rows: summed(rows) if seeds(select(rows, measure="unread")) == seeds(rows) else None


FIELDS = {
    "seeds": seeds,
    **{name: total(name, measure="certificate") for name in COUNTS},
    "sensitivity_squared": mean("relative", measure="sensitivity"),
    "sensitivity_root": mean("relative_root", measure="sensitivity"),
    "gates_sensitivity_squared": mean("gates_relative", measure="sensitivity"),
    "gates_sensitivity_root": mean("gates_relative_root", measure="sensitivity"),
    "masks_changed": mean("masks_changed", measure="sensitivity"),
    **{name: _unread(name) for name in UNREAD},
    "rate_bits": mean("bits", measure="rate"),
}


def _rows(tidy: list[Row]) -> list[Row]:
    studied = [row for study in STUDIES for row in select(tidy, study=study)]
    counted: dict[tuple[object, ...], str] = {}
    for row in select(studied, measure="certificate"):
        counted.setdefault(_run(row), row["study"])
    return summarised([row for row in studied if counted.get(_run(row)) == row["study"]], KEYS, FIELDS)


def _run(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in RUN)


def _lines(rows: list[Row]) -> list[Row]:
    """Return the planned lines and then all others, without the counts of unread values that were not measured."""
    lines = placed(rows, _places())
    return [{name: value for name, value in line.items() if name not in UNREAD or value is not None} for line in lines]


def _places() -> list[Row]:
    plan = PLANS["certificate"]
    return [place for each in (plan, *plan.also) for place in places(each)]


def _percent(value: float | None) -> str:
    """Format a share; "0%" is exactly zero."""
    return UNDEFINED if value is None else f"{value:.2%}" if value else "0%"


certificate = Table(
    title="The certificate, and what it does not promise",
    keys=("data", "horizon", "model"),
    columns=(
        *(Column(name, name) for name in ("data", "horizon", "model", "seeds")),
        *(Column(name, field, count) for field, name in COUNTS.items()),
        *(Column(name, field, _percent) for field, name in SHARES.items()),
        *(Column(name, field, count) for field, name in UNREAD.items()),
        Column("rate in bits", "rate_bits", lambda bits: UNDEFINED if bits is None else f"{bits:.1f}"),
    ),
    rows=_rows,
    lines=_lines,
    note=(
        "Promised: with context and mask fixed, 0 bits of the forecast change when it is replayed and when every "
        "closed token is scrambled (counts are summed over seeds). Only sealed promises the same with nothing held, "
        "so its shares are exactly 0 (printed as 0%) and no window changes. End to end: with closed tokens taken from "
        "another window and everything free to react, the mean squared shift of a forecast is this share of the mean "
        "squared shift with all tokens deleted; the root of that share compares the shifts themselves. By gates only: "
        "the context is fixed. masks changed: the share of windows with another mask. Windows scrambled, nothing held: "
        "every window once with each kind of replacement of its unread values (noise, NaN, ±1e30, ±infinity, another "
        "window, a mixture, nothing); the next columns count those with another bit in mask, context, forecast, or "
        "anything of these, evidence and probabilities. Rate: bits of the gates per window."
    ),
    missing=("windows", *UNREAD),
)
