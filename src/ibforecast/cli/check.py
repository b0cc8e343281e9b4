"""ibforecast check: look at a table before a model is fitted to it."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from ibforecast.cli.settings import given, optional_settings, written
from ibforecast.cli.shared import deliver, json_option


@click.command("check")
@click.argument("table")
@optional_settings
@json_option
def command(table: str, as_json: bool, **settings: Any) -> None:
    """Look at TABLE before a fit: its gaps, cycles and odd values, what a fit will need, and what to change.

    Options are those of fit; nothing is trained. Without --horizon, one cycle of the step is taken.

    \b
    ibforecast check load.csv
    ibforecast check load.csv --horizon 24 --look-back 168 --json
    """
    from ibforecast.check import check, open_table, usual_horizon
    from ibforecast.settings import Settings

    wanted = given(settings)
    chosen = Settings(**{"horizon": 1} | wanted)
    opened = open_table(table, chosen)
    if "horizon" not in wanted:
        chosen = replace(chosen, horizon=opened.reading.get("cycle") or usual_horizon(opened.source.series))
    findings = check(opened, chosen)
    options = _options(wanted | {"horizon": chosen.horizon}, findings.options)
    begin = "next, once nothing is refused" if findings.refusal else "next"
    deliver(findings, f"{findings}\n\n{begin}: ibforecast fit {shlex.quote(table)} {options} --out model", as_json)


def _options(settings: dict[str, Any], advised: Sequence[str]) -> str:
    """Return the options of a fit: those that were given, then those of the advice, which replaces no given one."""
    from ibforecast.check import REPEATED

    options = written(settings)
    more = [option for option in advised if (flag := option.partition(" ")[0]) == REPEATED or flag not in options]
    return " ".join((*(option for each in options.values() for option in each), *more))
