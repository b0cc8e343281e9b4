"""Running a service on a port until it is stopped."""

import signal
import socket
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ibforecast.core.errors import MissingExtraError, UsageError
from ibforecast.serve.settings import Settings

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

GRACE = 30
"""Seconds that requests under way have to finish once the service is stopped."""


def serve(
    paths: dict[str, Path],
    host: str,
    port: int,
    settings: Settings,
    on_ready: Callable[[str], None] = lambda url: None,
    tables: Sequence[Path] = (),
) -> None:
    """Load models and tables and answer requests until SIGINT or SIGTERM; requests accepted by then are finished."""
    try:
        import uvicorn
        from prometheus_client import disable_created_metrics

        from ibforecast.serve.app import create_app
        from ibforecast.serve.service import Service
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in ("fastapi", "prometheus_client", "pydantic", "starlette", "uvicorn"):
            raise
        raise MissingExtraError(library, "serve") from error
    # Without this, every counter has a second series with the time of its creation. The switch is one per process.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    with _listening(host, port) as listener:
        app = create_app(Service(paths, settings, tables))
        config = configured(app, settings)
        name = f"[{host}]" if ":" in host else host
        on_ready(f"http://{name}:{listener.getsockname()[1]}")
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(
                    number, lambda *_: None
                )  # uvicorn stops, then raises the signal again, which would end the process
        uvicorn.Server(config).run(sockets=[listener])


def configured(app: "ASGIApp", settings: Settings, **options: Any) -> "uvicorn.Config":
    """Return how uvicorn runs an application: without names and logs of requests, and with limits on slow clients."""
    import uvicorn

    from ibforecast.serve.clients import Crowd, PatientProtocol

    protocol = partial(PatientProtocol, crowd=Crowd(settings.max_waiting), seconds=settings.head_seconds)
    return uvicorn.Config(
        app,
        http=protocol,  # type: ignore[arg-type]
        **{"log_level": "warning"} | options,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
    )


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        raise UsageError(
            "host and port must be free and this machine's own", f"{host} and {port}: {error}", "try another --port"
        ) from error
