"""Where gates open: in one window, and over many. Paper: Figures "gatemap" and "gatefreq"."""

from dataclasses import dataclass
from typing import Any

from ibforecast.experiments.ledger import Cell, Record
from ibforecast.experiments.plans import PLANS
from ibforecast.experiments.sheet import Sheet
from ibforecast.experiments.tables.measured import NOT_RUN


@dataclass(frozen=True)
class Gates:
    """Values of a cell's gates, a list per patch with one per channel; `mask` marks the open ones of a single window.

    `what` says what was looked at, `name` what the values are.
    """

    cell: Cell
    what: str
    name: str
    values: list[list[float]]
    mask: list[list[int]] | None = None

    @property
    def where(self) -> str:
        """The cell in words."""
        return f"{self.cell.data}, {self.cell.recipe}, horizon {self.cell.horizon}, seed {self.cell.seed}"

    @property
    def patches(self) -> list[str]:
        """Every patch by the lags of its first and last step; -1 is the newest step."""
        patch_len = self.cell.look_back // len(self.values)
        return [f"{first} to {first + patch_len - 1}" for first in range(-self.cell.look_back, 0, patch_len)]

    @property
    def channels(self) -> list[str]:
        """Channels by their number: records hold no names."""
        return [f"channel {number}" for number in range(1, len(self.values[0]) + 1)]


def one_window(records: list[Record]) -> Gates | None:
    """The gates of one test window of the plan's cell, or nothing."""
    for cell, row in _measured(records, "gate_map"):
        what = f"Gate probabilities of test window {row['window']:,}"
        return Gates(cell, what, "probability", row["probability"], row["mask"])
    return None


def many_windows(records: list[Record]) -> Gates | None:
    """How often the gates of the plan's cell open, or nothing."""
    for cell, row in _measured(records, "gate_frequency"):
        return Gates(
            cell, f"How often each gate opens, over {row['windows']} test windows", "frequency", row["frequency"]
        )
    return None


def gate_map(records: list[Record]) -> Sheet:
    """Probabilities of one window, a line per patch, open gates bold."""
    gates = one_window(records)
    return _sheet(gates, "; bold: open") if gates else _not_run("Gate probabilities of one test window")


def gate_frequency(records: list[Record]) -> Sheet:
    """How often each gate opens over many windows, a line per patch."""
    gates = many_windows(records)
    return _sheet(gates) if gates else _not_run("How often each gate opens")


def _measured(records: list[Record], label: str) -> list[tuple[Cell, dict[str, Any]]]:
    """A label's measurements in the records of its plan, the first seed first."""
    plan = PLANS[label]
    return [
        (record.cell, row)
        for record in sorted(records, key=lambda record: record.cell.seed)
        if record.cell in plan.narrowed(seeds=(record.cell.seed,)).cells()
        for row in record.measurements
        if row["measure"] == label
    ]


def _sheet(gates: Gates, marked: str = "") -> Sheet:
    rows, body = [], []
    closed = [[0] * len(gates.channels)] * len(gates.patches)
    cell = {"data": gates.cell.data, "horizon": gates.cell.horizon, "model": gates.cell.recipe, "seed": gates.cell.seed}
    for patch, (lags, values, mask) in enumerate(zip(gates.patches, gates.values, gates.mask or closed, strict=True)):
        tokens = list(zip(values, mask, strict=True))
        body.append([lags, *(f"**{value:.2f}**" if opened else f"{value:.2f}" for value, opened in tokens)])
        for channel, (value, opened) in enumerate(tokens):
            place = cell | {"patch": patch + 1, "lags": lags, "channel": channel + 1}
            told = {gates.name: value} | ({} if gates.mask is None else {"open": bool(opened)})
            rows.append(place | told | {"source": "ledger"})
    return Sheet(f"{gates.what}{marked} ({gates.where})", rows, ["lags", *gates.channels], body)


def _not_run(title: str) -> Sheet:
    return Sheet(title, [], ["lags"], [[NOT_RUN]])
