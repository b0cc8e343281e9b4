"""The words of the page of results that depend on records."""

from collections.abc import Iterator

from ibforecast.zoo.recipes import DEFAULT
from ibforecast_lab.experiments.frame import Row, lead, select
from ibforecast_lab.experiments.page.errors import shown
from ibforecast_lab.experiments.page.forms import FORMS, by_lead, listed
from ibforecast_lab.experiments.parts import FRAMED
from ibforecast_lab.experiments.plans import (
    FORMER,
    MAIN,
    OPEN,
)
from ibforecast_lab.experiments.quoted import (
    CELLS,
    COMPARED_IN_SUITE,
    Sheets,
    Values,
    row_of_ours,
)
from ibforecast_lab.experiments.sheet import NATIVE, words
from ibforecast_lab.experiments.tables.errors import COMPARED, OVERALL
from ibforecast_lab.experiments.tables.suite import AVERAGED


def phrases(sheets: Sheets, best: list[Row]) -> dict[str, str]:
    """Return phrases by the names by which the text of the page refers to them."""
    rows = select(sheets["accuracy"].rows, source="ledger", other_budget=None)
    overall = {row["model"]: row for row in select(rows, data=OVERALL)}
    linear = {data: shown(sheets, "cyclenet-linear", data)["default_is"] for data in MAIN}
    former = {
        metric: {row["data"]: row[field] for row in select(rows, model=FORMER)} for field, metric in COMPARED.items()
    }
    return {
        "open_mse": words(overall[OPEN]["default_is"]),
        "open_mae": words(overall[OPEN]["default_is_by_mae"]),
        **{f"former_{metric}": words(leads.pop(OVERALL)) for metric, leads in former.items()},
        **{f"former_{metric}_by_data": by_lead(leads) for metric, leads in former.items()},
        **{f"worst_{metric}": _worst(sheets, metric) for metric in former},
        "linear": by_lead(linear),
        "explainers": listed(dict.fromkeys(row["explainer"].replace("_", " ") for row in best)),
        "false_alarms": listed(_false_alarms(sheets)),
    }


def _worst(sheets: Sheets, metric: str) -> str:
    """Name the cell in which the default loses most against the former default, and by how much."""
    over = {
        cell: row_of_ours(sheets, *cell, DEFAULT)[metric] / row_of_ours(sheets, *cell, FORMER)[metric] - 1
        for cell in CELLS
    }
    data, horizon = max(over, key=lambda cell: over[cell])
    return f"{FORMS['%+'](over[data, horizon])} ({data}, horizon {horizon})"


def lost_in_suite(values: Values) -> dict[str, str]:
    """Name for each pair of models the tables of the suite on which the second has the lower MSE, with the horizon."""
    return {
        f"lower_{other}": listed(
            f"`{data}` ({horizon})"
            for data, horizon in AVERAGED
            if values.get(f"results/tables/{ours}/{other}/{data}/{horizon}/mse_ratio", 0.0) > 1
        )
        for ours, other in COMPARED_IN_SUITE
    }


def _false_alarms(sheets: Sheets) -> Iterator[str]:
    """Yield the generators on which another map has a higher AUP than the recipe made for them."""
    for mode in FRAMED.values():
        rows = select(sheets["support_recovery"].rows, mode=mode, source="ledger")
        (ours,) = select(rows, model="framed", explainer=NATIVE)
        if any(lead(ours, other, "aup", larger_is_better=True) == "behind" for other in rows):
            yield f"`{mode}`"
