"""The wire format: requests and answers. An explanation is the document of `explanation.to_json()`."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, GetCoreSchemaHandler, StrictInt
from pydantic_core import CoreSchema

from ibforecast.drivers import By

VERSION: Literal[1] = 1

T = TypeVar("T")


class _FirstError:
    """Ends the validation of a list at its first invalid entry; pydantic's `FailFast` cannot be part of a union."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return {**handler(source), "fail_fast": True}


Many = Annotated[list[T], _FirstError()]
"""A list that may be long: without this, millions of errors would be listed."""

Version = Annotated[Literal[1], Field(description="Version of the wire format.")]
ModelName = Annotated[str | None, Field(description="Name of a loaded model; may be left out if only one is loaded.")]
Explanation = Annotated[
    dict[str, Any] | str,
    Field(description="The document of /explain, or its text. The text keeps every digit with any client."),
]
Moments = Annotated[
    str | Many[str] | None,
    Field(description="Last moment to be read, or several, as ISO times; default: the table's end."),
]
TableData = Annotated[
    dict[str, list[Any]] | Many[dict[str, Any]] | str,
    Field(
        description="Columns as lists, or rows as objects, or CSV text (with line breaks), or the id of a table kept "
        "by the service. A null is a missing value.",
        examples=[{"time": ["2024-01-01 00:00", "2024-01-01 01:00"], "load": [812.5, 790.0]}],
    ),
]
Future = Annotated[
    dict[str, list[Any]] | Many[dict[str, Any]] | str | None,
    Field(
        description="Covariates known after the table's end, as a table; not needed if the table itself contains them."
    ),
]
Budget = Annotated[
    float | None, Field(gt=0, le=1, description="Another budget, for a model that was fitted for any budget.")
]
Gate = Annotated[int, Field(ge=0, le=1)]


class Question(BaseModel):
    """Any request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")

    version: Version = VERSION


class AboutTable(Question):
    """A table and the moments to forecast from."""

    model: ModelName = None
    table: TableData
    future: Future = None
    at: Moments = None
    budget: Budget = None


class AboutExplanation(Question):
    """An explanation, and the model it is about."""

    model: ModelName = None
    explanation: Explanation


class Claim(AboutExplanation):
    """An explanation to be checked, and the table it is about."""

    table: Annotated[TableData | None, Field(description="Also compare history, times and truth with these rows.")] = (
        None
    )
    future: Future = None
    exact: Annotated[bool, Field(description="Allow no difference, not even in the last digits.")] = False
    key: Annotated[str | None, Field(description="Public key, in PEM, of the expected signer.")] = None


class Edit(BaseModel):
    """New content of one token: deviations, as in the document, or values in the table's units."""

    model_config = ConfigDict(extra="forbid")

    patch: Annotated[int, Field(ge=0, description="Number of the patch, the oldest being 0.")]
    channel: str
    deviation: Many[FiniteFloat] | None = None
    values: Many[FiniteFloat] | None = None


class WhatIf(AboutExplanation):
    """An explanation, and what to change in it; the context is held fixed."""

    mask: Annotated[Many[Many[Gate]] | None, Field(description="Patch × channel, 1 for open.")] = None
    evidence: Annotated[Many[Edit], Field(description="Tokens with new content.")] = []
    beyond_budget: Annotated[bool, Field(description="Let the mask open more than the budget allows.")] = False


class Scramble(AboutExplanation):
    """An explanation, and other values for what was not read; nothing is held fixed."""

    values: Annotated[
        Many[Many[FiniteFloat | None]],
        Field(
            description="Look-back × channel, in the table's units; null removes a value. They replace only what was "
            "not read: a value that was read stays, and a missing one stays missing."
        ),
    ]


class ReceiptsOf(Question):
    """An explanation, or a table and a moment, and the channels and steps whose forecasts are to be itemised."""

    model: ModelName = None
    explanation: Annotated[
        dict[str, Any] | str | None, Field(description="The document of /explain, or its text; or else send a table.")
    ] = None
    table: Annotated[TableData | None, Field(description="The table to forecast from, without an explanation.")] = None
    future: Future = None
    at: Annotated[
        str | None, Field(description="Last moment of the table to be read, as an ISO time; default: the table's end.")
    ] = None
    budget: Budget = None
    channel: Annotated[
        str | Many[str] | None, Field(description="A channel that is forecast, or several; default: all of them.")
    ] = None
    step: Annotated[
        StrictInt | Literal["mean", "every"],
        Field(description="A number of steps ahead, from 1; the mean over the horizon; or every step."),
    ] = "mean"


