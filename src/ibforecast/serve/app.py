"""The routes, and how errors travel on them."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from ibforecast._version import __version__
from ibforecast.plots.page import EXPLORER
from ibforecast.serve import wire
from ibforecast.serve.guard import App, Guard
from ibforecast.serve.refusals import Refused, shortened
from ibforecast.serve.service import Service

WITHOUT_TOKEN = ("/health", "/openapi.json")
TOLD = {
    400: "Not a whole HTTP request.",
    401: "The token is missing or wrong.",
    403: "The page that asks is not the service's own.",
    408: "The body did not arrive in time.",
    413: "Larger than the service allows.",
    422: "Something in the request breaks a rule.",
    429: "The service is busy.",
    500: "Something went wrong in the service.",
}
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": wire.Refusal, "description": told} for status, told in TOLD.items()
}
ABSENT: dict[int | str, dict[str, Any]] = {404: {"model": wire.Refusal, "description": "No such table."}}
NO_MODEL: dict[int | str, dict[str, Any]] = {409: {"model": wire.Refusal, "description": "A model cannot be read."}}
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

RULES = {
    "table": "columns as lists, rows as objects, CSV text, or the id of a table kept here",
    "at": "an ISO time or a list of them",
    "explanation": "the document of /explain or its text",
    "version": f"{wire.VERSION}",
}
"""What a field may be that may be several things."""

ModelName = Annotated[str | None, Query(description="Name of a loaded model; may be left out where there is one.")]
FileName = Annotated[str, Query(description="What to call the table.", max_length=200)]
Listed = Annotated[bool, Query(alias="list", description="Whether to list the moments one by one.")]
Windows = Annotated[int, Query(ge=1, description="How many windows to look at, evenly spaced.")]
Form = Annotated[
    Literal["answer", "document", "page", "svg", "csv"],
    Query(
        description="`document` answers with the explanation itself, byte for byte as the library writes it; `page` "
        "with its text and its picture as data, `svg` with the picture, `csv` with one row per token."
    ),
]
KINDS = {"svg": "image/svg+xml", "csv": "text/csv"}
"""Media types of the forms that are not JSON."""
PICTURES: dict[int | str, dict[str, Any]] = {200: {"content": {kind: {} for kind in KINDS.values()}}}


class StraightRoute(APIRoute):
    """A route whose question is read in one step, from bytes to fields; what is not plain goes the usual way."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the usual handler."""
        usual, parameters = super().get_route_handler(), self.dependant.body_params
        asked = parameters[0] if len(parameters) == 1 else None
        kind = None if asked is None else asked.field_info.annotation
        if asked is None or not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            return usual

        async def handle(request: Request) -> Response:
            if request.scope["query_string"] or request.headers.get("content-type") != "application/json":
                return await usual(request)
            try:
                question = kind.model_validate_json(await request.body())
            except ValidationError:
                return await usual(request)
            answer: Response = await self.endpoint(**{asked.name: question})
            return answer

        return handle


def create_app(service: Service) -> App:
    """Put the routes over a service, and a guard before the routes."""
    app = FastAPI(
        title="ibforecast",
        version=__version__,
        description="Forecasts that carry their proof.",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan(service),
        responses=REFUSALS,
    )
    app.router.route_class = StraightRoute
    _add_handlers(app)
    _add_models(app, service)
    _add_windows(app, service)
    _add_tables(app, service)
    has_page = (EXPLORER / "index.html").is_file()
    if has_page:
        app.mount("/", StaticFiles(directory=EXPLORER, html=True))

    def is_open(path: str) -> bool:
        return path in WITHOUT_TOKEN or (has_page and _is_page(path))

    return Guard(app, service.settings, service.metrics, is_open)


