"""The effect of the factor decomposition, with planted drivers and on real data. Paper: appendix on factors."""

from statistics import mean as average

from ibforecast_lab.experiments.frame import Row, grouped, least, mean, seeds, select, summarised
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.sheet import Column, Table, measured, number, placed, share

KEYS = ("data", "horizon", "model")
DRIVER = {"auroc": "AUROC", "alignment": "alignment", "precision": "precision", "recall": "recall"}
FIELDS = {
    "seeds": seeds,
    "open_rate": mean("open_rate", measure="worth"),
    "mse": mean("mse", measure="worth"),
    "mse_zeroed": mean("mse_zeroed", measure="worth"),
    "base_size": mean("base_size", measure="worth"),
    "factor_size": lambda rows: average(size for row in select(rows, measure="worth") for size in row["factor_sizes"]),
    **{name: least(name, measure="driver") for name in DRIVER},
}


def _rows(tidy: list[Row]) -> list[Row]:
    groups = grouped(select(tidy, study="factors"), KEYS).values()
    worth = [group for group in groups if any(row["measure"] == "worth" for row in group)]
    return summarised([row for group in worth for row in group], KEYS, FIELDS)


factors = Table(
    title="The factor decomposition, mean over seeds",
    keys=KEYS,
    columns=(
        *(Column(name, name) for name in (*KEYS, "seeds")),
        Column("read", "open_rate", share),
        Column("MSE", "mse", measured),
        Column("MSE, loadings zeroed", "mse_zeroed", measured),
        Column("size of the base", "base_size", measured),
        Column("size of a factor", "factor_size", measured),
        *(Column(name, field, number) for field, name in DRIVER.items()),
    ),
    rows=_rows,
    lines=lambda rows: placed(
        rows,
        [{"data": cell.data, "horizon": cell.horizon, "model": cell.recipe} for cell in PLANS["factors"].cells()],
    ),
    note=(
        "Sizes are root mean squares of the parts added to the future deviation; a factor's size is the mean of the "
        "three. AUROC, alignment (cosine of the loadings), precision and recall are those of the worst driver of any "
        "seed; real data have no planted drivers. The paper prints no numbers for its planted drivers, and uses no "
        "factors on real data."
    ),
    missing=("mse",),
)
