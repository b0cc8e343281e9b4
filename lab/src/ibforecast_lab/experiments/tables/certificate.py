"""What closed tokens can do to a forecast: nothing with context and mask held; end to end, so much."""

from dataclasses import asdict, dataclass
from typing import Literal

from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.sheet import Sheet
from ibforecast_lab.experiments.tables.fidelity import STUDY
from ibforecast_lab.experiments.tables.measured import UNDEFINED, Group, groups, mean_of, shown_by_place

HEADER = [
    *("data", "horizon", "model", "seeds", "windows", "bits changed on replay", "bits changed on scramble"),
    *("values compared", "closed points scrambled", "end-to-end sensitivity", "by gates alone", "masks changed"),
    "rate in bits",
]
TITLE = "The certificate, and beside it what is not promised"
NOTE = (
    "Promised: 0 bits of the forecast change, context and mask held, when it is replayed and when every closed "
    "token is scrambled (counts are summed over seeds). Not promised: with closed tokens taken from another "
    "window and everything free to react, forecasts move by the end-to-end share of the all-deleted shift, by "
    "gates alone by the next column, and so many windows change their mask. Rate: bits of the gates per window."
)


@dataclass(frozen=True)
class Line:
    """One recipe on one data set: counts over all seeds, and means over seeds of what is measured end to end."""

    data: str
    horizon: int
    model: str
    budget: float | None
    seeds: int
    windows: int
    replay_bits: int
    scramble_bits: int
    compared: int
    scrambled: int
    sensitivity: float | None
    gates_sensitivity: float | None
    masks_changed: float | None
    rate_bits: float | None
    source: Literal["ledger"] = "ledger"


def sheet(records: list[Record]) -> Sheet:
    """Every data set of the plan, and every other forecaster whose certificate was measured."""
    lines = [_line(group) for group in groups(records, STUDY) if group.measurements("certificate")]
    body = shown_by_place(PLANS["certificate"], lines, _shown, len(HEADER))
    return Sheet(TITLE, [asdict(line) for line in lines], HEADER, body, NOTE)


def _line(group: Group) -> Line:
    held, free, rate = (group.measurements(measure) for measure in ("certificate", "sensitivity", "rate"))
    counts = {
        name: sum(row[name] for row in held)
        for name in ("windows", "replay_bits", "scramble_bits", "compared", "scrambled")
    }
    return Line(
        data=group.data,
        horizon=group.horizon,
        model=group.model,
        budget=group.budget,
        seeds=group.seeds,
        **counts,
        sensitivity=mean_of([row["relative"] for row in free]),
        gates_sensitivity=mean_of([row["gates_relative"] for row in free]),
        masks_changed=mean_of([row["masks_changed"] for row in free]),
        rate_bits=mean_of([row["bits"] for row in rate]),
    )


def _shown(line: Line) -> list[str]:
    counts = (line.windows, line.replay_bits, line.scramble_bits, line.compared, line.scrambled)
    shares = (line.sensitivity, line.gates_sensitivity, line.masks_changed)
    return [
        *(line.data, str(line.horizon), line.model, str(line.seeds)),
        *(f"{count:,}" for count in counts),
        *(UNDEFINED if share is None else f"{share:.2%}" for share in shares),
        UNDEFINED if line.rate_bits is None else f"{line.rate_bits:.1f}",
    ]
