"""The routes of the service, and its responses to errors."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from ibforecast._version import __version__
from ibforecast.drivers import WINDOWS
from ibforecast.drivers import By as DriversBy
from ibforecast.plots.page import EXPLORER
from ibforecast.serve import wire
from ibforecast.serve.arrow import STREAM, is_stream
from ibforecast.serve.bodies import refusal
from ibforecast.serve.guard import FAILURE, Guard, response_to
from ibforecast.serve.refusals import Refused
from ibforecast.serve.service import Service

WITHOUT_TOKEN = ("/health", "/openapi.json")
DESCRIPTIONS = {
    400: "Not a plain HTTP request.",
    401: "The token is missing or wrong.",
    403: "The request comes from a page of another site.",
    408: "The body did not arrive in time.",
    413: "The request or its answer is larger than the service allows.",
    422: "Something in the request breaks a rule.",
    429: "The service is busy.",
    500: "Something went wrong in the service.",
}
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": wire.Refusal, "description": description} for status, description in DESCRIPTIONS.items()
}
ABSENT: dict[int | str, dict[str, Any]] = {404: {"model": wire.Refusal, "description": "No such table."}}
UNKNOWN: dict[int | str, dict[str, Any]] = {404: {"model": wire.Refusal, "description": "No such model."}}
NO_MODEL: dict[int | str, dict[str, Any]] = {409: {"model": wire.Refusal, "description": "A model cannot be read."}}
SEVERAL: dict[int | str, dict[str, Any]] = {409: {"model": wire.Refusal, "description": "Several processes."}}
UPLOAD = {
    "requestBody": {
        "required": True,
        "description": "The file itself.",
        "content": {
            kind: {"schema": {"type": "string", "format": "binary"}}
            for kind in ("text/csv", "application/gzip", "application/vnd.apache.parquet", "application/octet-stream")
        },
    }
}

SCHEMAS = "#/components/schemas/{model}"
BODIES: tuple[type[wire.Question], ...] = (
    wire.Reload,
    wire.AboutTable,
    wire.Claim,
    wire.ReceiptsOf,
    wire.ComparisonOf,
    wire.WhatIf,
    wire.Scramble,
)
"""The bodies of requests, for /openapi.json."""

ModelName = Annotated[str | None, Query(description="Name of a loaded model; may be left out if there is only one.")]
At = Annotated[str | None, Query(description="Moment of the forecast, as an ISO time: the cells then have times.")]
FileName = Annotated[str, Query(description="Name of the table.", max_length=200)]
Listed = Annotated[bool, Query(alias="list", description="Whether to list the moments one by one.")]
Windows = Annotated[int, Query(ge=1, description="Number of windows, evenly spaced.")]
Channel = Annotated[str | None, Query(description="A channel that is forecast; default: all of them.")]
By = Annotated[
    DriversBy | None,
    Query(
        description="Also answer for groups of windows: by the local time at which the forecast was made, or the tenth "
        "of the windows furthest from the calendar (event) and the others."
    ),
]
ReceiptForm = Annotated[
    Literal["answer", "page"],
    Query(description="`page` returns the picture as data, with receipts, and the receipts that the explorer shows."),
]
Form = Annotated[
    Literal["answer", "document", "page", "svg", "csv", "arrow"],
    Query(
        description="`document` returns the explanation itself, byte for byte as the library writes it; `page` returns "
        "its text and its picture as data, `svg` the picture, `csv` one row per token, `arrow` one row per moment, "
        "without the history, as an Arrow stream."
    ),
]
ForecastForm = Annotated[
    Literal["answer", "arrow"], Query(description="`arrow` returns one row per moment, as an Arrow stream.")
]
KINDS = {"svg": "image/svg+xml", "csv": "text/csv", "arrow": STREAM}
"""Media types of the forms that are not JSON."""
PICTURES: dict[int | str, dict[str, Any]] = {200: {"content": {kind: {} for kind in KINDS.values()}}}
STREAMED: dict[int | str, dict[str, Any]] = {200: {"content": {STREAM: {}}}}


Q = TypeVar("Q", bound=wire.Question)


def _body(service: Service, kind: type[Q], strict: bool = False) -> Any:
    """Return the dependency that reads the body of a request off the event loop, on which FastAPI would read it."""

    async def read(request: Request) -> Q:
        return await service.parse(kind, await request.body(), request.headers.get("content-type", ""), strict)

    return Depends(read)


def _table(service: Service) -> Any:
    """Return the dependency that reads a question about a table, which may be an Arrow stream."""

    async def read(request: Request) -> wire.AboutTable:
        kind = request.headers.get("content-type", "")
        return await _about(service, request.query_params, await request.body(), kind)

    return Depends(read)


def _takes(kind: type[wire.Question], required: bool = True) -> dict[str, Any]:
    """Return the description of a body for /openapi.json."""
    content: dict[str, Any] = {"application/json": {"schema": {"$ref": SCHEMAS.format(model=kind.__name__)}}}
    if kind is wire.AboutTable:
        content[STREAM] = {"schema": {"type": "string", "format": "binary"}}
    return {"requestBody": {"required": required, "content": content}}


def create_app(service: Service) -> ASGIApp:
    """Return the ASGI application of a service: its routes, behind the guard."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="ibforecast",
        version=__version__,
        description="Forecasts that carry their proof.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses=REFUSALS,
    )
    _add_handlers(app)
    _add_models(app, service)
    _add_windows(app, service)
    _add_tables(app, service)
    _describe_bodies(app)
    has_page = (EXPLORER / "index.html").is_file()
    if has_page:
        app.mount("/", StaticFiles(directory=EXPLORER, html=True))

    def is_open(path: str) -> bool:
        return path in WITHOUT_TOKEN or (has_page and _is_page(path))

    return Guard(_Lean(app, service), service.settings, service.metrics, is_open)