def _add_models(app: FastAPI, service: Service) -> None:
    @app.get("/health", response_model=wire.Health)
    async def health() -> Response:
        """Whether the service is up."""
        return _answer(service.health())

    @app.get("/models", response_model=wire.Models)
    async def models() -> Response:
        """What each model reads, promises, and how it came about."""
        return _answer(service.cards())

    @app.post("/models/reload", response_model=wire.Reloaded, responses=NO_MODEL)
    async def reload(asked: wire.Reload | None = None) -> Response:
        """Read models anew from where they lie; requests under way keep the model they began with."""
        return _answer(await service.reload(asked or wire.Reload()))

    @app.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics() -> Response:
        """Counters for Prometheus."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")


def _add_windows(app: FastAPI, service: Service) -> None:
    @app.post("/forecast", response_model=wire.Forecasts)
    async def forecast(asked: wire.AboutTable) -> Response:
        """Forecast what follows a table, or moments in it."""
        return _answer(await service.forecast(asked))

    @app.post("/explain", response_model=wire.Explanations | dict[str, Any], responses=PICTURES)
    async def explain(asked: wire.AboutTable, form: Form = "answer") -> Response:
        """Forecast, and say what was read: the document of `explanation.to_json()` for every moment."""
        if form != "answer" and isinstance(asked.at, list) and len(asked.at) > 1:
            raise Refused(422, f"form={form} takes one moment (got {len(asked.at)})", "use form=answer", "form")
        name, answers = await service.explain(asked, form)
        if form == "answer":
            head = wire.Explanations(model=name, explanations=[]).model_dump_json().encode().removesuffix(b"]}")
            return _json(b"".join((head, b",".join(answers), b"]}")))
        return Response(answers[0], media_type=KINDS.get(form, "application/json"))

    @app.post("/verify", response_model=wire.Verdict)
    async def verify(asked: wire.AboutExplanation) -> Response:
        """Check that an explanation is the truth about its forecast."""
        return _answer(await service.verify(asked))

    @app.post("/replay", response_model=wire.Replayed)
    async def replay(asked: wire.WhatIf) -> Response:
        """The forecast the readout gives to another mask or other evidence, the context held: an exact what-if."""
        return _answer(await service.replay(asked))


def _add_tables(app: FastAPI, service: Service) -> None:
    @app.post("/tables", response_model=wire.Uploaded, status_code=201, openapi_extra=UPLOAD)
    async def upload(request: Request, name: FileName = "table.csv") -> Response:
        """Keep a table: the body is the file, CSV (also gzipped) or Parquet."""
        return _answer(await service.upload(await request.body(), name), 201)

    @app.get("/tables", response_model=wire.Tables)
    async def tables() -> Response:
        """The tables at hand: uploads, data sets of the catalogue that are found here, and the embedded demo."""
        return _answer(service.tables())

    @app.get("/tables/{id}/moments", response_model=wire.MomentsOf, responses=ABSENT)
    async def moments(id: str, model: ModelName = None, listed: Listed = False) -> Response:
        """The moments of a table from which a model can forecast."""
        return _answer(await service.moments(id, model, listed))

    @app.get("/tables/{id}/history", response_model=wire.History, responses=ABSENT)
    async def history(id: str, model: ModelName = None, windows: Windows = 256) -> Response:
        """How often each gate is open over the whole table, and error and read rate over time."""
        return _answer(await service.history(id, model, windows))


def _add_handlers(app: FastAPI) -> None:
    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> Response:
        return _refusal(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return _refusal(_of_validation(error))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        status = 422 if error.status_code == 400 else error.status_code
        told = f"{request.method} {request.url.path}: {error.detail}"
        return _refusal(Refused(status, told, "see /openapi.json", headers=dict(error.headers or {})))

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        return _refusal(Refused(500, "something went wrong in the service", "its log says more"))


def _of_validation(error: RequestValidationError) -> Refused:
    """The first thing that is wrong with a body or a parameter, by the name of its field."""
    first = error.errors()[0]
    names = []
    for part in first["loc"][1:]:
        if isinstance(part, str) and ("[" in part or part in ("str", "int")):  # one of several types, not a name
            break
        names.append(str(part))
    field = ".".join(names) or "body"
    if first["type"] == "missing":
        return Refused(422, f"{field} must be sent (got none)", "see /openapi.json", field)
    rule = RULES.get(field, first["msg"])
    told = f"{field} must be as the wire format says, {rule[:1].lower()}{rule[1:]}"
    return Refused(422, f"{told} (got {shortened(first.get('input'))})", "see /openapi.json", field)


def _answer(document: BaseModel, status: int = 200) -> Response:
    return _json(document.model_dump_json().encode(), status)


def _json(body: bytes, status: int = 200) -> Response:
    return Response(body, status, media_type="application/json")


def _refusal(refused: Refused) -> Response:
    return Response(refused.body(), refused.status, refused.headers, "application/json")


def _is_page(path: str) -> bool:
    """Whether a path is a file of the explorer, which holds no data."""
    if path == "/":
        return True
    try:
        file = (EXPLORER / path.lstrip("/")).resolve()
        return file.is_relative_to(EXPLORER.resolve()) and file.is_file()
    except (OSError, ValueError):  # no name of a file at all
        return False


def _lifespan(service: Service) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    return lifespan
