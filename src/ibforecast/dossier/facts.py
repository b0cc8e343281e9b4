"""The facts of a dossier: what was fitted, to which data, and what was measured. Each class is one chapter."""

from dataclasses import dataclass
from typing import Literal

from ibforecast.audit import Audit
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.receipt import Receipt
from ibforecast.core.verdict import Verification
from ibforecast.drivers import Drivers

Claim = Literal["sealed", "choosing", "conditional"]
"""Which promise a model makes: docs/promises.md."""

Role = Literal["forecast", "read only", "known ahead"]


@dataclass(frozen=True)
class Use:
    """The purpose of the model, in the words of its owner (empty if not stated), and what it is.

    `anchors` are the naive forecasts that are blended in and `limits` those of its forecasts, each in words.
    """

    purpose: str
    claim: Claim
    additive: bool
    targets: tuple[str, ...]
    past: tuple[str, ...]
    covariates: tuple[str, ...]
    look_back: int
    horizon: int
    frequency: str
    cycles: tuple[int, ...]
    patch_len: int
    budget: float
    any_budget: bool
    allowance: int
    tokens: int
    anchors: tuple[str, ...]
    limits: tuple[str, ...]
    weights_sha256: str


@dataclass(frozen=True)
class PartFacts:
    """The rows of one part of the table; `usable` of its `windows` are those from which the model can forecast."""

    part: str
    rows: int
    first: str
    last: str
    missing: int
    windows: int
    usable: int
    sha256: str


@dataclass(frozen=True)
class ChannelFacts:
    """One column of the table, in its units; `mean` and `spread` are those of the training rows.

    `constant` says whether its training rows have only one value.
    """

    channel: str
    role: Role
    missing: int
    longest_gap: int
    smallest: float
    largest: float
    mean: float
    spread: float
    constant: bool


@dataclass(frozen=True)
class DataFacts:
    """The table and its parts; `sha256` is the fingerprint of names and values."""

    name: str
    sha256: str
    rows: int
    first: str
    last: str
    zone: str | None
    irregular: str
    missing_values: tuple[float | str, ...]
    zero_at: tuple[str, ...]
    parts: tuple[PartFacts, ...]
    channels: tuple[ChannelFacts, ...]

    @property
    def missing(self) -> int:
        """Number of missing values in the channels."""
        return sum(channel.missing for channel in self.channels)


@dataclass(frozen=True)
class Setting:
    """A setting that differs from its default or has none."""

    name: str
    value: str


@dataclass(frozen=True)
class ContestFacts:
    """The validation errors of a sealed and a choosing reader, the margin, the winner, and how an additive one did.

    `additive` is its error as a share of the sealed reader's; None if none took part. `doubt` is why the choosing
    reader could not win, if it was better by the margin.
    """

    sealed: float
    choosing: float
    margin: float
    winner: str
    additive: float | None
    doubt: str = ""


@dataclass(frozen=True)
class TrainingFacts:
    """How the model was trained and selected; `validation_error` is the MSE in standardised units.

    `no_contest` is why the contest of the recipe has no outcome; empty if it has one, or if the recipe has none.
    """

    recipe: str
    recipe_sha256: str
    seed: int
    windows: int
    epochs: int
    best_epoch: int
    validation_error: float
    seconds: float
    device: str
    contest: ContestFacts | None
    settings: tuple[Setting, ...]
    versions: tuple[Setting, ...]
    no_contest: str = ""


@dataclass(frozen=True)
class NaiveErrors:
    """Errors of repeating the last `cycle` steps, in the units of a channel."""

    cycle: int
    mae: float
    rmse: float

    @property
    def name(self) -> str:
        """The values that are repeated."""
        return "last value" if self.cycle == 1 else f"last {self.cycle} steps"


@dataclass(frozen=True)
class ChannelAccuracy:
    """Errors of a channel in its units: of the model, and of every naive forecast."""

    channel: str
    mae: float
    rmse: float
    naive: tuple[NaiveErrors, ...]

    @property
    def best(self) -> tuple[NaiveErrors, NaiveErrors]:
        """The best naive forecast by MAE, and the best by RMSE."""
        return min(self.naive, key=lambda each: each.mae), min(self.naive, key=lambda each: each.rmse)

    @property
    def worse(self) -> tuple[str, ...]:
        """The naive forecasts, and the measures by which the model is worse, such as "the last value (MAE)"."""
        behind = {
            each.name: ["MAE"] * (self.mae > each.mae) + ["RMSE"] * (self.rmse > each.rmse) for each in self.naive
        }
        return tuple(f"the {name} ({' and '.join(measures)})" for name, measures in behind.items() if measures)


@dataclass(frozen=True)
class AccuracyFacts:
    """Errors on `windows` evenly spaced windows of the usable ones; the naive forecasts are those of `evaluate`."""

    split: str
    windows: int
    usable: int
    channels: tuple[ChannelAccuracy, ...]


@dataclass(frozen=True)
class ChannelCoverage:
    """How often the truth of a channel was inside the interval of a level (percent), and the mean width in units."""

    channel: str
    level: float
    covered: float
    width: float


@dataclass(frozen=True)
class CoverageFacts:
    """Coverage of the intervals; `same_windows` says whether they were calibrated on the part that is measured."""

    calibrated_on: int
    since: str
    same_windows: bool
    channels: tuple[ChannelCoverage, ...]


@dataclass(frozen=True)
class Place:
    """A token of a channel, from `newest` to `oldest` steps before the last one, and how often it was read."""

    newest: int
    oldest: int
    share: float


@dataclass(frozen=True)
class ChannelReading:
    """How much of a channel was read: mean number of values, share of all values read, and where."""

    channel: str
    values: float
    share: float
    places: tuple[Place, ...]


@dataclass(frozen=True, eq=False)
class Example:
    """The newest forecast, the receipt of one channel's mean over the horizon, and the checks of both."""

    explained: ExplainedForecast
    receipt: Receipt
    verification: Verification


@dataclass(frozen=True)
class Replay:
    """The names of model and table in commands, and the versions of the software that made the dossier."""

    model: str
    table: str
    versions: tuple[Setting, ...]


@dataclass(frozen=True, eq=False)
class Facts:
    """Everything a dossier is made of, chapter by chapter. The audit has the date."""

    use: Use
    data: DataFacts
    training: TrainingFacts
    accuracy: AccuracyFacts
    coverage: CoverageFacts | None
    reading: tuple[ChannelReading, ...]
    audit: Audit
    drivers: Drivers
    example: Example
    replay: Replay
