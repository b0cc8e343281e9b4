"""ibforecast serve: forecasts, explanations and the explorer over HTTP."""

import click

from ibforecast.cli.shared import announce


@click.command("serve", context_settings={"auto_envvar_prefix": "IBFORECAST"})
@click.argument("models", nargs=-1, required=True, metavar="MODEL…")
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
def command(
    models: tuple[str, ...],
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
) -> None:
    """Serve every MODEL (a folder, called by its own name, or NAME=FOLDER) until stopped.

    Only this machine can connect, unless there is a token. Every option may be set in the environment: --max-body as
    IBFORECAST_MAX_BODY, and so on. The requests are described at /openapi.json and in
    docs/service.md.

    \b
    ibforecast serve model
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
    )
    paths = named(models)
    serve(paths, host, port, settings, lambda url: announce(f"serving {', '.join(paths)} at {url}"))
    announce("stopped")
