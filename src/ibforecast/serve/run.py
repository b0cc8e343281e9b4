"""Running a service on a port until it is stopped."""

import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import parent_process
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ibforecast.core.errors import MissingExtraError, UsageError
from ibforecast.serve.processes import GRACE, Crew
from ibforecast.serve.settings import Settings

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp


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
        import uvicorn  # noqa: F401
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
    name = f"[{host}]" if ":" in host else host
    with _listening(host, port) as listener:
        url = f"http://{name}:{listener.getsockname()[1]}"
        if settings.workers > 1:
            _supervise(listener, paths, settings, tables, lambda: on_ready(url))
        else:
            _answer_on(listener, create_app(Service(paths, settings, tables)), settings, lambda: on_ready(url))


def _answer_on(listener: socket.socket, app: "ASGIApp", settings: Settings, on_ready: Callable[[], None]) -> None:
    """Answer requests in this process until it is stopped."""
    import uvicorn

    server = uvicorn.Server(configured(app, settings))
    if threading.current_thread() is threading.main_thread():
        # uvicorn has handlers of its own, but not yet, and raises the signal again once it has stopped.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: setattr(server, "should_exit", True))
    on_ready()
    server.run(sockets=[listener])


def _supervise(
    listener: socket.socket,
    paths: dict[str, Path],
    settings: Settings,
    tables: Sequence[Path],
    on_ready: Callable[[], None],
) -> None:
    """Answer requests in several processes, which share the port, until stopped."""
    stopped = threading.Event()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopped.set())
    crew = Crew(_be_worker, (listener, paths, settings, list(tables)), settings.workers)
    try:
        crew.run(on_ready, stopped.is_set)
    finally:
        listener.close()  # before the processes stop: until then, who connects waits for one that is ready
        crew.stop()


def _be_worker(
    listener: socket.socket, paths: dict[str, Path], settings: Settings, tables: Sequence[Path], ready: Any
) -> None:
    """Answer requests as one of several processes; stop with the one that started them."""
    from prometheus_client import disable_created_metrics

    from ibforecast.serve.app import create_app
    from ibforecast.serve.service import Service

    def follow(parent: Any) -> None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=follow, args=(parent_process(),), daemon=True).start()
    disable_created_metrics()  # type: ignore[no-untyped-call]
    service = Service(paths, settings, tables)
    with listener, ready:
        _answer_on(listener, create_app(service), settings, lambda: ready.send(service.identities))


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
