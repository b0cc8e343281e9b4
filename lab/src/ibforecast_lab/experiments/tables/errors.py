"""What the tables of errors share: our own numbers and the published ones side by side, never in one column."""

from collections.abc import Iterable
from dataclasses import asdict

from ibforecast_lab.experiments.plans import INTERPRETABLE, OURS
from ibforecast_lab.experiments.rows import Row
from ibforecast_lab.experiments.sheet import Sheet
from ibforecast_lab.experiments.tables.measured import NOT_RUN, PAPER

HEADER = ["data", "horizon", "model", "read", "seeds", "MSE", "MAE", "published MSE", "published MAE"]
NOTE = (
    "Bold: the best of our own runs; in italics the best interpretable, where it is another. What is published of "
    "cyclenet-linear is its authors', of all others what the paper prints."
)


def error_sheet(title: str, ours: list[Row], published: list[Row], models: tuple[str, ...]) -> Sheet:
    """One line per data set, horizon and model; the best of our own runs bold, the best interpretable in italics."""
    rows = [*ours, *published]
    places = sorted({(row.data, row.horizon) for row in rows}, key=_order)
    body = [line for place in places for line in _lines(place, ours, published, models)]
    return Sheet(title, [asdict(row) for row in rows], HEADER, body, NOTE)


def _lines(
    place: tuple[str, int | None], ours: list[Row], published: list[Row], models: tuple[str, ...]
) -> Iterable[list[str]]:
    here = [row for row in ours if (row.data, row.horizon) == place]
    printed = {row.model: row for row in published if (row.data, row.horizon) == place}
    best = _smallest(here)
    best_interpretable = _smallest(row for row in here if row.model in (*OURS, *INTERPRETABLE))
    data, horizon = place[0], "mean" if place[1] is None else str(place[1])
    for model in dict.fromkeys((*models, *(row.model for row in here), PAPER)):
        runs: list[Row | None] = [row for row in here if row.model == model]
        told = printed.get(model)
        name = "IB-Forecast, as published" if model == PAPER else model
        for row in runs or ([None] if told or model in models else []):
            yield [data, horizon, name, *_own(row, model, best, best_interpretable), *_told(told)]


def _own(row: Row | None, model: str, best: Row | None, best_interpretable: Row | None) -> list[str]:
    if row is None or row.mse is None or row.mae is None:
        return ["–", "–", "–" if model == PAPER else NOT_RUN, "–"]
    mse = f"{row.mse:.3f}" + ("" if row.mse_std is None else f" ± {row.mse_std:.3f}")
    mse = f"**{mse}**" if row is best else f"_{mse}_" if row is best_interpretable else mse
    read = "–" if row.open_rate is None else f"{row.open_rate:.1%}"
    return [read, str(row.seeds), mse, f"{row.mae:.3f}"]


def _told(row: Row | None) -> list[str]:
    return ["–" if row is None or value is None else f"{value:.3f}" for value in (row and row.mse, row and row.mae)]


def _smallest(rows: Iterable[Row]) -> Row | None:
    return min((row for row in rows if row.mse is not None), key=lambda row: row.mse or 0.0, default=None)


def _order(place: tuple[str, int | None]) -> tuple[bool, str, int]:
    return place[0] == "Overall", place[0], place[1] or 10**6
