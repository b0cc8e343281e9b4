"""Settings by kind of table (`steady`, the former default), compared with settings chosen by hand for each data set."""

from ibforecast.zoo.recipes import kind_of
from ibforecast_lab.experiments.frame import LEVEL, Row, lead, over, select
from ibforecast_lab.experiments.ledger import Cell
from ibforecast_lab.experiments.parts import sizes_of
from ibforecast_lab.experiments.plans import BY_HAND, FORMER, MAIN, PLANS
from ibforecast_lab.experiments.sheet import Column, Table, change, number, run_fields
from ibforecast_lab.experiments.tables.errors import by_horizon


def _rows(tidy: list[Row]) -> list[Row]:
    """Return a row for every data set and horizon of the plan; None means not run."""
    plan = PLANS["by_kind"]
    ours = {(row["data"], row["horizon"], row["model"]): row for row in by_horizon(select(tidy, own_budget=True), MAIN)}
    return [
        _row(data, horizon, *(ours.get((data, horizon, recipe)) for recipe in (FORMER, BY_HAND)))
        for horizon in plan.horizons
        for data in plan.data
    ]


def _row(data: str, horizon: int, former: Row | None, by_hand: Row | None) -> Row:
    error, spread, other = (former or {}).get("mse"), (former or {}).get("mse_std"), (by_hand or {}).get("mse")
    return {
        "data": data,
        "horizon": horizon,
        "kind": kind_of(sizes_of(Cell(data, horizon, FORMER, 0))),
        "seeds": former["seeds"] if former else 0,
        "mse": error,
        "mse_std": spread,
        "mse_by_hand": other,
        "change": over(error, other),
        "by_kind_is": lead(former, by_hand),
        "source": "ledger",
    }


by_kind = Table(
    title="Settings by kind of table compared with settings by hand for each data set",
    keys=("data", "horizon"),
    columns=(
        *(Column(name, name) for name in ("data", "horizon", "kind", "seeds")),
        Column("MSE", "mse", number, "mse_std"),
        Column("MSE by hand", "mse_by_hand", number),
        Column("change", "change", change),
        Column("by kind is", "by_kind_is"),
    ),
    rows=_rows,
    lines=lambda rows: [run_fields(row) for row in rows],
    note=(
        f"kind: the settings of `{FORMER}`, the former default, depend on it; it is computed from the number of "
        "channels, the look-back and the cycle. The kinds were formed on these same five data sets, so this is no test "
        f"on unseen data. By hand: recipe `{BY_HAND}`, whose settings were chosen for each data set by its name. The "
        f"change is of mean errors over seeds. {LEVEL}"
    ),
    missing=("mse", "mse_by_hand"),
)