class ComparisonOf(Question):
    """Two explanations, or a table and two moments, and the forecast whose difference is to be itemised."""

    model: ModelName = None
    explanation: Annotated[
        dict[str, Any] | str | None, Field(description="The document of /explain, or its text; or else send a table.")
    ] = None
    other: Annotated[
        dict[str, Any] | str | None, Field(description="The document to compare with, of the same model, or its text.")
    ] = None
    table: Annotated[TableData | None, Field(description="The table to forecast from, without explanations.")] = None
    future: Future = None
    at: Annotated[
        str | None, Field(description="Last moment of the table to be read, as an ISO time; default: the table's end.")
    ] = None
    other_at: Annotated[
        str | None,
        Field(
            description="Last moment read by the forecast to compare with; default: a day before `at`, or one step "
            "before if steps are a day or longer, or counted by row."
        ),
    ] = None
    budget: Budget = None
    channel: Annotated[
        str | None, Field(description="A channel that is forecast; may be left out if there is only one.")
    ] = None
    step: Annotated[
        StrictInt | Literal["mean"], Field(description="A number of steps ahead, from 1; or the mean over the horizon.")
    ] = "mean"


class Reload(Question):
    """The models to read again; by default all."""

    models: Many[str] | None = None


class Answer(BaseModel):
    """Any answer."""

    version: Version = VERSION


class Refusal(Answer):
    """Why a request was refused."""

    error: str
    hint: str | None
    field: str | None


class Health(Answer):
    """Whether the service is up."""

    status: Literal["ok"] = "ok"
    ibforecast: str
    models: list[str]


class Model(BaseModel):
    """The input of a model, its budget, and how it was trained."""

    name: str
    look_back: int
    horizon: int
    patch_len: int
    patches: int
    channels: list[str]
    frequency: str | None
    zone: str | None
    time: str | None
    cycles: list[int]
    past: list[str]
    covariates: list[str]
    budget: float
    allowance: int
    any_budget: bool
    sealed: Annotated[
        bool, Field(description="Whether mask, level, scale and forecast are computed only from what is read.")
    ]
    gate: str
    prior: float
    recipe: str
    training: dict[str, Any]
    weights_sha256: str
    limits: Annotated[
        dict[str, Any] | None,
        Field(description="`low`, `high` and `whole` of each channel, null where there is no limit; null without any."),
    ]
    audit: dict[str, Any] | None


class Models(Answer):
    """The loaded models."""

    models: list[Model]


class Cell(BaseModel):
    """A value to be read: its channel, how many steps before the newest it is, and its time if `at` was sent."""

    channel: str
    steps_back: int
    time: str | None


class Reads(Answer):
    """The values that a forecast of a sealed model needs, oldest first, in addition to covariates known ahead.

    `complete` means that the forecast needs no others. `weights_sha256` names the weights that chose them: an
    explanation from these values has the same.
    """

    model: str
    weights_sha256: str
    at: str | None
    look_back: int
    cells: list[Cell]
    complete: bool


class Reloaded(Answer):
    """The models that were read again, and those of them that changed: their weights, units, limits or layout."""

    reloaded: list[str]
    changed: list[str]


class Forecast(BaseModel):
    """The forecast from a moment: horizon × channel, in the table's units."""

    at: str
    times: list[str]
    channels: list[str]
    values: list[list[float | None]]


class Forecasts(Answer):
    """One forecast per moment, in the order of the request."""

    model: str
    forecasts: list[Forecast]


class Explanations(Answer):
    """One document per moment, in the order of the request."""

    model: str
    explanations: list[dict[str, Any]]


class Part(BaseModel):
    """An entry of a receipt: what it is, of which channel and time, and the amount it adds to the forecast."""

    part: Literal["calendar", "read", "known ahead", "unread", "limit"]
    channel: str
    start: str
    end: str
    amount: float


class Receipt(BaseModel):
    """The amounts that add up to one number of a forecast to the last digit, in the units of its channel.

    `error` is the largest standard error of the amounts of values that were read, null if they are exact.
    """

    channel: str
    step: int | Literal["mean"]
    forecast: float
    error: float | None
    parts: list[Part]
    words: str


class Receipts(Answer):
    """The receipts of one explanation, channel by channel; `sha256` is the fingerprint of its document."""

    model: str
    at: str
    sha256: str
    receipts: list[Receipt]


class Change(BaseModel):
    """An entry of a comparison: its amounts in the other forecast and in this one, and their difference.

    An amount that a forecast does not have is 0.
    """

    kind: Literal["calendar", "re-weighted", "new", "left", "mask", "known ahead", "unread", "limit"]
    channel: str
    start: str
    end: str
    before: float
    after: float
    change: float


class Reason(BaseModel):
    """The sum of the changes of one kind and channel, or of all that are not named, and what they are."""

    change: float
    text: str


