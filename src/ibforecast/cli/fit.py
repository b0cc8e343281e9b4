"""ibforecast fit: from a table to a saved model."""

from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import click

from ibforecast.cli.shared import announce, check_place, deliver, device_option, epochs_bar, json_option
from ibforecast.core.errors import UsageError
from ibforecast.core.sizes import Sizes
from ibforecast.data.catalogue import CATALOGUE
from ibforecast.zoo.recipes import DEFAULT, usual_patch_len
from ibforecast.zoo.saved import DOCUMENT


class Cycle(click.ParamType[Any]):
    """A number of steps, several of them separated by commas, or "auto"."""

    name = "cycle"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Accept "auto" or whole numbers."""
        if value == "auto" or isinstance(value, int):
            return value
        lengths = [part.strip() for part in str(value).split(",")]
        if not all(length.isdecimal() for length in lengths):
            return self.fail(f"{value!r} is neither a number of steps nor 'auto'")
        return int(lengths[0]) if len(lengths) == 1 else tuple(map(int, lengths))


@click.command("fit")
@click.argument("table")
@click.option("--horizon", type=int, required=True, help="Number of steps to forecast.")
@click.option("--look-back", type=int, default=96, show_default=True, help="Number of steps a window spans.")
@click.option(
    "--budget", type=float, help="Largest fraction of a window that may be read; default: the recipe's (0.2)."
)
@click.option(
    "--cycle",
    type=Cycle(),
    default="auto",
    show_default=True,
    help="Steps of the seasonal profile, or several: 24,168.",
)
@click.option("--patch-len", type=int, help="Steps of a patch; must divide the look-back.")
@click.option("--time", help="Name of the time column; default: found.")
@click.option("--channels", help="Channels to read and forecast, separated by commas; default: all.")
@click.option("--past", help="Channels to read and not forecast, separated by commas.")
@click.option("--future", help="Columns that are known ahead, separated by commas.")
@click.option("--id", default="unique_id", show_default=True, help="Id column of a long table.")
@click.option("--target", default="y", show_default=True, help="Value column of a long table.")
@click.option("--freq", help="Frequency, e.g. 15min, 1h, 1d; default: inferred.")
@click.option("--zone", help="Time zone of times that have none, e.g. Europe/Berlin.")
@click.option("--irregular", type=click.Choice(["error", "by_row", "fill"]), default="error", show_default=True)
@click.option("--missing-value", type=float, multiple=True, help="A number that stands for nothing, e.g. -9999.")
@click.option("--split", default="0.7,0.1,0.2", show_default=True, help="Fractions to train, select and test on.")
@click.option("--recipe", default=DEFAULT, show_default=True, help="A recipe's name, or a path to a TOML file.")
@click.option("--epochs", type=click.IntRange(1), help="Train for so many at most; default: the recipe's.")
@click.option("--seed", type=int, default=2024, show_default=True)
@device_option
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder of the model.")
@click.option("--overwrite", is_flag=True, help="Replace a model that is there.")
@json_option
def command(
    table: str,
    horizon: int,
    look_back: int,
    budget: float | None,
    cycle: int | tuple[int, ...] | Literal["auto"],
    patch_len: int | None,
    time: str | None,
    channels: str | None,
    past: str | None,
    future: str | None,
    id: str,
    target: str,
    freq: str | None,
    zone: str | None,
    irregular: Literal["error", "by_row", "fill"],
    missing_value: tuple[float, ...],
    split: str,
    recipe: str,
    epochs: int | None,
    seed: int,
    device: str,
    out: Path,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Fit a model to TABLE: a CSV, CSV.gz or Parquet path, or the name of a benchmark data set.

    A run that was stopped goes on where it was when the same command is given again.

    \b
    ibforecast fit load.csv --horizon 24 --out model
    ibforecast fit ETTh1 --horizon 96 --budget 0.1 --out etth1
    ibforecast fit sensors.parquet --horizon 48 --missing-value -9999 --irregular fill --out model
    ibforecast fit load.csv --horizon 24 --cycle 24,168 --past temperature --future holiday --out model
    """
    from ibforecast.forecaster import IBForecaster

    if out.exists() and not overwrite:
        raise UsageError(f"the model's folder must be new (got {out}, which exists); choose another or add --overwrite")
    if out.exists() and not (out / DOCUMENT).is_file():
        raise UsageError(f"only a model may be overwritten (got {out}, which is none); choose another folder")
    check_place(out)
    model = IBForecaster(
        horizon,
        look_back,
        budget,
        cycle,
        patch_len=patch_len,
        recipe=recipe,
        epochs=epochs,
        seed=seed,
        device=device,
        split=fractions(split),
        time=time,
        channels=names_in(channels) or None,
        past=names_in(past),
        future=names_in(future),
        id=id,
        target=target,
        freq=freq,
        zone=zone,
        irregular=irregular,
        missing_values=missing_value,
    )
    checkpoint = out.parent / f".{out.name}.checkpoint"
    with epochs_bar() as advance:
        model.fit(table, checkpoint=checkpoint, on_epoch=advance)
    model.save(out, overwrite)
    checkpoint.unlink(missing_ok=True)
    summary, config = model.fitted.summary, model.fitted.config
    tokens, steps = config.patches * config.channels, "step" if config.patch_len == 1 else "steps"
    announce(
        f"fitted {len(model.fitted.channels)} channels on {summary.windows} windows in {summary.seconds:.0f} s: "
        f"epoch {summary.best_epoch} of {summary.epochs} kept, validation error {summary.validation_error:.4f}; "
        f"patches of {config.patch_len} {steps}, {tokens} tokens, at most {config.allowance} read"
    )
    sizes = Sizes(config.look_back, config.horizon, config.channels, config.cycle)
    usual = usual_patch_len(recipe, sizes, table if table in CATALOGUE else None)
    if patch_len is None and look_back % usual:
        announce(
            f"the recipe's patches of {usual} steps do not divide a look-back of {look_back}: "
            f"--look-back {max(1, round(look_back / usual)) * usual} would be cut into them"
        )
    chosen = {"patch_len": config.patch_len, "tokens": tokens, "allowance": config.allowance}
    deliver({"model": str(out), **chosen, "training": asdict(summary)}, str(out), as_json)


def names_in(text: str | None) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",")] if text else []


def fractions(text: str) -> tuple[float, float, float]:
    """Three numbers separated by commas."""
    try:
        train, validation, test = (float(part) for part in text.split(","))
    except ValueError as error:
        raise UsageError(f"split must be three numbers (got {text!r}); try 0.7,0.1,0.2") from error
    return train, validation, test
