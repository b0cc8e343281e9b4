"""Receipts of 100,000 forecasts over ten tables: whether they add up, whether forged ones are refused, and their time.

A forecast is one number: a channel at one step ahead, or its mean over the horizon. The models are trained for one
epoch on the newest rows of a table, because arithmetic is judged here, and not accuracy.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from math import ceil, floor, log10
from typing import Any

import numpy as np
import pandas as pd
import torch
from tests.forgery.forgeries import Document, sealed

from benchmarks.measures import _least_seconds
from ibforecast import IBForecaster
from ibforecast.core import running
from ibforecast.core.chosen import evenly_spaced
from ibforecast.core.errors import IBForecastError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.receipt import Receipt, Step, receipt_of
from ibforecast.data.tables import Table
from ibforecast.engine import TorchEngine
from ibforecast_lab.data.suite import KNOWN, SUITE, SuiteTable, locate

COUNT, ROWS, EPOCHS = 100_000, 3_000, 1
"""Receipts in all, and how each model is trained: on the newest rows, for a number of epochs."""

ADDITIVE: dict[str, Any] = {"recipe": "additive"}
SEALED: dict[str, Any] = {"sealed": True}
CHOOSING: dict[str, Any] = {"choosing": True}
TABLES = [table for table in SUITE.values() if f"{table.name}{KNOWN}" not in SUITE]
CHOSEN = ("elec2_nsw", "pm25_beijing", "tetuan")
"""Tables on which the second model chooses what it reads; on the others it is the sealed reader of the default."""

DIGITS, FURTHER = 4, 3
"""Digits of a receipt after the first one of a standard deviation, and a lie that is larger than `verify` tolerates."""

ROUNDS = {False: 40, True: 8}
"""How often a call is timed, by whether a table has many channels."""

Lie = Callable[[Document, Decimal], bool]
"""Changes a receipt of a document, given the unit of its last digit; False if there is nothing to lie about."""


def receipts(device: torch.device) -> dict[str, Any]:
    """Count the receipts that add up and are accepted, and forged ones that are refused, on ten tables; time them.

    Half of the receipts of each table are of an additive model. `over_forecast` is the time of the receipt of one step
    of a channel, or of the means of all channels, over that of running the model on the window; everything on one core.
    """
    torch.set_num_threads(1)
    begun, tally, timed = time.perf_counter(), Tally(), {}
    for name, model, source in _models(device):
        tally += counted(model, source, ceil(COUNT / len(TABLES) / 2))
        timed |= {f"{name}_{key}": value for key, value in seconds(model, source).items()}
    return {"tables": len(TABLES), **tally.rates(), **_extremes(timed), **timed} | {
        "epochs": EPOCHS,
        "rows": ROWS,
        "seconds": round(time.perf_counter() - begun, 1),
    }


def receipt_times(device: torch.device) -> dict[str, float]:
    """Measure the times of `receipts`, without counting."""
    torch.set_num_threads(1)
    timed = {}
    for name, model, source in _models(device):
        timed |= {f"{name}_{key}": value for key, value in seconds(model, source).items()}
    return _extremes(timed) | timed


def _models(device: torch.device) -> Iterator[tuple[str, IBForecaster, Table]]:
    """Yield the name of each table, a model fitted to it, and the table; two models for each table."""
    for table in TABLES:
        name, rows = table.name.removesuffix(KNOWN), _newest(table)
        for settings in (ADDITIVE, CHOOSING if name in CHOSEN else SEALED):
            model = _fitted(table, rows, settings, device.type)
            yield name, model, model.open(rows)


def _newest(table: SuiteTable) -> pd.DataFrame:
    path = locate(table.name)
    if path is None:
        raise RuntimeError(f"{table.file} must be in the folder tables of IBFORECAST_DATA")
    return pd.read_csv(path, parse_dates=["date"]).tail(ROWS)


def _fitted(table: SuiteTable, rows: pd.DataFrame, settings: dict[str, Any], device: str) -> IBForecaster:
    return IBForecaster(
        table.horizons[0],
        cycle=table.cycle,
        time="date",
        freq=table.frequency,
        irregular="fill",
        past=table.past,
        future=table.future,
        epochs=EPOCHS,
        device=device,
        **settings,
    ).fit(rows)


# --- whether they are right ---


@dataclass
class Tally:
    """Counts of receipts, and of forged ones by kind."""

    windows: int = 0
    receipts: int = 0
    amounts: int = 0
    known_ahead: int = 0
    unread: int = 0
    exact: int = 0
    """Receipts whose amounts were not sampled."""
    wrong_sum: int = 0
    wrong_forecast: int = 0
    not_accepted: int = 0
    forged: Counter[str] = field(default_factory=Counter)
    not_refused: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    def rates(self) -> dict[str, Any]:
        """Return the counts as a record."""
        plain = {name: value for name, value in self.__dict__.items() if not isinstance(value, Counter)}
        return plain | {
            "forged": sum(self.forged.values()),
            "not_refused": sum(self.not_refused.values()),
            "forged_by_kind": dict(sorted(self.forged.items())),
            "not_refused_by_kind": dict(sorted(self.not_refused.items())),
        }


def counted(model: IBForecaster, source: Table, count: int) -> Tally:
    """Count the receipts of evenly spaced windows of a table, until there are as many as wanted."""
    tally = Tally()
    usable = model.desk.windows(source.series, "all")
    forecast = [name for name in model.fitted.channels if name not in model.fitted.layout.past]
    steps: list[Step] = ["mean", *range(1, model.fitted.config.horizon + 1)]
    chosen = evenly_spaced(ceil(count / len(forecast) / len(steps)), len(usable))
    for start in usable.starts[chosen].tolist():
        explained = model.desk.explain(source, start)
        explained.amounts_of(forecast)  # of all channels at once
        numbers = [(name, step) for name in forecast for step in steps][: count - tally.receipts]
        itemised = tuple(explained.itemised(name, step) for name, step in numbers)
        tally += _judged(model, replace(explained, receipts=itemised), source)
        # Another receipt of each window is forged.
        tally += _forged(model, explained, itemised[tally.windows * 7 % len(itemised)])
    return tally


def _judged(model: IBForecaster, explained: ExplainedForecast, source: Table) -> Tally:
    """Judge the receipts of one window as its document prints them."""
    tally, text = Tally(windows=1), explained.to_json()
    document = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    for receipt in document["receipts"]:
        parts = [receipt["calendar"], *receipt["read"], *receipt["known"]]
        parts += [] if receipt["unread"] is None else [receipt["unread"]]
        column = explained.channels.index(receipt["channel"])
        values = [row[column] for row in document["forecast"]]
        total = sum(values) / len(values) if receipt["step"] == "mean" else values[int(receipt["step"]) - 1]
        # A hair more than half a unit: the mean of floats is itself rounded.
        half = _unit(explained, column) / 2 + abs(total) * Decimal("1e-14")
        tally += Tally(
            receipts=1,
            amounts=len(parts),
            known_ahead=int(len(receipt["known"]) > 0),
            unread=int(receipt["unread"] is not None),
            exact=int(receipt["error"] is None),
            wrong_sum=int(sum(parts) != receipt["forecast"]),
            wrong_forecast=int(abs(receipt["forecast"] - total) > half),
        )
    accepted = model.verify(text, source, exact=True)
    return tally + Tally(not_accepted=0 if accepted else len(explained.receipts))


def _unit(explained: ExplainedForecast, column: int) -> Decimal:
    """Return the last digit of the receipts of a channel whose numbers are not very large for its spread."""
    return Decimal(10) ** min(0, floor(log10(explained.units.std[column])) - DIGITS)


def _forged(model: IBForecaster, explained: ExplainedForecast, receipt: Receipt) -> Tally:
    """Forge the receipt of a document in several ways, with a new fingerprint, and count those that are accepted."""
    tally, true = Tally(), replace(explained, receipts=(receipt,)).to_json()
    unit = _unit(explained, explained.channels.index(receipt.channel))
    for kind, lie in LIES.items():
        document = json.loads(true)
        if lie(document["receipts"][0], unit):
            passed = _passes(model, sealed(document), exact=kind in ONLY_EXACT)
            tally += Tally(forged=Counter([kind]), not_refused=Counter([kind] if passed else []))
    return tally


def _passes(model: IBForecaster, text: str, exact: bool) -> bool:
    try:
        return bool(model.verify(text, exact=exact))
    except IBForecastError:
        return False


def _one_unit_more(receipt: Document, unit: Decimal) -> bool:
    read = receipt["read"]
    if read:
        read[0] = _moved(read[0], unit)
    return bool(read)


def _two_exchanged(receipt: Document, unit: Decimal) -> bool:
    read = receipt["read"]
    if not read or max(read) - min(read) < FURTHER * unit:
        return False
    low, high = int(np.argmin(read)), int(np.argmax(read))
    read[low], read[high] = read[high], read[low]
    return True


def _calendar_against_an_amount(units: int, receipt: Document, unit: Decimal) -> bool:
    read = receipt["read"]
    if read:
        receipt["calendar"], read[-1] = _moved(receipt["calendar"], units * unit), _moved(read[-1], -units * unit)
    return bool(read)


def _smaller_error(receipt: Document, unit: Decimal) -> bool:
    if receipt["error"] is None or receipt["error"] < FURTHER * unit:
        return False
    receipt["error"] = _moved(receipt["error"], -FURTHER * unit)
    return True


def _moved(amount: float, by: Decimal) -> float:
    return float(Decimal(repr(amount)) + by)


LIES: dict[str, Lie] = {
    "one amount moved by one unit": _one_unit_more,
    "two amounts exchanged": _two_exchanged,
    "calendar moved against an amount by three units": partial(_calendar_against_an_amount, FURTHER),
    "calendar moved against an amount by one unit": partial(_calendar_against_an_amount, 1),
    "error understated by three units": _smaller_error,
}
ONLY_EXACT = ("calendar moved against an amount by one unit",)
"""Lies that rounding on another machine could explain, so that only `exact` refuses them."""


# --- their time ---


def seconds(model: IBForecaster, source: Table) -> dict[str, float]:
    """Measure the time of receipts on one window: of one step of a channel, and of the means of all channels.

    For an additive model, relative to running the model on the window and to explaining it; for any other, in ms.
    """
    desk = model.desk
    start = int(desk.windows(source.series, "all").starts[-1])
    engine, rows, explained = TorchEngine(desk.fitted), desk.original(source, start), desk.explain(source, start)
    columns = np.flatnonzero(explained.is_forecast).tolist()

    def itemise(wanted: list[int], step: Step) -> None:
        for column, amounts in zip(wanted, desk.amounts(explained, wanted), strict=True):
            receipt_of(explained, amounts, explained.channels[column], step)

    calls: list[Callable[[], object]] = [
        partial(running.computed, engine, rows),
        partial(desk.explain, source, start),
        partial(itemise, columns[:1], 1),
        partial(itemise, columns, "mean"),
    ]
    run, explain, one, every = _least_seconds(calls, ROUNDS[len(columns) > 10])
    if desk.fitted.config.readout.kind != "additive":
        return {"receipt_ms": round(one * 1e3, 2), "receipts_of_all_channels_ms": round(every * 1e3, 2)}
    return {
        "receipt_over_forecast": round(one / run, 3),
        "receipt_over_explanation": round(one / explain, 3),
        "receipts_of_all_channels_over_forecast": round(every / run, 3),
        "receipts_of_all_channels_over_forecast_per_channel": round(every / run / len(columns), 3),
    }


def _extremes(timed: dict[str, float]) -> dict[str, float]:
    """Return the median and the largest time of one receipt over the tables."""
    found = {}
    for key in ("receipt_over_forecast", "receipt_ms"):
        values = list(_ending(timed, key))
        found |= {f"median_{key}": float(np.median(values)), f"largest_{key}": max(values)}
    return found


def _ending(timed: dict[str, float], key: str) -> Iterator[float]:
    return (value for name, value in timed.items() if name.endswith(key))
