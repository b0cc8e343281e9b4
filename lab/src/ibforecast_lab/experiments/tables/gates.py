"""The open gates: in one window, and over many. Paper: Figures "gatemap" and "gatefreq"."""

from dataclasses import dataclass

from ibforecast_lab.experiments.frame import Row, frame
from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.sheet import NONE, NOT_RUN, Sheet

ONE, MANY = "Gate probabilities of one test window", "How often each gate opens"
"""The titles of the two labels."""

KEYS = ("data", "horizon", "model", "seed", "patch", "channel")


@dataclass(frozen=True)
class Gates:
    """Values of a run's gates, by patch and channel; `mask` marks the open gates of a single window.

    `windows` describes the windows that were measured, `name` the values.
    """

    run: Row
    windows: str
    name: str
    values: list[list[float]]
    mask: list[list[int]] | None = None

    @property
    def model(self) -> str:
        """The recipe."""
        return str(self.run["model"])

    @property
    def where(self) -> str:
        """A description of the windows."""
        return f"{self.windows} of {self.run['data']}, horizon {self.run['horizon']}, seed {self.run['seed']}"

    @property
    def patches(self) -> list[str]:
        """The patches, named by the lags of their first and last steps; -1 is the newest step."""
        look_back, patch_len = self.run["look_back"], self.run["look_back"] // len(self.values)
        return [f"{first} to {first + patch_len - 1}" for first in range(-look_back, 0, patch_len)]

    @property
    def channels(self) -> list[str]:
        """The channels, named by number, because records contain no names."""
        return [f"channel {number}" for number in range(1, len(self.values[0]) + 1)]

    @property
    def tokens(self) -> list[tuple[str, list[tuple[float, int]]]]:
        """The lags of every patch, and for each of its gates the value and whether it is open."""
        closed = [[0] * len(self.channels)] * len(self.patches)
        return [
            (lags, list(zip(values, mask, strict=True)))
            for lags, values, mask in zip(self.patches, self.values, self.mask or closed, strict=True)
        ]


def one_window(records: list[Record]) -> list[Gates]:
    """Return the gates of one test window, for every recipe of the plan that was run."""
    return [
        Gates(row, f"test window {row['window']:,}", "probability", row["probability"], row["mask"])
        for row in _measured(records, "gate_map")
    ]


def many_windows(records: list[Record]) -> list[Gates]:
    """Return how often gates open, for every recipe of the plan that was run."""
    return [
        Gates(row, f"{row['windows']} test windows", "frequency", row["frequency"])
        for row in _measured(records, "gate_frequency")
    ]


def gate_map(records: list[Record]) -> Sheet:
    """Show the probabilities of one window, a line for each recipe and patch, open gates in bold."""
    return _sheet(f"{ONE}; bold: open", "gate_map", one_window(records))


def gate_frequency(records: list[Record]) -> Sheet:
    """Show how often each gate opens over many windows, a line for each recipe and patch."""
    return _sheet(MANY, "gate_frequency", many_windows(records))


def _measured(records: list[Record], label: str) -> list[Row]:
    """Return the measurements of a label's plan: for every recipe, those of the smallest seed."""
    plan = PLANS[label]
    rows = [
        row
        for row in frame(records)
        if (row["measure"], row["study"], row["own_budget"]) == (label, plan.study, True)
        and row["data"] in plan.data
        and row["horizon"] in plan.horizons
    ]
    first = {row["model"]: row for row in sorted(rows, key=lambda row: -row["seed"])}
    return [first[model] for model in plan.models if model in first]


def _sheet(title: str, label: str, measured: list[Gates]) -> Sheet:
    by_model = {gates.model: gates for gates in measured}
    channels = measured[0].channels if measured else []
    body: list[list[str]] = []
    for model in PLANS[label].models:
        absent = [model, NOT_RUN, *[NONE] * len(channels)]
        body += _lines(by_model[model]) if model in by_model else [absent]
    rows = [row for gates in measured for row in _rows(gates)]
    note = " ".join(f"{gates.model}: {gates.where}." for gates in measured)
    return Sheet(title, rows, ["model", "lags", *channels], body, note, KEYS)


def _lines(gates: Gates) -> list[list[str]]:
    return [
        [gates.model, lags, *(f"**{value:.2f}**" if opened else f"{value:.2f}" for value, opened in tokens)]
        for lags, tokens in gates.tokens
    ]


def _rows(gates: Gates) -> list[Row]:
    return [
        {name: gates.run[name] for name in KEYS[:4]}
        | {"patch": patch, "lags": lags, "channel": channel, gates.name: value}
        | ({} if gates.mask is None else {"open": bool(opened)})
        | {"source": "ledger"}
        for patch, (lags, tokens) in enumerate(gates.tokens, 1)
        for channel, (value, opened) in enumerate(tokens, 1)
    ]
