"""ibforecast serve: forecasts, explanations and the explorer over HTTP."""

from pathlib import Path

import click

from ibforecast.cli.shared import announce
from ibforecast.core.errors import UsageError


@click.command("serve", context_settings={"auto_envvar_prefix": "IBFORECAST"})
@click.argument("words", nargs=-1, required=True, metavar="MODEL… [TABLE…]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=int, default=8000, show_default=True, help="Port to listen on; 0 takes a free one.")
@click.option("--token", envvar="IBFORECAST_TOKEN", help="Require this bearer token; better set as IBFORECAST_TOKEN.")
@click.option("--allow-public", is_flag=True, help="Listen to other machines without a token.")
@click.option("--max-body", type=int, default=16, show_default=True, help="Largest body, in MiB.")
@click.option("--max-windows", type=int, default=256, show_default=True, help="Largest number of moments in a request.")
@click.option(
    "--max-concurrent", type=int, default=128, show_default=True, help="Largest number of requests at a time."
)
@click.option(
    "--max-waiting", type=int, default=512, show_default=True, help="Largest number of connections without a request."
)
@click.option("--head-seconds", type=float, default=10.0, show_default=True, help="Time for the head of a request.")
@click.option("--body-seconds", type=float, default=30.0, show_default=True, help="Time for the body of a request.")
@click.option("--threads", type=int, default=1, show_default=True, help="Threads that compute one window.")
@click.option("--workers", type=int, default=1, show_default=True, help="Processes that share the port.")
def command(
    words: tuple[str, ...],
    host: str,
    port: int,
    token: str | None,
    allow_public: bool,
    max_body: int,
    max_windows: int,
    max_concurrent: int,
    max_waiting: int,
    head_seconds: float,
    body_seconds: float,
    threads: int,
    workers: int,
) -> None:
    """Serve every MODEL (a folder, called by its own name, or NAME=FOLDER) until stopped.

    The explorer opens on the newest forecast of TABLE (a file, called by its own name).

    Only this machine can connect, unless there is a token. Every option may be set in the environment: --max-body as
    IBFORECAST_MAX_BODY, and so on. The requests are described at /openapi.json and in
    docs/service.md.

    \b
    ibforecast serve model
    ibforecast serve model load.csv
    ibforecast serve town=models/town wind=models/wind --port 9000
    IBFORECAST_TOKEN=… ibforecast serve model --host 0.0.0.0
    """
    from ibforecast.serve.run import serve
    from ibforecast.serve.settings import Settings, check_reach, hosts_of, named

    check_reach(host, token, allow_public)
    settings = Settings(
        token=token,
        hosts=hosts_of(host, token),
        max_body=max_body * 2**20,
        max_windows=max_windows,
        max_concurrent=max_concurrent,
        max_waiting=max_waiting,
        head_seconds=head_seconds,
        body_seconds=body_seconds,
        threads=threads,
        workers=workers,
    )
    tables = [Path(word) for word in words if Path(word).is_file()]
    paths = named(word for word in words if not Path(word).is_file())
    if not paths:
        raise UsageError("serve needs a model", f"only {', '.join(words)}", "name the folder of a model too")
    shown = ", ".join(paths) + (f" with {', '.join(table.name for table in tables)}" if tables else "")
    serve(paths, host, port, settings, lambda url: announce(f"serving {shown} at {url}"), tables)
    announce("stopped")
