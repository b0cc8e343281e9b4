"""What an explanation costs in forward passes, and what it is worth. Paper: Figure "cost", and the text about it."""

from dataclasses import asdict, dataclass
from typing import Literal

from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.published import PublishedNumber, numbers
from ibforecast_lab.experiments.sheet import Sheet
from ibforecast_lab.experiments.tables import fidelity
from ibforecast_lab.experiments.tables.measured import (
    NATIVE,
    NONE,
    NOT_RUN,
    PAPER,
    Group,
    Place,
    by_place,
    groups,
    in_words,
    mean_of,
)

DEVICES = {"cuda": "GPU", "cpu": "CPU"}
SETTING = {"timing": "timing_defaults"}
"""TIMING has its release's settings by this name here; the others cost as many passes."""

COUNTS = {
    "forward_passes": "forward",
    "backward_passes": "backward",
    "forward_backward_passes": "forward and backward",
    "optimisation_steps": "optimisation steps per batch",
}
"""How the paper counts, in words."""

HEADER = [
    *("data", "horizon", "model", "explainer", "device", "forward-equivalents", "forward passes", "backward passes"),
    *("fidelity score", "published forward-equivalents", "published passes"),
]
TITLE = "Cost of an explanation"
NOTE = (
    "Time in forward-equivalents (what comes with the forecast itself costs 1), passes counted per window, and "
    "the fidelity score of the same explainer (mean over seeds). The published times are of a GPU."
)


@dataclass(frozen=True)
class Line:
    """An explainer on one device, mean over seeds; `score` is its fidelity on the same data set and recipe."""

    data: str
    horizon: int | None
    model: str
    explainer: str
    device: str | None
    seeds: int
    forward_equivalents: float | None
    forwards: float | None
    backwards: float | None
    optimisation_steps: float | None
    score: float | None
    source: Literal["ledger", "published"]


def sheet(records: list[Record]) -> Sheet:
    """Every data set of the plan on GPU and CPU; what was not run says so."""
    ours = lines_of(records)
    body: list[list[str]] = []
    for place, here in by_place(PLANS["cost"], ours).items():
        in_print = (SETTING.get(number.model, number.model) for number in numbers("cost") if number.model != PAPER)
        for explainer in dict.fromkeys((NATIVE, *(line.explainer for line in here), *in_print)):
            devices = dict.fromkeys((*DEVICES, *(str(line.device) for line in here)))
            for device in devices:
                found: list[Line | None] = [
                    line for line in here if (line.explainer, line.device) == (explainer, device)
                ]
                body += [_shown(place, explainer, device, line) for line in found or [None]]
    return Sheet(TITLE, [asdict(line) for line in (*ours, *_published_lines())], HEADER, body, NOTE)


def lines_of(records: list[Record]) -> list[Line]:
    """What was measured, with the fidelity of the same explainer where that was measured too."""
    scores = {
        (line.data, line.horizon, line.model, line.budget, line.explainer): line.score
        for group in groups(records, fidelity.STUDY)
        for line in fidelity.lines_of(group)
    }
    return [line for group in groups(records, "cost") for line in _lines(group, scores)]


def _lines(group: Group, scores: dict[tuple[str, int, str, float | None, str], float | None]) -> list[Line]:
    found = []
    for explainer, rows in group.by_explainer("cost").items():
        for device in dict.fromkeys(row["device"] for row in rows):
            here = [row for row in rows if row["device"] == device]
            found.append(
                Line(
                    data=group.data,
                    horizon=group.horizon,
                    model=group.model,
                    explainer=explainer,
                    device=device,
                    seeds=len(here),
                    forward_equivalents=mean_of([row["forward_equivalents"] for row in here]),
                    forwards=mean_of([row["forwards"] for row in here]),
                    backwards=mean_of([row["backwards"] for row in here]),
                    optimisation_steps=None,
                    score=scores.get((group.data, group.horizon, group.model, group.budget, explainer)),
                    source="ledger",
                )
            )
    return found


def _published_lines() -> list[Line]:
    """What the paper tells of explainers, one line per number."""
    return [_published_line(number) for number in numbers("cost") if number.model != PAPER]


def _published_line(number: PublishedNumber) -> Line:
    def value(*metrics: str) -> float | None:
        return number.value if number.metric in metrics else None

    return Line(
        data=number.data,
        horizon=number.horizon,
        model=PAPER,
        explainer=number.model,
        device="cuda" if number.metric == "forward_equivalents" else None,
        seeds=0,
        forward_equivalents=value("forward_equivalents"),
        forwards=value("forward_passes", "forward_backward_passes"),
        backwards=value("backward_passes", "forward_backward_passes"),
        optimisation_steps=value("optimisation_steps"),
        score=None,
        source="published",
    )


def _shown(place: Place, explainer: str, device: str, line: Line | None) -> list[str]:
    data, horizon, model = place
    own = [NOT_RUN, NONE, NONE, NONE]
    if line is not None:
        passes = [NONE if count is None else f"{count:g}" for count in (line.forwards, line.backwards)]
        score = NOT_RUN if line.score is None else in_words(line.score)
        own = [NONE if line.forward_equivalents is None else f"{line.forward_equivalents:.2f}", *passes, score]
    printed = [
        number
        for number in numbers("cost")
        if number.data in (data, "any") and SETTING.get(number.model, number.model) == explainer
    ]
    timed = [f"{number.value:g}" for number in printed if number.metric == "forward_equivalents" and device == "cuda"]
    counted = [f"{number.value:g} {COUNTS[number.metric]}" for number in printed if number.metric in COUNTS]
    beside = [" / ".join(timed) or NONE, ", ".join(counted) or NONE]
    return [data, str(horizon), model, explainer, DEVICES.get(device, device), *own, *beside]
