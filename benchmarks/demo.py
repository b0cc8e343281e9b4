"""The demo table under the default and `sealed`: which planted events are read, and what the audit says."""

import numpy as np
import pyarrow as pa
import torch

from ibforecast import IBForecaster, demo_table
from ibforecast.data.demo import Demo
from ibforecast.zoo.recipes import DEFAULT

HORIZON = 24


def demo(device: torch.device) -> dict[str, float]:
    """Events of the test rows that are read, errors, and the end-to-end sensitivity, of each recipe.

    The sensitivity is a share of squared shifts; its root is the same as a share of shifts.
    """
    town = demo_table()
    table = pa.table(town.columns())
    results: dict[str, float] = {}
    for name in (DEFAULT, "sealed"):
        model = IBForecaster(HORIZON, budget=0.2, recipe=name, device=device.type).fit(table)
        results |= _measured(name, model, town, table)
    return {name: round(value, 4) for name, value in results.items()}


def _measured(name: str, model: IBForecaster, town: Demo, table: pa.Table) -> dict[str, float]:
    audit, read, summary = model.audit(table), events_read(town, model, table), model.fitted.summary
    return {
        f"{name}_chooses": float(model.fitted.config.chooses),
        f"{name}_events": len(read),
        f"{name}_events_read": sum(read),
        f"{name}_validation_error": summary.validation_error,
        f"{name}_mse": audit.mse,
        f"{name}_open_rate": audit.open_rate,
        f"{name}_fidelity": audit.score,
        f"{name}_sensitivity": audit.relative,
        f"{name}_sensitivity_root": float(np.sqrt(audit.relative)),
        f"{name}_gates_sensitivity": audit.gates_relative,
        f"{name}_masks_changed": audit.masks_changed,
    }


def events_read(town: Demo, model: IBForecaster, table: pa.Table) -> list[bool]:
    """Whether each event of the test rows is read by the forecast made six hours before its echo begins."""
    first_test_row, clock, read = model.fitted.split.validation_end, town.series.clock, []
    for event in town.events:
        moment = event.echo_first - 7
        if event.first < first_test_row or moment + HORIZON >= town.series.rows:
            continue
        explained = model.explain(table, at=clock.labels(moment, 1)[0])
        start = moment + 1 - explained.look_back
        patches = {(row - start) // explained.patch_len for row in range(event.first, event.first + event.steps)}
        column = explained.channels.index(event.channel)
        read.append(bool(explained.mask[sorted(patches), column].any()))
    return read
