"""The effect of each part, removed one at a time, on errors, share read and fidelity. Paper: Table "ablations"."""

from ibforecast_lab.experiments.frame import DEFAULT_WAY, Row, mean, of_study, seeds, select, spread, summarised
from ibforecast_lab.experiments.plans import PLANS, STATIC
from ibforecast_lab.experiments.published import in_print
from ibforecast_lab.experiments.sheet import NATIVE, NONE, PAPER, Column, Table, marked, measured, placed, share
from ibforecast_lab.experiments.tables.fidelity import NUMBERS
from ibforecast_lab.experiments.variants import JOIN, VARIANTS, split_name, words_for

STUDY = "native"
OF_THE_PAPER = {"paper-sparse": PAPER, **{f"paper-sparse{JOIN}{name}": name for name in VARIANTS}}
OF_THE_PAPER |= {f"factors{JOIN}no-diversity": "no-diversity"}
"""The row of the paper that belongs to each of our models: the paper's model, rebuilt, and ours with factors."""

METRICS = {
    "mse": "MSE",
    "mae": "MAE",
    "open_rate": "read",
    "comprehensiveness": "comp",
    "sufficiency": "suff",
    "score": "score",
}
KEYS = ("data", "horizon", "model")
Place = tuple[str, int, str]
FIELDS = {"seeds": seeds, "mse": mean("mse"), "mse_std": spread("mse"), "mae": mean("mae")}
FIELDS |= {"open_rate": mean("open_rate"), **NUMBERS}


def rows_of(tidy: list[Row]) -> list[Row]:
    """Return the rows of the plan's models that were run, each at its own budget, in the plan's order."""
    order = places()
    rows = select(of_study(tidy, STUDY), own_budget=True, measure="fidelity", explainer=NATIVE, **DEFAULT_WAY)
    planned = [row for row in rows if _place(row) in order]
    own = sorted(summarised(planned, KEYS, FIELDS), key=lambda row: order.index(_place(row)))
    return [_named(_place(row)) | row for row in own]


def places() -> list[Place]:
    """Return the data set, horizon and model of every line of the plan, in the plan's order."""
    cells = PLANS["ablations"].cells()
    order = list(dict.fromkeys(cell.recipe for cell in cells))
    planned = {(cell.data, cell.horizon, cell.recipe) for cell in cells}
    return sorted(planned, key=lambda place: (place[0], place[1], order.index(place[2])))


def _place(row: Row) -> Place:
    return row["data"], row["horizon"], row["model"]


def _named(place: Place) -> Row:
    named = dict(zip(KEYS, place, strict=True))
    return named | {"recipe": split_name(place[2])[0], "change": change_in(place[2])}


def change_in(model: str) -> str:
    """Return the change of a recipe in words."""
    return "static mask" if model in STATIC else words_for(model) if split_name(model)[1] else NONE


def published() -> list[Row]:
    """Return the paper's numbers as rows with the same fields."""
    rows = []
    for (data, horizon, name), printed in in_print("ablations").items():
        row: Row = {"data": data, "horizon": horizon, "model": name, "recipe": PAPER}
        row |= {"change": VARIANTS[name].words if name in VARIANTS else NONE} | dict.fromkeys(FIELDS) | {"seeds": 0}
        rows.append(row | {metric: printed[metric].value for metric in METRICS} | {"source": "published"})
    return rows


def counterparts(line: Row, published: list[Row]) -> list[Row]:
    """Return the row of the paper that belongs to a line."""
    name = OF_THE_PAPER.get(line["model"])
    return select(published, data=line["data"], horizon=line["horizon"], model=name) if name else []


def _lines(rows: list[Row]) -> list[Row]:
    lines = placed(rows, [_named(place) for place in places()])
    return [marked(line, score="{}" + _reservation(line)) for line in lines]


def _reservation(line: Row) -> str:
    """Return why a perfect score says nothing."""
    if (line.get("comprehensiveness"), line.get("sufficiency")) != (1.0, 0.0):
        return ""
    return " (nothing left out)" if line["open_rate"] == 1 else " (by construction)"


def _columns(prefix: str, **kind: bool) -> list[Column]:
    spreads = {"mse": "mse_std", "score": "score_std"}
    return [
        Column(prefix + name, field, share if field == "open_rate" else measured, spreads.get(field, ""), **kind)
        for field, name in METRICS.items()
    ]


ablations = Table(
    title="Ablations, mean over seeds",
    keys=KEYS,
    columns=(
        *(Column(name, name) for name in ("data", "horizon", "recipe", "change", "seeds")),
        *_columns(""),
        *_columns("published ", published=True),
    ),
    rows=rows_of,
    lines=_lines,
    note=(
        "comp and suff: comprehensiveness (higher is better) and sufficiency (lower is better) of the model's own "
        "mask, gates run again. score: min(comp, 1) less suff; published: comp less suff. A score of 1 says nothing if "
        "everything is read, and holds by construction if the mask never changes. "
        "paper-sparse is the paper's model for explanations, factors the only model with a diversity term."
    ),
    missing=("mse",),
    published=published,
    counterparts=counterparts,
)
