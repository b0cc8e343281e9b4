"""Ranks of the explainers under every way to measure fidelity: how much depends on that choice."""

from dataclasses import asdict
from itertools import product
from typing import get_args

from ibforecast.evaluate.fidelity import Aggregate, Gating, Measure, Shift, Space
from ibforecast_lab.experiments.frame import Row, frame, grouped, mean, of_study, seeds, select, summarised, total
from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.sheet import NATIVE, NONE, NOT_RUN, UNDEFINED, Sheet
from ibforecast_lab.experiments.tables.fidelity import STUDY

WAY = ("gating", "space", "shift", "aggregate")
WAYS: list[tuple[Measure, Aggregate]] = [
    (Measure(shift, space, gating), aggregate)
    for gating, space, shift, aggregate in product(*map(get_args, (Gating, Space, Shift, Aggregate)))
]
ORDER = [tuple((asdict(measure) | {"aggregate": aggregate})[name] for name in WAY) for measure, aggregate in WAYS]
MODEL = ("data", "horizon", "model", "budget")
KEYS = (*MODEL, "explainer", *WAY)
FIELDS = {
    "seeds": seeds,
    "score": mean("score"),
    "score_by_window": mean("score_by_window"),
    "left_out": total("left_out"),
}
TITLE = f"Ranks of the explainers under each of the {len(WAYS)} ways to measure fidelity"
NOTE = (
    "In parentheses: the score, mean over seeds, min(comp, 1) less suff. Equal scores share a rank. If the mask is "
    "frozen, the native map has 1 and 0 by construction, which is no evidence."
)


def sheet(records: list[Record]) -> Sheet:
    """Show a line for each data set, model and way to measure, and the range of ranks for each gating."""
    plan = PLANS["fidelity_rankings"]
    rows = rows_of(frame(records))
    explainers = list(dict.fromkeys((NATIVE, *(row["explainer"] for row in rows))))
    header = ["data", "model", *WAY, f"**{NATIVE}**", *explainers[1:]]
    body: list[list[str]] = []
    for data, model in product(dict.fromkeys((*plan.data, *(row["data"] for row in rows))), plan.models):
        here = select(rows, data=data, model=model)
        if here:
            body += [[data, model, *line] for line in _lines(here, explainers)]
        elif data in plan.data:
            body.append([data, model, NOT_RUN, *[NONE] * (len(header) - 3)])
    return Sheet(TITLE, rows, header, body, NOTE, tuple(key for key in KEYS if key != "budget"))


def rows_of(tidy: list[Row]) -> list[Row]:
    """Return a row for each model, explainer and way to measure, with the rank of its score among the explainers."""
    models = PLANS["fidelity_rankings"].models
    measured = [row for row in select(of_study(tidy, STUDY), measure="fidelity") if row["model"] in models]
    rows: list[Row] = []
    for group in grouped(summarised(measured, KEYS, FIELDS), (*MODEL, *WAY)).values():
        ranks = {name: _ranks([row[name] for row in group]) for name in ("score", "score_by_window")}
        rows += [
            row | {"rank": rank, "rank_by_window": by_window, "source": "ledger"}
            for row, rank, by_window in zip(group, *ranks.values(), strict=True)
        ]
    return sorted(
        rows,
        key=lambda row: (
            row["data"],
            models.index(row["model"]),
            ORDER.index(tuple(row[name] for name in WAY)),
            row["explainer"] != NATIVE,
        ),
    )


def _ranks(scores: list[float | None]) -> list[int | None]:
    """Return the ranks, 1 for the best. Scores equal to six digits share a rank; undefined scores have none."""
    known = [None if score is None else round(score, 6) for score in scores]
    return [
        None if score is None else 1 + sum(other is not None and other > score for other in known) for score in known
    ]


def _lines(rows: list[Row], explainers: list[str]) -> list[list[str]]:
    body = []
    for gating in get_args(Gating):
        gated = select(rows, gating=gating)
        for way in (way for way in ORDER if way[0] == gating):
            here = {row["explainer"]: row for row in gated if tuple(row[name] for name in WAY) == way}
            body.append([*way, *(_cell(here.get(name)) for name in explainers)])
        ranges = [_range([row["rank"] for row in select(gated, explainer=name)]) for name in explainers]
        body.append([gating, "all", "all", "all", *ranges])
    return body


def _cell(row: Row | None) -> str:
    if row is None:
        return NONE
    if row["rank"] is None:
        return UNDEFINED
    text = f"{row['rank']} ({row['score']:.3f})"
    return f"**{text}**" if row["explainer"] == NATIVE else text


def _range(ranks: list[int | None]) -> str:
    known = sorted(rank for rank in ranks if rank is not None)
    if not known:
        return UNDEFINED if ranks else NONE
    return f"{known[0]}" if known[0] == known[-1] else f"{known[0]}–{known[-1]}"
