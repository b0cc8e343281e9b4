"""ibforecast report: the explorer as one file, with verified explanations inside."""

from pathlib import Path

import click

from ibforecast.cli.shared import (
    announce,
    budget_option,
    check_file,
    deliver,
    future_option,
    json_option,
    load_model,
)
from ibforecast.core.errors import UsageError
from ibforecast.core.files import write_atomically


@click.command("report")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("table")
@click.option("--at", multiple=True, help="The last moment to be read; may be repeated. Default: the table's end.")
@budget_option
@future_option
@click.option(
    "--drivers",
    type=click.IntRange(min=0),
    help="Windows of TABLE over which the report shows what moves each channel; 0 for none. Default: 24, or 0 if more "
    "than 12 channels are forecast.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("report.html"), show_default=True, help="File to write."
)
@json_option
def command(
    model: Path,
    table: str,
    at: tuple[str, ...],
    budget: float | None,
    future: str | None,
    drivers: int | None,
    out: Path,
    as_json: bool,
) -> None:
    """Write the explorer with MODEL's forecasts from TABLE as one .html file, every explanation verified.

    Each forecast is compared with the one before it, the first one with that of the day before. The file needs no
    server and no network. New computations, such as closing a gate, need `ibforecast serve`.

    \b
    ibforecast report model load.csv
    ibforecast report model load.csv --at '2023-11-05 10:00' --at '2023-11-06 10:00' --out november.html
    """
    from ibforecast.report import to_html

    if out.suffix.lower() not in (".html", ".htm"):
        raise UsageError("a report must end in .html", repr(out.name), f"try {out.stem + '.html'!r}")
    check_file(out)
    moments = at or (None,)
    name = model.resolve().name
    page = to_html(load_model(model, table), table, moments, name, Path(table).name, budget, future, drivers)
    write_atomically(out, page)
    announce(f"{len(moments)} verified explanation{'s' if len(moments) > 1 else ''} written to {out}")
    deliver({"report": str(out), "moments": len(moments), "verified": True}, str(out), as_json)
