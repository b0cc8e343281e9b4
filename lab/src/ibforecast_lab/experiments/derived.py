"""Numbers that only the aims need, computed from other numbers by their names."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from itertools import product
from statistics import geometric_mean

from ibforecast.zoo.recipes import DEFAULT
from ibforecast_lab.experiments.plans import CHOOSING, EXPLAINED, FORMER, HORIZONS, MAIN, ONE_MASK
from ibforecast_lab.experiments.tables.suite import AVERAGED

METRICS = ("mse", "mae")
START, READOUT = "bench:cpu-start/sealed_forecast", "bench:cpu/explanation"
GROWN = ("rows", "channels")


def derived(values: Mapping[str, float]) -> dict[str, float]:
    """Return the numbers; one whose parts have no record is left out."""
    return {
        name: number
        for part in (_former, _additive, _tables, _receipts, _naive, _fleets, _readouts, _growth, _neighbours)
        for name, number in part(values)
    }


Numbers = Iterator[tuple[str, float]]


def _former(values: Mapping[str, float]) -> Numbers:
    """Yield the change of each data set's errors from the former default."""
    for data, metric in product(MAIN, METRICS):
        ours, former = (values.get(f"accuracy/{data}/{model}/{metric}") for model in (DEFAULT, FORMER))
        if ours is not None and former is not None:
            yield f"results/over_former/{data}/{metric}", ours / former - 1


def _additive(values: Mapping[str, float]) -> Numbers:
    """Yield the geometric mean over the 20 cells of the additive readout's errors over those of the default."""
    for metric in METRICS:
        pairs = [
            [values.get(f"per_horizon/{data}/{horizon}/{model}/{metric}") for model in ("additive", DEFAULT)]
            for data, horizon in product(MAIN, HORIZONS)
        ]
        ratios = [one / other for one, other in pairs if one is not None and other is not None]
        if len(ratios) == len(pairs):
            yield f"results/additive/geometric/{metric}", geometric_mean(ratios) - 1


def _tables(values: Mapping[str, float]) -> Numbers:
    """Yield the number of tables on which the default has a lower MSE than LightGBM at every horizon of the table."""
    pair = f"results/tables/{DEFAULT}/lightgbm"
    names = {(data, horizon): f"{pair}/{data}/{horizon}/mse_ratio" for data, horizon in AVERAGED}
    run = {place: values[name] for place, name in names.items() if name in values}
    if run:
        behind = {data for (data, _), ratio in run.items() if ratio >= 1}
        yield f"{pair}/tables_lower_mse", float(len({data for data, _ in run} - behind))


def _receipts(values: Mapping[str, float]) -> Numbers:
    """Yield the number of receipts whose sum is wrong, or whose forecast is not that of the document."""
    wrong = [values.get(f"bench:cpu-receipts/receipts/wrong_{what}") for what in ("sum", "forecast")]
    if None not in wrong:
        yield "results/receipts/wrong", sum(number for number in wrong if number is not None)


def _naive(values: Mapping[str, float]) -> Numbers:
    """Yield how many channels were compared with naive forecasts, and how many are worse, in the largest run."""
    for part, what in product(("generated", "tables"), ("channels", "worse", "worst")):
        for measure in ("naive", "naive_part"):
            name = f"bench:cpu-naive/{measure}/{part}_validation_{what}"
            if name in values:
                yield f"results/naive/{part}/{what}", values[name]
                break


def _fleets(values: Mapping[str, float]) -> Numbers:
    """Yield the mean MASE of a fleet over the lower one of seasonal naive and MSTL, less 1, on test days."""
    for kind, series in product(("shared", "own"), ("generated", "tables")):
        for measure in ("fleet", "fleet_global"):
            of = f"bench:cpu-fleet/{measure}/{series}_test"
            ours, day, mstl = (values.get(f"{of}_{name}_mean") for name in (kind, "last_day", "mstl"))
            if ours is not None and day is not None and mstl is not None:
                yield f"results/fleet/{kind}/{series}/over_best", ours / min(day, mstl) - 1
                break


def _readouts(values: Mapping[str, float]) -> Numbers:
    """Yield the most that the explained forecast of one window costs, over the same readout without gates."""
    names = {
        ONE_MASK: [f"{START}/{data}_1_over_plain_readout" for data in EXPLAINED],
        CHOOSING: [f"{READOUT}/{data}_1_{CHOOSING}_over_open" for data in EXPLAINED],
    }
    for recipe, shapes in names.items():
        if all(name in values for name in shapes):
            yield f"results/plain_readout/{recipe}/most", max(values[name] for name in shapes)


def _growth(values: Mapping[str, float]) -> Numbers:
    """Yield the largest exponents of costs, over all sizes and between the two largest."""
    of = "bench:cpu-growth/growth/"
    for size in GROWN:
        exponents = _matching(values, f"{of}{size}_*_exponent")
        last = {name for name in exponents if name.endswith("_last_exponent")}
        for word, names in (("last", last), ("most", exponents.keys() - last)):
            if names:
                yield f"results/growth/{size}/{word}", max(exponents[name] for name in names)
    card = [
        number
        for size in GROWN
        for name, number in _matching(values, f"bench:h200-growth/growth/{size}_*_exponent").items()
        if not name.endswith("_last_exponent")
    ]
    if card:
        yield "results/growth/gpu/most", max(card)


def _neighbours(values: Mapping[str, float]) -> Numbers:
    """Yield the number of other libraries whose errors were measured in the same run as ours."""
    others = {name for name in _matching(values, "bench:*/neighbours/*_mse") if not name.endswith("/ibforecast_mse")}
    if others:
        yield "results/neighbours", float(len(others))


def _matching(values: Mapping[str, float], pattern: str) -> dict[str, float]:
    return {name: number for name, number in values.items() if fnmatch(name, pattern)}
