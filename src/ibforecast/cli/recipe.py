"""ibforecast recipe: print a recipe, to copy and change."""

import tomllib

import click

from ibforecast.cli.shared import deliver, json_option
from ibforecast.zoo.recipes import OWN


@click.command("recipe")
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """Print the recipe NAME, which lists its differences from the defaults. Without a NAME, list all names.

    \b
    ibforecast recipe sealed > mine.toml
    ibforecast fit load.csv --horizon 24 --recipe mine.toml --out model
    """
    if name is None:
        deliver(OWN.names, "\n".join(OWN.names), as_json)
    else:
        text = OWN.text(name)
        deliver(tomllib.loads(text), text.rstrip(), as_json)
