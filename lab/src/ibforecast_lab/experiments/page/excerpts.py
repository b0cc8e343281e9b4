"""The tables of the page of results that are parts of other tables, or facts."""

from collections.abc import Collection

from ibforecast_lab.data.suite import SUITE
from ibforecast_lab.experiments.page.forms import FORMS, Line
from ibforecast_lab.experiments.plans import (
    CHOOSING,
    EXPLAINED,
    ONE_MASK,
)
from ibforecast_lab.experiments.quoted import (
    Sheets,
    Values,
)
from ibforecast_lab.experiments.sheet import NATIVE

EXPLAINERS = (NATIVE, "occlusion", "integrated_gradients")


EXCERPTS = {
    "certificate": (
        *("data", "model", "windows", "bits changed on replay", "bits changed on scramble"),
        *("end to end, of the squared shift", "end to end, root of it", "by gates only, of the squared shift"),
        *("masks changed", "windows scrambled, nothing held", "windows changed by it"),
    ),
    "choice": (
        *("data", "horizon", "unusual"),
        *("own against another window's", "own against the usual mask", "own against a fixed mask"),
    ),
    "cost": (
        *("data", "model", "explainer", "forward passes", "backward passes"),
        *("time on the GPU, in forecasts", "time on the CPU, in forecasts"),
    ),
    "coverage": (
        *("data", "level", "coverage", "worst channel", "width"),
        *("coverage, adaptive", "worst channel, adaptive", "width, adaptive"),
    ),
    "fidelity": ("data", "model", "explainer", "score", "native is", "score by window", "native is, by window"),
    "support_recovery": (
        *("mode", "model", "explainer", "AUROC", "AUP", "AUR"),
        *("published auroc", "published aup", "published aur"),
    ),
}
"""The columns of tables that the page shows in part."""


def excerpt(sheets: Sheets, label: str, **where: Collection[str]) -> list[Line]:
    """Return some columns of a table, of the lines that have one of these texts in each named column."""
    return [
        {name: line[name].replace("%", " %") for name in EXCERPTS[label]}
        for line in whole(sheets, label)
        if all(line[name] in texts for name, texts in where.items())
    ]


def whole(sheets: Sheets, label: str) -> list[Line]:
    """Return a table with all its lines and columns."""
    return [dict(zip(sheets[label].header, cells, strict=True)) for cells in sheets[label].body]


def origins() -> list[Line]:
    """Return what the tables of the suite are, where they come from, and their licences."""
    return [
        {
            "table": table.name,
            "content": table.content,
            "rows × columns": f"{table.rows:,} × {table.columns}",
            "step": table.frequency,
            "cycle": str(table.cycle),
            "origin": table.origin,
            "licence": table.licence,
        }
        for table in SUITE.values()
    ]


def speed(values: Values) -> list[Line]:
    """Return what an explained forecast takes, as a multiple of the same readout of everything."""
    return [
        {"shape of": data}
        | {
            f"`{recipe}`, {batches}": FORMS[".2f"](values[f"bench:cpu/explanation/{data}_{batch}_{recipe}_over_open"])
            for recipe in (ONE_MASK, CHOOSING)
            for batch, batches in ((1, "one window"), (64, "64 windows"))
        }
        for data in EXPLAINED
    ]
