"""Published numbers, as printed, from published.csv. Tables compare our records with them.

| table            | printed in                                                               |
|------------------|--------------------------------------------------------------------------|
| accuracy         | the paper, tab:accuracy; TimesNet's averages are from tab:perhorizon     |
| per_horizon      | the paper, tab:perhorizon                                                |
| large_channels   | the paper, tab:bigc                                                      |
| fidelity         | the paper, tab:fidelity; TIMING's default scores are from the text       |
| fidelity_read    | the paper, the text about tab:fidelity: the share its masks open         |
| ablations        | the paper, tab:ablations                                                 |
| tradeoff         | the paper, the text about fig:pareto                                     |
| sensitivity      | the paper, the text about fig:hp                                         |
| support_recovery | the paper, tab:gtmetrics; the data are the modes of the framed benchmark |
| cost             | the paper, the text of its efficiency analysis                           |
| cyclenet_linear  | CycleNet's authors, their runs at look-back 96                           |
| fev              | autogluon/fev, benchmarks/fev_bench/results; the data are its tasks      |
| field            | newer forecasters' papers: means over four horizons, and over data sets  |

If the paper contradicts itself, the number is the printed one; the tests list such cases. Passes are counted per
window, optimisation steps per test batch.
"""

import csv
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ibforecast.core.errors import require_choice
from ibforecast_lab.experiments.frame import Row
from ibforecast_lab.experiments.sheet import NATIVE, PAPER

Place = tuple[str, int | None, str]
"""Data set, horizon and model."""

OUR_NAME = {"timing": "timing_defaults"}
"""Our name of an explainer in print. The paper ran TIMING at its release's settings."""

SELF_EXPLAINED = (PAPER, "dlinear", "patchdecomp", "tft")
"""Names in print that mean a forecaster's native explanation of its own forecast."""


WHOLE_BATCHES = {
    "wpmixer": "128 or 256 for ETT, 32 to 128 for Weather (Secure-and-Intelligent-Systems-Lab/WPMixer at a28a225)",
    "simpletm": "256, and 128 for one cell (vsingh-group/SimpleTM at 5b9e5fd)",
    "xpatch": "2,048 for ETT and 1,024 for Weather, or 32 to 256 (stitsyuk/xPatch at d12eeca)",
}
"""Models in print whose test loader leaves out the last, incomplete batch, and the sizes of batches in their scripts.

Checked in the code of each: `drop_last` in data_provider/data_factory.py. Others that were checked count every window:
TQNet, CycleNet, iTransformer, TimeXer, OLinear and TimeEmb.
"""


@dataclass(frozen=True)
class PublishedNumber:
    """One printed number and its source.

    `data` is a name of the catalogue or a mode of the framed benchmark. "Overall" is the mean of the five data sets of
    the accuracy table; "any" is a count that is the same for every data set. `horizon` is None for a mean over the four
    horizons and if no horizon is printed. `model` is a recipe or forecaster, an explainer (a forecaster's name means
    its native explanation), or an ablation. `spread` is the standard deviation over seeds, or None if none is printed.
    """

    table: str
    data: str
    horizon: int | None
    model: str
    metric: str
    value: float
    spread: float | None
    source: str


def numbers(table: str) -> tuple[PublishedNumber, ...]:
    """Return the numbers of a table in printed order; empty cells are left out."""
    require_choice("table", table, tuple(_tables()))
    return _tables()[table]


def in_print(table: str) -> dict[Place, dict[str, PublishedNumber]]:
    """Return the numbers of a table by data set, horizon and model, then by metric."""
    places: dict[Place, dict[str, PublishedNumber]] = defaultdict(dict)
    for number in numbers(table):
        places[number.data, number.horizon, number.model][number.metric] = number
    return dict(places)


def explained(name: str) -> Row:
    """Return the model and the explainer that a name in print means: explainers are applied to the paper's model."""
    native = name in SELF_EXPLAINED
    return {"model": name if native else PAPER, "explainer": NATIVE if native else name}


def explainers(table: str, data: str) -> list[str]:
    """Return the explainers of the paper's model in a table, for a data set."""
    return [name for place, _, name in in_print(table) if place == data and name not in SELF_EXPLAINED]


@cache
def _tables() -> dict[str, tuple[PublishedNumber, ...]]:
    tables: dict[str, list[PublishedNumber]] = defaultdict(list)
    with (files(__package__) / "published.csv").open(encoding="utf8") as file:
        for row in csv.DictReader(file):
            tables[row["table"]].append(
                PublishedNumber(
                    table=row["table"],
                    data=row["data"],
                    horizon=int(row["horizon"]) if row["horizon"] else None,
                    model=row["model"],
                    metric=row["metric"],
                    value=float(row["value"]),
                    spread=float(row["spread"]) if row["spread"] else None,
                    source=row["source"],
                )
            )
    return {table: tuple(rows) for table, rows in tables.items()}
