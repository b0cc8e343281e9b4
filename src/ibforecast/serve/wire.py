"""The wire format: questions and answers. An explanation is the document of `explanation.to_json()`."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

VERSION: Literal[1] = 1

Version = Annotated[Literal[1], Field(description="Version of the wire format.")]
ModelName = Annotated[str | None, Field(description="Name of a loaded model; may be left out if only one is loaded.")]
Explanation = Annotated[
    dict[str, Any] | str,
    Field(description="The document of /explain, or its text. The text keeps every digit, whatever the client."),
]
Moments = Annotated[
    str | list[str] | None,
    Field(description="Last moment to be read, or several, as ISO times; the table's end where left out."),
]
TableData = Annotated[
    dict[str, list[Any]] | list[dict[str, Any]] | str,
    Field(
        description="Columns as lists, or rows as objects, or CSV text (with line breaks), or the id of a table kept "
        "by the service. A null is a missing value.",
        examples=[{"time": ["2024-01-01 00:00", "2024-01-01 01:00"], "load": [812.5, 790.0]}],
    ),
]
Future = Annotated[
    dict[str, list[Any]] | list[dict[str, Any]] | str | None,
    Field(description="What is known ahead after the table's end, as a table, unless the table itself goes on."),
]
Gate = Annotated[int, Field(ge=0, le=1)]


class Question(BaseModel):
    """Anything that is asked; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")

    version: Version = VERSION


class AboutTable(Question):
    """A table and the moments to forecast from."""

    model: ModelName = None
    table: TableData
    future: Future = None
    at: Moments = None
    budget: Annotated[
        float | None, Field(gt=0, le=1, description="Another budget, of a model that was fitted for any.")
    ] = None


class AboutExplanation(Question):
    """An explanation, and the model it is about."""

    model: ModelName = None
    explanation: Explanation


class Claim(AboutExplanation):
    """An explanation to be checked, and the table it is about."""

    table: Annotated[TableData | None, Field(description="Compare history, times and truth with these rows too.")] = (
        None
    )
    future: Future = None
    exact: Annotated[bool, Field(description="Allow no difference, not even in the last digits.")] = False
    key: Annotated[str | None, Field(description="Public key, in PEM, of who must have signed it.")] = None


class Edit(BaseModel):
    """Another content of one token: as deviations, as in the document, or as values in the table's units."""

    model_config = ConfigDict(extra="forbid")

    patch: Annotated[int, Field(ge=0, description="Number of the patch, the oldest being 0.")]
    channel: str
    deviation: list[FiniteFloat] | None = None
    values: list[FiniteFloat] | None = None


class WhatIf(AboutExplanation):
    """An explanation, and what is to be different about it; the context is held."""

    mask: Annotated[list[list[Gate]] | None, Field(description="Patch × channel, 1 for open.")] = None
    evidence: Annotated[list[Edit], Field(description="Tokens with another content.")] = []
    beyond_budget: Annotated[bool, Field(description="Let the mask open more than the budget allows.")] = False


class Reload(Question):
    """Which models to read anew; all where left out."""

    models: list[str] | None = None


class Answer(BaseModel):
    """Anything that is answered."""

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
    """What a model reads, promises, and how it came about."""

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
    gate: str
    prior: float
    recipe: str
    training: dict[str, Any]
    weights_sha256: str
    audit: dict[str, Any] | None


class Models(Answer):
    """The loaded models."""

    models: list[Model]


class Reloaded(Answer):
    """The models that were read anew, and which of them have other weights than before."""

    reloaded: list[str]
    changed: list[str]


class Forecast(BaseModel):
    """What follows a moment: horizon × channel, in the table's units."""

    at: str
    times: list[str]
    channels: list[str]
    values: list[list[float | None]]


class Forecasts(Answer):
    """One forecast per moment, in the order asked."""

    model: str
    forecasts: list[Forecast]


class Explanations(Answer):
    """One document per moment, in the order asked."""

    model: str
    explanations: list[dict[str, Any]]


class Check(BaseModel):
    """One thing that was checked, and what came out."""

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
    """By how much a channel's forecast moved; `in_scales` is the largest shift over the window's scale."""

    channel: str
    mean: float
    mean_absolute: float
    largest: float
    in_scales: float


class Replayed(Answer):
    """The forecast the readout gives to a mask and evidence, the context held.

    `what_if` is true where mask or evidence are not those of the explanation: then this is not the model's own
    explanation of anything. `closed_edits` counts the edits of closed tokens, which move nothing.
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


class Table(BaseModel):
    """A table the service can read from."""

    id: str
    name: str
    kind: Literal["upload", "demo"]
    rows: int
    channels: list[str] | int
    frequency: str
    first: str | None
    last: str | None


class Tables(Answer):
    """The available tables: uploads, and the embedded demo."""

    tables: list[Table]


class Uploaded(Answer):
    """A table that was taken in; `models` tells of each model why it cannot read the table, null where it can."""

    table: Table
    models: dict[str, str | None]


class MomentsOf(Answer):
    """The moments of a table that a model can explain, `step` apart; `unreadable` more lie in gaps between them."""

    model: str
    table: str
    first: str
    last: str
    step: str
    count: int
    unreadable: int
    moments: list[str] | None


class History(Answer):
    """Gates and errors over a table, on evenly spaced windows; errors in standardised units, null without truth."""

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
