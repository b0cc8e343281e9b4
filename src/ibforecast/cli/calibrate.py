"""ibforecast calibrate: compute the widths of a model's intervals from a table, and save them with the model."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from ibforecast.cli.shared import announce, check_place, deliver, device_option, json_option, load_model

if TYPE_CHECKING:
    from ibforecast.forecaster import IBForecaster


@click.command("calibrate")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("table")
@click.option("--split", type=click.Choice(["validation", "test", "all"]), default="validation", show_default=True)
@device_option
@json_option
def command(model: Path, table: str, split: Literal["validation", "test", "all"], device: str, as_json: bool) -> None:
    """Compute the widths of MODEL's intervals from a part of the TABLE it was fitted on, or from all of a later one.

    For a model without intervals, or one that has been in use for a while. The model is replaced at the end; its
    weights and its forecasts stay the same.

    \b
    ibforecast calibrate model load.csv
    ibforecast calibrate model next-year.csv --split all --json
    """

    check_place(model.resolve())
    forecaster = load_model(model, table, device).calibrate(table, split)
    _save_back(forecaster, model.resolve())
    calibration = forecaster.fitted.calibration
    assert calibration is not None
    highest = calibration.highest_level
    announce(f"calibrated on {calibration.windows} windows ({split}): intervals of up to {highest} %")
    if calibration.warning:
        announce(calibration.warning)
    document = {"model": str(model), "split": split, "windows": calibration.windows, "since": calibration.since}
    deliver({**document, "highest_level": highest}, str(model), as_json)


def _save_back(forecaster: "IBForecaster", folder: Path) -> None:
    """Replace the model in its folder, and keep the other files there, such as its audit."""
    from ibforecast.core.folders import new_folder, put_in_place

    # In the same parent folder, so that the last step is a rename: the model is replaced completely or not at all.
    with new_folder(folder) as place:
        model, whole = place / "model", place / "whole"
        forecaster.save(model)
        shutil.copytree(folder, whole)
        shutil.copytree(model, whole, dirs_exist_ok=True)
        put_in_place(whole, folder)