class _Lean:
    """Answers Arrow with Arrow without the framework, which would take longer than the answer; passes on all else."""

    def __init__(self, app: FastAPI, service: Service) -> None:
        self._app, self._service = app, service
        self._routes = {path: route for route in app.routes if (path := getattr(route, "path", "")) in LEAN}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; the guard turns what is refused into an error."""
        question = _lean(scope)
        if question is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = self._routes[scope["path"]]
        query, kind = question
        about = await _about(self._service, query, (await receive())["body"], kind)
        answer = await self._service.stream(about, LEAN[scope["path"]])
        await Response(answer, media_type=STREAM)(scope, receive, send)


LEAN = {"/forecast": "forecast", "/explain": "explain"}
"""Routes that take and give Arrow, and what they do."""


def _lean(scope: Scope) -> tuple[QueryParams, str] | None:
    """Return query and content type of a request that sends and wants Arrow; None for any other."""
    if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] not in LEAN:
        return None
    kind = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"content-type"), "")
    query = QueryParams(scope["query_string"])
    return (query, kind) if is_stream(kind) and query.getlist("form") == ["arrow"] else None


async def _about(service: Service, query: QueryParams, body: bytes, kind: str) -> wire.AboutTable:
    """Return the question about a table in a body and a query."""
    fields: dict[str, Any] = {name: query[name] for name in ("model", "budget") if name in query}
    if moments := query.getlist("at"):
        fields["at"] = moments if len(moments) > 1 else moments[0]
    return await service.about(body, kind, fields)


def _add_models(app: FastAPI, service: Service) -> None:
    @app.get("/health", response_model=wire.Health)
    async def health() -> Response:
        """Say that the service is up."""
        return _answer(service.health())

    @app.get("/models", response_model=wire.Models)
    async def models() -> Response:
        """Describe each model: its input, its budget, and how it was trained."""
        return _answer(service.cards())

    @app.get("/models/{name}/reads", response_model=wire.Reads, responses=UNKNOWN)
    async def reads(name: str, at: At = None) -> Response:
        """List the values that a forecast of a sealed model needs; a table may contain null everywhere else."""
        return _answer(await service.reads(name, at))

    @app.post(
        "/models/reload",
        response_model=wire.Reloaded,
        responses=NO_MODEL,
        openapi_extra=_takes(wire.Reload, required=False),
    )
    async def reload(request: Request) -> Response:
        """Read models again from their folders; requests under way keep the model they began with."""
        sent, kind = await request.body(), request.headers.get("content-type", "")
        return _answer(await service.reload(await service.parse(wire.Reload, sent, kind) if sent else wire.Reload()))

    @app.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics() -> Response:
        """Return counters for Prometheus."""
        return Response(generate_latest(service.metrics.registry), media_type=CONTENT_TYPE_LATEST)


def _add_windows(app: FastAPI, service: Service) -> None:
    @app.post("/forecast", response_model=wire.Forecasts, responses=STREAMED, openapi_extra=_takes(wire.AboutTable))
    async def forecast(
        question: Annotated[wire.AboutTable, _table(service)], form: ForecastForm = "answer"
    ) -> Response:
        """Forecast from the end of a table, or from moments in it."""
        if form == "arrow":
            return Response(await service.stream(question, "forecast"), media_type=STREAM)
        name, answers = await service.forecast(question)
        return _listing(wire.Forecasts(model=name, forecasts=[]), answers)

    @app.post(
        "/explain",
        response_model=wire.Explanations | dict[str, Any],
        responses=PICTURES,
        openapi_extra=_takes(wire.AboutTable),
    )
    async def explain(question: Annotated[wire.AboutTable, _table(service)], form: Form = "answer") -> Response:
        """Forecast and explain: return the document of `explanation.to_json()` for every moment."""
        if form == "arrow":
            return Response(await service.stream(question, "explain"), media_type=STREAM)
        if form != "answer" and isinstance(question.at, list) and len(question.at) > 1:
            raise Refused(422, f"form={form} takes one moment", len(question.at), "use form=answer", "form")
        name, answers = await service.explain(question, form)
        if form == "answer":
            return _listing(wire.Explanations(model=name, explanations=[]), answers)
        return Response(answers[0], media_type=KINDS.get(form, "application/json"))

    @app.post("/verify", response_model=wire.Verdict, openapi_extra=_takes(wire.Claim))
    async def verify(question: Annotated[wire.Claim, _body(service, wire.Claim, strict=True)]) -> Response:
        """Check that an explanation is true; with a table, also check that it is about this table."""
        return _answer(await service.verify(question))

    @app.post("/receipts", response_model=wire.Receipts | dict[str, Any], openapi_extra=_takes(wire.ReceiptsOf))
    async def receipts(
        question: Annotated[wire.ReceiptsOf, _body(service, wire.ReceiptsOf, strict=True)], form: ReceiptForm = "answer"
    ) -> Response:
        """Return what adds up to the forecasts of an explanation, or of a table and a moment, to the last digit."""
        if form == "page":
            return _json(await service.page(question))
        return _listing(*await service.receipts(question))

    @app.post("/compare", response_model=wire.Comparison, openapi_extra=_takes(wire.ComparisonOf))
    async def compare(
        question: Annotated[wire.ComparisonOf, _body(service, wire.ComparisonOf, strict=True)],
    ) -> Response:
        """Return why a forecast differs from another one: of two explanations, or of two moments of a table."""
        return _answer(await service.compare(question))

    @app.post("/replay", response_model=wire.Replayed, openapi_extra=_takes(wire.WhatIf))
    async def replay(question: Annotated[wire.WhatIf, _body(service, wire.WhatIf, strict=True)]) -> Response:
        """Forecast from another mask or other evidence in the same context: an exact what-if."""
        return _answer(await service.replay(question))

    @app.post("/rerun", response_model=wire.Rerun, openapi_extra=_takes(wire.Scramble))
    async def rerun(question: Annotated[wire.Scramble, _body(service, wire.Scramble, strict=True)]) -> Response:
        """Replace what was not read and run the whole model again, with nothing held."""
        return _answer(await service.rerun(question))


def _add_tables(app: FastAPI, service: Service) -> None:
    @app.post("/tables", response_model=wire.Uploaded, status_code=201, responses=SEVERAL, openapi_extra=UPLOAD)
    async def upload(request: Request, name: FileName = "table.csv") -> Response:
        """Keep a table: the body is the file, CSV (also gzipped) or Parquet."""
        return _answer(await service.upload(await request.body(), name), 201)

    @app.get("/tables", response_model=wire.Tables)
    async def tables() -> Response:
        """List the available tables: uploads, and the embedded demo."""
        return _answer(service.tables())

    @app.get("/tables/{id}/moments", response_model=wire.MomentsOf, responses=ABSENT)
    async def moments(id: str, model: ModelName = None, listed: Listed = False) -> Response:
        """List the moments of a table from which a model can forecast."""
        return _answer(await service.moments(id, model, listed))

    @app.get("/tables/{id}/history", response_model=wire.History, responses=ABSENT)
    async def history(id: str, model: ModelName = None, windows: Windows = 256) -> Response:
        """Return how often each gate is open over the whole table, and the error and the read rate over time."""
        return _answer(await service.history(id, model, windows))

    @app.get("/tables/{id}/drivers", response_model=wire.Drivers, responses=ABSENT)
    async def drivers(
        id: str, model: ModelName = None, windows: Windows = WINDOWS, channel: Channel = None, by: By = None
    ) -> Response:
        """Return what moves which channel: the amounts of receipts, averaged over the whole table."""
        return _json(await service.drivers(id, model, windows, channel, by))


def _describe_bodies(app: FastAPI) -> None:
    """Add the bodies of requests to the description of the service."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        document = plain()
        known = document["components"]["schemas"]
        for kind in BODIES:
            schema = kind.model_json_schema(ref_template=SCHEMAS)
            known |= schema.pop("$defs", {}) | {kind.__name__: schema}
        return document

    app.openapi = described  # type: ignore[method-assign]


def _add_handlers(app: FastAPI) -> None:
    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> Response:
        return response_to(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return response_to(refusal(first, first["loc"][1:]))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        status = 422 if error.status_code == 400 else error.status_code
        message = f"{request.method} {request.url.path}: {error.detail}"
        return response_to(Refused(status, message, remedy="see /openapi.json", headers=error.headers))

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        return response_to(FAILURE)


def _answer(document: BaseModel, status: int = 200) -> Response:
    return _json(document.model_dump_json().encode(), status)


def _listing(document: BaseModel, written: list[bytes]) -> Response:
    """Return an answer whose last field, an empty list, gets what was already written as JSON."""
    head = document.model_dump_json().encode().removesuffix(b"]}")
    return _json(b"".join((head, b",".join(written), b"]}")))


def _json(body: bytes, status: int = 200) -> Response:
    return Response(body, status, media_type="application/json")


def _is_page(path: str) -> bool:
    """Return whether a path is a file of the explorer, which contains no data."""
    if path == "/":
        return True
    try:
        file = (EXPLORER / path.lstrip("/")).resolve()
        return file.is_relative_to(EXPLORER.resolve()) and file.is_file()
    except (OSError, ValueError):  # not a valid file name
        return False
