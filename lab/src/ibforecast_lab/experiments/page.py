"""docs/results.md: the results as one page, from the ledger and the benchmarks.

`python -m ibforecast_lab.experiments.page` writes it; the same records give the same text. The text is in results.md
next to this file, with places for numbers, `{{NAME FORM}}`, and for tables, `{{table NAME}}`.
"""

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from statistics import mean, stdev

from ibforecast.core.files import write_atomically
from ibforecast_lab.experiments.ledger import LEDGER, Ledger, Record
from ibforecast_lab.experiments.quoted import (
    BENCH,
    CELLS,
    DATA,
    HORIZONS,
    Scores,
    Values,
    best_rival,
    better,
    fidelity_by_budget,
    plain_runs,
    quoted,
    verdict,
)

PAGE = Path("docs/results.md")
NAMES = {
    "steady": "**ibforecast**, budget 0.2 (`steady`, the default)",
    "dense": "ibforecast, gates open (`dense`)",
    "static-fixed": "one learned mask for all windows (`static-fixed`)",
    "static-newest": "the two newest patches, always (`static-newest`)",
    "paper": "the paper's recipe, run again (`paper`)",
    "tqnet": "TQNet",
    "cyclenet-linear": "CycleNet/Linear",
    "cyclenet-mlp": "CycleNet/MLP",
    "patchdecomp": "PatchDecomp",
    "patchtst": "PatchTST",
    "itransformer": "iTransformer",
    "dlinear": "DLinear",
    "timesnet": "TimesNet",
    "tft": "TFT",
    "protots": "ProtoTS",
    "ibforecast": "IB-Forecast, as published",
}
"""Models as the page names them, in its order."""

EXPLAINERS = {"native": "its own mask", "occlusion": "occlusion", "integrated_gradients": "integrated gradients"}
STUDIED = ("ETTh1", "ETTm1", "Weather")
SMALL = ("0.2", "0.1", "0.05")
BUDGETS = ("0.05", "0.1", "0.2", "0.35", "0.5")

FORMS: dict[str, Callable[[float], str]] = {
    ".3f": "{:.3f}".format,
    ".4f": "{:.4f}".format,
    ".0f": "{:.0f}".format,
    "n": "{:,.0f}".format,
    ".1f": "{:.1f}".format,
    "%0": lambda value: f"{100 * value:.0f} %".replace("-", "−"),
    "%1": lambda value: f"{100 * value:.1f} %",
    "%2": lambda value: f"{100 * value:.2f} %",
    "points": lambda value: f"{100 * value:.1f}",
    "none": lambda value: "none" if value == 0 else f"{value:,.0f}",
}
"""How a number is written."""

Table = tuple[Sequence[str], Iterable[Sequence[str]]]
"""The header and the rows."""


def page(values: Values, records: list[Record]) -> str:
    """Return the page as Markdown."""
    runs, fidelity = plain_runs(records), fidelity_by_budget(records)
    tables = {
        "overall": _overall(values),
        "cells": _cells(values, runs),
        "data_sets": _data_sets(values),
        "shares": _shares(values),
        "budgets": _budgets(values),
        "any_budget": _any_budget(values),
        "maps": _maps(values),
        "below": _below(values, fidelity),
        "runs": _runs(fidelity),
        "certificate": _certificate(values),
        "cost": _cost(values),
        "coverage": _coverage(values),
        "planted": _planted(values),
        "speed": _speed(values),
    }

    def filled(place: re.Match[str]) -> str:
        name, form = place[1], place[2]
        return _markdown(tables[form]) if name == "table" else FORMS[form](values[name])

    text = files("ibforecast_lab.experiments").joinpath("results.md").read_text("utf8")
    return re.sub(r"\{\{(\S+) (\S+)\}\}", filled, text)


def _overall(values: Values) -> Table:
    rows = []
    for model, title in NAMES.items():
        name = f"accuracy/Overall/{model}"
        if not any(f"{name}{infix}/mse" in values for infix in ("", "/published")):
            continue
        read = _form(values, f"{name}/open_rate", "%1", "–" if model == "ibforecast" else "100 %")
        errors = [_error(values, model, metric) for metric in ("mse", "mae")]
        printed = [_form(values, f"{name}/published/{metric}", ".3f") for metric in ("mse", "mae")]
        rows.append([title, read, _form(values, f"{name}/seeds", "n"), *errors, *printed])
    return ["model", "read", "seeds", "MSE", "MAE", "published MSE", "published MAE"], rows


