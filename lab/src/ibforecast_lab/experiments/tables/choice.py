"""Does choosing pay? A window's own mask compared with another's, with the usual one and with a fixed one."""

from math import exp, log
from statistics import fmean

import numpy as np
from jaxtyping import Float64

from ibforecast.core.errors import DataError
from ibforecast_lab.data.suite import KNOWN, SUITE
from ibforecast_lab.experiments.frame import Row, grouped, mean, seeds, select
from ibforecast_lab.experiments.plans import CHOOSING, ONE_MASK
from ibforecast_lab.experiments.sheet import Column, Table, change, number, run_fields, share
from ibforecast_lab.experiments.tables.errors import OVERALL
from ibforecast_lab.measures.bootstrap import RUN, Difference, paired

OTHERS = {"another": "another window's", "usual": "the usual mask", "fixed": "a fixed mask"}
"""The masks that a window's own one is compared with, and their names in print."""

PLACES = [(table.name, table.horizons[0]) for table in SUITE.values() if not table.name.endswith(KNOWN)]
"""The tables that are compared, each at its first horizon."""

MUCH = 0.01
"""The relative difference from which a table counts as lost, whatever its interval."""

FIELDS = {
    "seeds": seeds,
    "open_rate": mean("open_rate"),
    "unusual": mean("unusual"),
    "mse": mean("own"),
    "mse_another": mean("another"),
    "mse_usual": mean("usual"),
}
COUNTS = ("tables", "tables_ahead", "tables_behind")


def _rows(tidy: list[Row]) -> list[Row]:
    """Return a row for every table of the suite, and one for all; None means not run."""
    studied = select(tidy, study="choice", measure="choice", part="test", own_budget=True)
    by_place = grouped((row for row in studied if "blocks" in row), ("data", "horizon", "model"))
    rows = [
        _row(data, horizon, *(by_place.get((data, horizon, model), []) for model in (CHOOSING, ONE_MASK)))
        for data, horizon in PLACES
    ]
    return [*rows, _overall(rows)]


def _row(data: str, horizon: int, chosen: list[Row], fixed: list[Row]) -> Row:
    both = {row["seed"] for row in chosen} & {row["seed"] for row in fixed}
    ours, theirs = ([row for row in rows if row["seed"] in both] for rows in (chosen, fixed))
    differences = {
        "another": _difference(chosen, "own", chosen, "another"),
        "usual": _difference(chosen, "own", chosen, "usual"),
        "fixed": _difference(ours, "own", theirs, "own"),
    }
    return (
        {"data": data, "horizon": horizon, "blocks": len(chosen[0]["blocks"]["windows"]) if chosen else None}
        | {name: summary(chosen) if chosen else None for name, summary in FIELDS.items()}
        | {"mse_fixed": mean("own")(fixed)}
        | {field: value for name, one in differences.items() for field, value in _fields(name, one).items()}
        | dict.fromkeys(COUNTS)
        | {"source": "ledger"}
    )


def _fields(name: str, difference: Difference | None) -> Row:
    names = (f"over_{name}", f"over_{name}_low", f"over_{name}_high", f"{name}_is")
    values = (difference.value, difference.low, difference.high, difference.verdict) if difference else (None,) * 4
    return dict(zip(names, values, strict=True))


def _difference(rows: list[Row], mask: str, others: list[Row], other: str) -> Difference | None:
    """Compare errors through two masks, each averaged over seeds block by block; None if either was not run."""
    if not rows or not others:
        return None
    weights = rows[0]["blocks"]["windows"]
    for row in (*rows, *others):
        if row["blocks"]["windows"] != weights:
            raise DataError(
                "records that are compared must have the same blocks of windows",
                f"{row['data']}, horizon {row['horizon']}, {row['model']}, seed {row['seed']}",
                "run its cell again: ibforecast reproduce choice",
            )
    return paired(_averaged(rows, mask), _averaged(others, other), np.array(weights))


def _averaged(rows: list[Row], mask: str) -> Float64[np.ndarray, " block"]:
    return np.asarray(np.mean([row["blocks"][mask] for row in rows], axis=0))


def _overall(rows: list[Row]) -> Row:
    """Return the geometric mean over tables of the ratio to a fixed mask, and how many are ahead and behind."""
    compared = [row for row in rows if row["over_fixed"] is not None]
    over = exp(fmean(log(1 + row["over_fixed"]) for row in compared)) - 1 if compared else None
    ahead = len(select(compared, fixed_is="ahead"))
    behind = sum(row["over_fixed"] > MUCH for row in compared)
    counts = dict(zip(COUNTS, (len(compared), ahead, behind), strict=True))
    return dict.fromkeys(rows[0]) | {"data": OVERALL, "over_fixed": over} | counts | {"source": "ledger"}


def _lines(rows: list[Row]) -> list[Row]:
    *tables, overall = rows
    last: Row = overall | {"another": None, "usual": None}
    if overall["tables"]:
        last["fixed"] = (
            f"ratio {1 + overall['over_fixed']:.3f} (geometric mean); ahead on {overall['tables_ahead']} of "
            f"{overall['tables']}, more than {MUCH:.0%} worse on {overall['tables_behind']}"
        )
    return [*(run_fields(row | {name: _text(row, name) for name in OTHERS}) for row in tables), last]


def _text(row: Row, name: str) -> str | None:
    if row[f"over_{name}"] is None:
        return None
    value, low, high = (change(row[f"over_{name}{bound}"]) for bound in ("", "_low", "_high"))
    return f"{value} ({low} to {high}), {row[f'{name}_is']}"


choice = Table(
    title="Does choosing pay? A window's own mask compared with other masks",
    keys=("data", "horizon"),
    columns=(
        Column("data", "data"),
        Column("horizon", "horizon"),
        Column("seeds", "seeds"),
        Column("blocks", "blocks"),
        Column("read", "open_rate", share),
        Column("unusual", "unusual", share),
        Column("MSE", "mse", number),
        *(Column(f"own against {words}", name) for name, words in OTHERS.items()),
    ),
    rows=_rows,
    lines=_lines,
    note=(
        f"The model is `{CHOOSING}`. Differences are of its MSE with each window's own mask, relative to that of the "
        "same model with another window's mask for each window, of the same model with the tokens read most often for "
        f"all windows, and of `{ONE_MASK}`, trained with one learned mask for all windows; negative is better. In "
        "brackets: 95 % intervals by a paired bootstrap over blocks of windows, each as long as the longer of a day "
        f"and the horizon, drawn in runs of {RUN}, with errors averaged over seeds. They are about other days, not "
        "about other seeds. Ahead or behind: the interval excludes 0. unusual: the share of tokens read that are not "
        "among those read most often. "
        f"The last line counts a table as more than {MUCH:.0%} worse whatever its interval."
    ),
    missing=("mse", *OTHERS),
)
