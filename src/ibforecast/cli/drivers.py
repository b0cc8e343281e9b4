"""ibforecast drivers: what moves which channel."""

from dataclasses import asdict
from pathlib import Path
from typing import Literal

import click

from ibforecast.cli.shared import announce, check_file, deliver, json_option, load_model


@click.command("drivers")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("table")
@click.option("--split", type=click.Choice(["train", "validation", "test", "all"]), default="test", show_default=True)
@click.option(
    "--windows",
    type=int,
    default=100,
    show_default=True,
    help="Number of windows, evenly spaced or, with --by, as many of each group.",
)
@click.option("--channel", help="Only what moves this channel; default: every channel that is forecast.")
@click.option(
    "--by",
    type=click.Choice(["quarter", "month", "weekday", "hour", "event"]),
    help="Group the windows by the time of the forecast, or by event: the tenth furthest from the calendar.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write one row per place, or per group and source, as .csv, .csv.gz or .parquet.",
)
@click.option("--plot", type=click.Path(path_type=Path), help="Draw a heat map per channel as .png or .svg.")
@json_option
def command(
    model: Path,
    table: str,
    split: Literal["train", "validation", "test", "all"],
    windows: int,
    channel: str | None,
    by: Literal["quarter", "month", "weekday", "hour", "event"] | None,
    out: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Say what moves the forecasts of MODEL on a part of the TABLE it was fitted on, or on all of another.

    The amounts of receipts are averaged over windows. For each channel this names the three largest sources, by what
    each adds as a whole, and how far back each is strongest. With --by it names the sources that differ most between
    groups of windows.

    \b
    ibforecast drivers model load.csv
    ibforecast drivers model load.csv --channel load --out drivers.csv --plot drivers.png
    ibforecast drivers model load.csv --split all --by month --plot by-month.png
    ibforecast drivers model next-year.csv --split all --json
    """
    from ibforecast.data.sources import check_suffix
    from ibforecast.data.tables import write
    from ibforecast.plots.heat import check_suffix as check_picture

    if out:
        check_suffix(out)
    if plot:
        check_picture(plot)
    check_file(*filter(None, (out, plot)))
    drivers = load_model(model, table).drivers(table, split, windows, channel, by)
    shown = drivers if by is None else drivers.by(by)
    if out:
        write(shown.to_table(), out)
        announce(f"drivers written to {out}")
    if plot:
        shown.plot(plot)
        announce(f"picture drawn at {plot}")
    document = {"split": shown.split, "windows": shown.windows, **({} if by is None else {"by": by})}
    rows = {"drivers": list(map(asdict, shown.rows)), "sources": list(map(asdict, drivers.sources()))}
    deliver(document | rows, shown.in_words(), as_json)
