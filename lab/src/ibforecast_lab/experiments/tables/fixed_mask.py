"""The learned gate compared with one mask for all windows, at the same share read."""

from ibforecast_lab.experiments.frame import LEVEL, Row, errors, lead, mean, over, seeds, select, spread, summarised
from ibforecast_lab.experiments.plans import CHOOSING, ONE_MASK, PLANS
from ibforecast_lab.experiments.run import recipe_of
from ibforecast_lab.experiments.sheet import Column, Table, change, number, run_fields, share

LEARNED, FIXED = CHOOSING, ONE_MASK
STUDY = "choice"
KEYS = ("data", "horizon", "budget")
FIELDS = {"seeds": seeds, "open_rate": mean("open_rate"), "mse": mean("mse"), "mse_std": spread("mse")}
CHOICE = {"unusual": mean("unusual"), "mse_another": mean("another"), "mse_usual": mean("usual")}


def _rows(tidy: list[Row]) -> list[Row]:
    """Return a row for every data set, horizon and budget of the plan; None means not run."""
    learned, fixed, chosen = (
        {tuple(row[key] for key in KEYS): row for row in summarised(rows, KEYS, fields)}
        for rows, fields in (
            (select(errors(tidy), model=LEARNED), FIELDS),
            (select(errors(tidy), model=FIXED), FIELDS),
            (select(tidy, model=LEARNED, study=STUDY, measure="choice", part="test"), CHOICE),
        )
    )
    return [_row(place, learned.get(place), fixed.get(place), chosen.get(place, {})) for place in _places()]


def _row(place: tuple[str, int, float], learned: Row | None, fixed: Row | None, chosen: Row) -> Row:
    ours, theirs = learned or dict.fromkeys(FIELDS) | {"seeds": 0}, fixed or dict.fromkeys(FIELDS)
    return (
        dict(zip(KEYS, place, strict=True))
        | {name: ours[name] for name in FIELDS}
        | {"mse_fixed": theirs["mse"], "mse_fixed_std": theirs["mse_std"], "change": over(ours["mse"], theirs["mse"])}
        | {"learned_is": lead(learned, fixed)}
        | {name: chosen.get(name) for name in CHOICE}
        | {"source": "ledger"}
    )


def _places() -> list[tuple[str, int, float]]:
    planned = {(cell.data, cell.horizon, float(recipe_of(cell).config.budget)) for cell in PLANS["fixed_mask"].cells()}
    return sorted(planned, key=lambda place: (place[1], -place[2], place[0]))


fixed_mask = Table(
    title="The learned gate compared with one mask for all windows, at the same budget",
    keys=KEYS,
    columns=(
        Column("data", "data"),
        Column("horizon", "horizon"),
        Column("budget", "budget", "{:.0%}".format),
        Column("read", "open_rate", share),
        Column("seeds", "seeds"),
        Column("MSE", "mse", number, "mse_std"),
        Column("MSE of a fixed mask", "mse_fixed", number, "mse_fixed_std"),
        Column("change", "change", change),
        Column("learned is", "learned_is"),
        Column("unusual", "unusual", share),
        Column("MSE with another's mask", "mse_another", number),
        Column("MSE with the usual mask", "mse_usual", number),
    ),
    rows=_rows,
    lines=lambda rows: [run_fields(row) for row in rows],
    note=(
        f"The learned gate is `{LEARNED}`, the fixed mask `{FIXED}`: the same readout with one learned mask that does "
        f"not depend on the window. Both read the same share. learned is: how its mean error compares. {LEVEL} The "
        "last three columns show whether the learned gate chooses. unusual: the share of tokens read that are not "
        "among those it reads most often. The errors are of the same model with another window's mask for each window, "
        "and with the tokens read most often for all windows."
    ),
    missing=("mse", "mse_fixed", *CHOICE),
)