def _error(values: Values, model: str, metric: str) -> str:
    spread = f"results/spread/{model}/{metric}"
    error = _form(values, f"accuracy/Overall/{model}/{metric}", ".3f")
    return f"{error} ± {values[spread]:.4f}" if spread in values else error


def _cells(values: Values, runs: Scores) -> Table:
    rows = [
        [
            data,
            str(horizon),
            *(cell for metric in ("mse", "mae") for cell in _against(values, runs, data, horizon, metric)),
        ]
        for data, horizon in CELLS
    ]
    return ["data", "horizon", "MSE", "best rival", "", "MAE", "best rival", ""], rows


def _against(values: Values, runs: Scores, data: str, horizon: int, metric: str) -> list[str]:
    own = [run[metric] for run in runs[data, horizon, "steady"]]
    error, rival, source = best_rival(values, data, horizon, metric)
    name = NAMES[rival] if rival == "ibforecast" else f"{NAMES[rival]}, {source}"
    return [
        f"{mean(own):.3f} ± {stdev(own):.3f}",
        f"{error:.3f} ({name})",
        verdict(values, runs, data, horizon, metric),
    ]


def _data_sets(values: Values) -> Table:
    ours = ("steady", "dense", "static-fixed", "static-newest", "paper", "cyclenet-linear")
    rows = [[NAMES[model], *(_pair(values, f"accuracy/{data}/{model}") for data in DATA)] for model in ours]
    for model, title in (
        ("tqnet", "TQNet, the better of our runs and the published"),
        ("ibforecast", NAMES["ibforecast"]),
    ):
        rows.append([title, *(_better_pair(values, model, data) for data in DATA)])
    return ["model", *DATA], rows


def _pair(values: Values, name: str) -> str:
    return f"{values[f'{name}/mse']:.3f} / {values[f'{name}/mae']:.3f}"


def _better_pair(values: Values, model: str, data: str) -> str:
    options = {m: [better(values, model, data, horizon, m) for horizon in HORIZONS] for m in ("mse", "mae")}
    return " / ".join(f"{mean(option[0] for option in four if option):.3f}" for four in options.values())


def _shares(values: Values) -> Table:
    rows = [
        [title, *(_form(values, f"results/lead_over_tqnet/{source}/{data}/share", "%0") for data in (*DATA, "ETTm"))]
        for source, title in (("own", "our runs"), ("better", "the better"))
    ]
    return ["TQNet", *DATA, "ETTm1 and ETTm2"], rows


def _budgets(values: Values) -> Table:
    rows = []
    for data in DATA:
        dense = values[f"per_horizon/{data}/96/dense/mse"]
        cells = []
        for name in (f"fixed_mask/{data}/96/{budget}" for budget in SMALL):
            own, fixed = values[f"{name}/mse"], values[f"{name}/mse_fixed"]
            cells += [f"{own:.3f} ({_signed(own / dense - 1)})", f"{fixed:.3f}"]
        rows.append([data, f"{dense:.3f}", *cells])
    return ["data", "gates open", "a fifth", "fixed mask", "a tenth", "fixed mask", "a twentieth", "fixed mask"], rows


def _any_budget(values: Values) -> Table:
    rows = [
        [
            data,
            str(horizon),
            *(_signed(values[f"tradeoff/{data}/{horizon}/any-budget/{b}/mse_over_own"]) for b in BUDGETS),
        ]
        for data in STUDIED
        for horizon in HORIZONS[:3]
    ]
    return ["data", "horizon", *map(_percent, BUDGETS)], rows


def _maps(values: Values) -> Table:
    maps = [("steady", explainer, f"`steady`, {title}") for explainer, title in EXPLAINERS.items()]
    maps += [
        ("paper-sparse", explainer, f"`paper-sparse`, {EXPLAINERS[explainer]}") for explainer in ("native", "occlusion")
    ]
    rows = [
        [
            data,
            title,
            *(f"{values[f'fidelity/{data}/96/{model}/{explainer}/{c}']:.3f}" for c in ("score", "score_by_window")),
        ]
        for data in STUDIED
        for model, explainer, title in maps
    ]
    return ["data", "map", "score", "strict"], rows


def _below(values: Values, fidelity: dict[str, dict[str, list[float]]]) -> Table:
    forms = {"runs": "n", "below": "n", "least": ".3f"}
    rows = [
        [_percent(budget), *(_form(values, f"results/fidelity/{budget}/{name}", form) for name, form in forms.items())]
        for budget in fidelity
    ]
    return ["budget", "runs", "below 0.9", "lowest"], rows


