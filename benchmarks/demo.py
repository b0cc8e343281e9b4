"""The demo table under the default and `sealed`: which planted events are read, and what the audit says."""

import numpy as np
import pyarrow as pa
import torch

from ibforecast import IBForecaster, demo_table
from ibforecast.data.demo import Demo
from ibforecast.zoo.recipes import DEFAULT

HORIZON = 24
SEEDS = (2024, 2025, 2026)
"""The seeds of the default; names without a seed are about the first."""


def demo(device: torch.device) -> dict[str, float]:
    """Events of the test rows that are read, errors, and the end-to-end sensitivity, of each recipe.

    The sensitivity is a share of squared shifts; its root is the same as a share of shifts. Events and errors of the
    default are measured with three seeds; their summary is the worst seed and, for errors, the mean.
    """
    town = demo_table()
    table = pa.table(town.columns())
    results: dict[str, float] = {}
    runs: list[dict[str, float]] = []
    for name, seed in [*((DEFAULT, seed) for seed in SEEDS), ("sealed", SEEDS[0])]:
        model = IBForecaster(HORIZON, budget=0.2, recipe=name, seed=seed, device=device.type).fit(table)
        measured = _measured(model, town, table)
        if seed == SEEDS[0]:
            results |= {f"{name}_{measure}": value for measure, value in measured.items()}
        if name == DEFAULT:
            runs.append(
                {measure: measured[measure] for measure in ("chooses", "events_read", "validation_error", "mse")}
            )
            results |= {f"{name}_{seed}_{measure}": value for measure, value in runs[-1].items()}
    results[f"{DEFAULT}_seeds"] = len(SEEDS)
    results[f"{DEFAULT}_fewest_events_read"] = min(run["events_read"] for run in runs)
    for error in ("validation_error", "mse"):
        results[f"{DEFAULT}_largest_{error}"] = max(run[error] for run in runs)
        results[f"{DEFAULT}_mean_{error}"] = float(np.mean([run[error] for run in runs]))
    return {name: round(value, 4) for name, value in results.items()}


def _measured(model: IBForecaster, town: Demo, table: pa.Table) -> dict[str, float]:
    audit, read, summary = model.audit(table), events_read(town, model, table), model.fitted.summary
    return {
        "chooses": float(model.fitted.config.chooses),
        "events": len(read),
        "events_read": sum(read),
        "validation_error": summary.validation_error,
        "mse": audit.mse,
        "open_rate": audit.open_rate,
        "fidelity": audit.score,
        "sensitivity": audit.relative,
        "sensitivity_root": float(np.sqrt(audit.relative)),
        "gates_sensitivity": audit.gates_relative,
        "masks_changed": audit.masks_changed,
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