class Comparison(Answer):
    """Why a forecast differs from another one of the same model.

    The changes add up to `difference` to the last digit. The `reasons` are their largest sums, rounded to `decimals` so
    that they add up to the difference of the `totals`, the other forecast and this one with as many decimals. `error`
    is the largest standard error of the amounts, null if they are exact. `sha256` and `other_sha256` are fingerprints
    of the two documents.
    """

    model: str
    channel: str
    step: int | Literal["mean"]
    at: str
    other_at: str
    sha256: str
    other_sha256: str
    forecast: float
    other_forecast: float
    difference: float
    error: float | None
    decimals: int
    totals: tuple[float, float]
    reasons: list[Reason]
    words: str
    changes: list[Change]


class Check(BaseModel):
    """One check and its result."""

    name: str
    passed: bool
    detail: str


class Verdict(Answer):
    """Whether an explanation is true; `notes` say what was not checked."""

    model: str
    verified: bool
    checks: list[Check]
    notes: list[str]


class Shift(BaseModel):
    """How far a channel's forecast moved; `in_scales` is the largest shift divided by the window's scale."""

    channel: str
    mean: float
    mean_absolute: float
    largest: float
    in_scales: float


class Replayed(Answer):
    """The forecast of the readout from a mask and evidence, with the context held fixed.

    `what_if` is true if mask or evidence are not those of the explanation: then this is not an explanation by the
    model. `closed_edits` counts the edits of closed tokens, which change nothing.
    """

    model: str
    forecast: list[list[float | None]]
    shift: list[Shift]
    what_if: bool
    note: str
    open_count: int
    open_rate: float
    allowance: int
    within_budget: bool
    closed_edits: int
    same_bits: bool


class Rerun(Answer):
    """The whole model, run again with other values where nothing was read; neither mask nor context are held.

    `changed` names the arrays that differ from those of the model on the window itself, and `same_bits` is true if none
    does. That is so for every sealed model; any other model may read elsewhere or take another level. `replaced` counts
    the values that differ from the window's.
    """

    model: str
    sealed: bool
    forecast: list[list[float | None]]
    shift: list[Shift]
    replaced: int
    changed: list[str]
    same_bits: bool
    note: str


class Table(BaseModel):
    """A table the service can read from."""

    id: str
    name: str
    kind: Literal["opened", "upload", "demo"]
    rows: int
    channels: list[str] | int
    frequency: str
    first: str | None
    last: str | None


class Tables(Answer):
    """The available tables: those that the service was started with, uploads, and the embedded demo."""

    tables: list[Table]


class Uploaded(Answer):
    """A table that is kept; `models` has for each model the reason why it cannot read the table, null if it can."""

    table: Table
    models: dict[str, str | None]


class MomentsOf(Answer):
    """The moments of a table that a model can explain, `step` apart; `unreadable` counts those in gaps between them."""

    model: str
    table: str
    first: str
    last: str
    step: str
    count: int
    unreadable: int
    moments: list[str] | None


class History(Answer):
    """Gates and errors over a table, on evenly spaced windows; errors are in standardised units, null without truth."""

    model: str
    table: str
    windows: int
    available: int
    channels: list[str]
    open_frequency: list[list[float]]
    moments: list[str]
    open_rate: list[float]
    squared_error: list[float | None]
    absolute_error: list[float | None]


class Driver(BaseModel):
    """The amount that a patch of a channel, a covariate known ahead, or unread values add to a channel on average."""

    channel: str
    part: Literal["read", "known ahead", "unread", "limit"]
    source: str
    steps_back: Annotated[
        int | None, Field(description="From the newest step to the last step of the patch; null unless read.")
    ]
    size: Annotated[float, Field(description="Mean of the absolute amounts, in units of the channel.")]
    mean: Annotated[float, Field(description="Mean of the amounts.")]
    share: Annotated[float, Field(description="Size as a share of the sizes of all places of the channel.")]
    read: Annotated[float, Field(description="Share of the windows that read this place.")]


class DriverSource(BaseModel):
    """The amount that one source adds to a channel as a whole, on average."""

    channel: str
    source: str
    size: Annotated[
        float, Field(description="Mean of the absolute value of the sum of its amounts at one step ahead, in units.")
    ]
    share: Annotated[float, Field(description="Size as a share of the sizes of all sources of the channel.")]


class DriverGroup(BaseModel):
    """The amount that one source adds to a channel as a whole, on average over one group of windows."""

    channel: str
    group: str
    source: str
    size: float
    mean: float
    share: float
    windows: int


class Drivers(Answer):
    """The sources that move each channel: the amounts of receipts, averaged over windows of a table."""

    model: str
    table: str
    windows: int
    channels: list[str]
    rows: list[Driver]
    sources: Annotated[list[DriverSource], Field(description="The sources of each channel, the largest first.")]
    by: By | None
    groups: Annotated[list[DriverGroup], Field(description="Every source in every group; empty without `by`.")]
    watch: Annotated[
        dict[str, list[str]],
        Field(description="Of each channel, the sources that vary most between groups, in words; empty without `by`."),
    ]
    words: str