def _runs(fidelity: dict[str, dict[str, list[float]]]) -> Table:
    places = {tuple(place.split(", ")) for here in fidelity.values() for place in here}
    rows = [
        [data, horizon, *(_scores(here.get(f"{data}, {horizon}")) for here in fidelity.values())]
        for data, horizon in sorted(places, key=lambda place: (place[0], int(place[1])))
    ]
    return ["data", "horizon", *map(_percent, fidelity)], rows


def _scores(scores: Sequence[float] | None) -> str:
    return "–" if scores is None else ", ".join(f"{score:.2f}" for score in scores)


def _certificate(values: Values) -> Table:
    rows = []
    for data in DATA:
        name = f"certificate/{data}/96/steady"
        bits = values[f"{name}/replay_bits"] + values[f"{name}/scramble_bits"]
        moved = (f"{name}/sensitivity_squared", f"{name}/sensitivity_root", f"{name}/gates_sensitivity_squared")
        shares = [_form(values, share, form) for share, form in zip(moved, ("%1", "%1", "%2"), strict=True)]
        changed = _form(values, f"{name}/masks_changed", "%1")
        rows.append([data, _form(values, f"{name}/windows", "n"), f"{bits:.0f}", *shares, changed])
    return ["data", "windows", "bits changed", "squared", "root", "squared, only by gates", "masks changed"], rows


def _cost(values: Values) -> Table:
    explainers = EXPLAINERS | {"saliency": "saliency", "dynamask": "Dynamask"}
    rows = []
    for data in ("ETTh1", "Weather"):
        for explainer, title in explainers.items():
            name = f"cost/{data}/96/steady/{explainer}"
            passes = [_form(values, f"{name}/cuda/{column}", "n") for column in ("forwards", "backwards")]
            times = [f"{values[f'{name}/{device}/forward_equivalents']:,.1f}" for device in ("cuda", "cpu")]
            rows.append([data, title, *passes, *times])
    return ["data", "explanation", "forward passes", "backward passes", "time on an H200", "time on a processor"], rows


def _coverage(values: Values) -> Table:
    columns = ("coverage", "worst_channel", "adaptive_coverage", "adaptive_worst_channel")
    rows = [
        [
            data,
            f"{level} %",
            *(_form(values, f"coverage/{data}/96/steady/{level}/{column}", "%1") for column in columns),
        ]
        for data in DATA
        for level in (80, 95)
    ]
    return ["data", "level", "plain", "worst channel", "adaptive", "worst channel"], rows


def _planted(values: Values) -> Table:
    maps = {
        "framed/native": "ibforecast (`framed`)",
        "framed/occlusion": "occlusion of the same model",
        "framed/integrated_gradients": "integrated gradients of the same model",
        "patchdecomp/native": "PatchDecomp",
        "ibforecast/native/published": "IB-Forecast, as published",
    }
    rows = [
        [
            mode,
            title,
            *(_form(values, f"support_recovery/{mode}/{name}/{area}", ".3f") for area in ("auroc", "aup", "aur")),
        ]
        for mode in ("pulse", "decoy", "trend")
        for name, title in maps.items()
    ]
    return ["generator", "map", "AUROC", "AUP", "AUR"], rows


def _speed(values: Values) -> Table:
    columns = [f"{batch}_over_{other}" for batch in (1, 64) for other in ("open_gates", "no_gate_network")]
    rows = [
        [data, *(f"{values[f'bench:cpu-gates/gate_network/{data}_{column}']:.1f}" for column in columns)]
        for data in STUDIED
    ]
    ratios = [
        f"{count}: {other}" for count in ("one window", "64 windows") for other in ("gates open", "no gate network")
    ]
    return ["shape of", *ratios], rows


def _form(values: Values, name: str, form: str, absent: str = "–") -> str:
    return FORMS[form](values[name]) if name in values else absent


def _percent(budget: str) -> str:
    return f"{100 * float(budget):g} %"


def _signed(change: float) -> str:
    percent = round(100 * change, 1) or 0.0  # no negative zero
    return f"{percent:+.1f} %".replace("-", "−")


def _markdown(table: Table) -> str:
    header, rows = table
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows))


def main(arguments: list[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description="The page of results, from the ledger and the benchmarks.")
    parser.add_argument("--ledger", type=Path, default=LEDGER)
    parser.add_argument("--bench", type=Path, default=BENCH)
    parser.add_argument("--out", type=Path, default=PAGE)
    chosen = parser.parse_args(arguments)
    text = page(quoted(chosen.ledger, chosen.bench), Ledger(chosen.ledger).records())
    write_atomically(chosen.out, text.encode())


if __name__ == "__main__":
    main()
