"""Where gates open: in one window, and over many. Paper: Figures "gatemap" and "gatefreq"."""

from dataclasses import dataclass
from typing import Any

from ibforecast_lab.experiments.ledger import Cell, Record
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.sheet import Sheet
from ibforecast_lab.experiments.tables.measured import NONE, NOT_RUN

ONE, MANY = "Gate probabilities of one test window", "How often each gate opens"
"""What the two labels show."""


@dataclass(frozen=True)
class Gates:
    """Values of a cell's gates, a list per patch with one per channel; `mask` marks the open ones of a single window.

    `windows` says what was looked at, `name` what the values are.
    """

    cell: Cell
    windows: str
    name: str
    values: list[list[float]]
    mask: list[list[int]] | None = None

    @property
    def where(self) -> str:
        """The windows in words."""
        return f"{self.windows} of {self.cell.data}, horizon {self.cell.horizon}, seed {self.cell.seed}"

    @property
    def patches(self) -> list[str]:
        """Every patch by the lags of its first and last step; -1 is the newest step."""
        patch_len = self.cell.look_back // len(self.values)
        return [f"{first} to {first + patch_len - 1}" for first in range(-self.cell.look_back, 0, patch_len)]

    @property
    def channels(self) -> list[str]:
        """Channels by their number: records hold no names."""
        return [f"channel {number}" for number in range(1, len(self.values[0]) + 1)]


def one_window(records: list[Record]) -> list[Gates]:
    """The gates of one test window, for every recipe of the plan that was run."""
    return [
        Gates(cell, f"test window {row['window']:,}", "probability", row["probability"], row["mask"])
        for cell, row in _measured(records, "gate_map")
    ]


def many_windows(records: list[Record]) -> list[Gates]:
    """How often gates open, for every recipe of the plan that was run."""
    return [
        Gates(cell, f"{row['windows']} test windows", "frequency", row["frequency"])
        for cell, row in _measured(records, "gate_frequency")
    ]


def gate_map(records: list[Record]) -> Sheet:
    """Probabilities of one window, a line per recipe and patch, open gates bold."""
    return _sheet(f"{ONE}; bold: open", "gate_map", one_window(records))


def gate_frequency(records: list[Record]) -> Sheet:
    """How often each gate opens over many windows, a line per recipe and patch."""
    return _sheet(MANY, "gate_frequency", many_windows(records))


def _measured(records: list[Record], label: str) -> list[tuple[Cell, dict[str, Any]]]:
    """A label's measurements in the records of its plan: of every recipe in turn, the first seed there is."""
    plan, found = PLANS[label], dict[str, tuple[Cell, dict[str, Any]]]()
    for record in sorted(records, key=lambda record: record.cell.seed):
        if record.cell in plan.narrowed(seeds=(record.cell.seed,)).cells():
            for row in record.measurements:
                if row["measure"] == label:
                    found.setdefault(record.cell.recipe, (record.cell, row))
    return [found[model] for model in plan.models if model in found]


def _sheet(title: str, label: str, measured: list[Gates]) -> Sheet:
    by_model = {gates.cell.recipe: gates for gates in measured}
    channels = measured[0].channels if measured else []
    body: list[list[str]] = []
    for model in PLANS[label].models:
        absent = [model, NOT_RUN, *[NONE] * len(channels)]
        body += _lines(by_model[model]) if model in by_model else [absent]
    rows = [row for gates in measured for row in _rows(gates)]
    note = " ".join(f"{gates.cell.recipe}: {gates.where}." for gates in measured)
    return Sheet(title, rows, ["model", "lags", *channels], body, note)


def _lines(gates: Gates) -> list[list[str]]:
    return [
        [gates.cell.recipe, lags, *(f"**{value:.2f}**" if opened else f"{value:.2f}" for value, opened in tokens)]
        for lags, tokens in _by_patch(gates)
    ]


def _rows(gates: Gates) -> list[dict[str, Any]]:
    cell = {"data": gates.cell.data, "horizon": gates.cell.horizon, "model": gates.cell.recipe, "seed": gates.cell.seed}
    return [
        cell
        | {"patch": patch, "lags": lags, "channel": channel, gates.name: value}
        | ({} if gates.mask is None else {"open": bool(opened)})
        | {"source": "ledger"}
        for patch, (lags, tokens) in enumerate(_by_patch(gates), 1)
        for channel, (value, opened) in enumerate(tokens, 1)
    ]


def _by_patch(gates: Gates) -> list[tuple[str, list[tuple[float, int]]]]:
    """Every patch's lags, and the value of each of its gates with whether it is open."""
    closed = [[0] * len(gates.channels)] * len(gates.patches)
    return [
        (lags, list(zip(values, mask, strict=True)))
        for lags, values, mask in zip(gates.patches, gates.values, gates.mask or closed, strict=True)
    ]
