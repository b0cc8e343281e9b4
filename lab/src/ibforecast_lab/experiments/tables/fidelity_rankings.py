"""Which explainer wins under which way of measuring fidelity: what depends on the choice, and what does not."""

from itertools import product
from typing import Any, get_args

from ibforecast.evaluate.fidelity import Aggregate, Gating, Measure, Shift, Space
from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.sheet import Sheet
from ibforecast_lab.experiments.tables.fidelity import STUDY, measured_by, score
from ibforecast_lab.experiments.tables.measured import NATIVE, NONE, NOT_RUN, UNDEFINED, Group, groups, mean_of

WAYS: list[tuple[Measure, Aggregate]] = [
    (Measure(shift, space, gating), aggregate)
    for gating, space, shift, aggregate in product(*map(get_args, (Gating, Space, Shift, Aggregate)))
]
TITLE = f"Ranks of the explainers under each of the {len(WAYS)} ways to measure fidelity"
NOTE = (
    "Beside each rank the score, mean over seeds: min(comp, 1) less suff. Equals share a rank. Where the mask is "
    "frozen the native map has 1 and 0 by construction, which is no evidence."
)


def sheet(records: list[Record]) -> Sheet:
    """A line per data set, model and way to measure, and the range of ranks with gates run again or held."""
    plan = PLANS["fidelity_rankings"]
    planned = [group for group in groups(records, STUDY) if group.model in plan.models]
    measured = sorted(planned, key=lambda group: (group.data, plan.models.index(group.model)))
    rows = [row for group in measured for row in _rows(group)]
    explainers = list(dict.fromkeys((NATIVE, *(row["explainer"] for row in rows))))
    header = ["data", "model", "gating", "space", "shift", "aggregate", f"**{NATIVE}**", *explainers[1:]]
    body: list[list[str]] = []
    for data, model in product(dict.fromkeys((*plan.data, *(group.data for group in measured))), plan.models):
        here = [row for row in rows if (row["data"], row["model"]) == (data, model)]
        if here:
            body += _lines([data, model], here, explainers)
        elif data in plan.data:
            body.append([data, model, NOT_RUN, *[NONE] * (len(header) - 3)])
    return Sheet(TITLE, rows, header, body, NOTE)


def _rows(group: Group) -> list[dict[str, Any]]:
    by_explainer = group.by_explainer("fidelity")
    found = []
    for measure, aggregate in WAYS:
        ways = {name: measured_by(rows, measure, aggregate) for name, rows in by_explainer.items()}
        clipped = {name: mean_of([score(row) for row in rows]) for name, rows in ways.items()}
        strict = {
            name: mean_of([score(row, "clipped_comprehensiveness") for row in rows]) for name, rows in ways.items()
        }
        found += [
            {
                "data": group.data,
                "horizon": group.horizon,
                "model": group.model,
                "budget": group.budget,
                "seeds": group.seeds,
                "explainer": name,
                "gating": measure.gating,
                "space": measure.space,
                "shift": measure.shift,
                "aggregate": aggregate,
                "score": clipped[name],
                "rank": _rank(clipped, name),
                "score_by_window": strict[name],
                "rank_by_window": _rank(strict, name),
                "left_out": sum(row["left_out"] for row in rows),
                "source": "ledger",
            }
            for name, rows in ways.items()
        ]
    return found


def _rank(scores: dict[str, float | None], name: str) -> int | None:
    """1 for the best; equals, to the six digits of a record, share a rank, and what is undefined has none."""
    known = {other: round(score, 6) for other, score in scores.items() if score is not None}
    return 1 + sum(score > known[name] for score in known.values()) if name in known else None


def _lines(place: list[str], rows: list[dict[str, Any]], explainers: list[str]) -> list[list[str]]:
    body = []
    for gating in get_args(Gating):
        held = [row for row in rows if row["gating"] == gating]
        for measure, aggregate in (way for way in WAYS if way[0].gating == gating):
            way = [gating, measure.space, measure.shift, aggregate]
            here = {row["explainer"]: row for row in held if [row["space"], row["shift"], row["aggregate"]] == way[1:]}
            body.append([*place, *way, *(_cell(here.get(name)) for name in explainers)])
        ranges = [_range([row["rank"] for row in held if row["explainer"] == name]) for name in explainers]
        body.append([*place, gating, "all", "all", "all", *ranges])
    return body


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return NONE
    if row["rank"] is None:
        return UNDEFINED
    told = f"{row['rank']} ({row['score']:.3f})"
    return f"**{told}**" if row["explainer"] == NATIVE else told


def _range(ranks: list[int | None]) -> str:
    known = sorted(rank for rank in ranks if rank is not None)
    if not known:
        return UNDEFINED if ranks else NONE
    return f"{known[0]}" if known[0] == known[-1] else f"{known[0]}–{known[-1]}"
