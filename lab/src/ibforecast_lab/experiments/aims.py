"""The aims by topic, each with the name of the number that shows whether it was reached."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from ibforecast.zoo.recipes import DEFAULT
from ibforecast_lab.data.suite import KNOWN, SUITE
from ibforecast_lab.experiments.plans import (
    CHOOSING,
    EXPLAINED,
    FORMER,
    HORIZONS,
    LENGTHENED,
    MAIN,
    ONE_MASK,
    OPEN,
    OTHER_BUDGETS,
    PLANS,
)
from ibforecast_lab.experiments.sheet import NATIVE
from ibforecast_lab.experiments.tables.errors import OVERALL

Rest = Literal["extreme", "count", "tally", "time", "mean"]
"""What the missing parts of a number could do to it.

They can only move an extreme or a number of faults away from the aim, move a count towards it, raise a tally by one
each, make a time longer, and move a mean either way.
"""

MET, MISSED = "met", "**missed**"
NOT_RUN = "not run"
TEN_TABLES = [table for table in SUITE.values() if not table.name.endswith(KNOWN)]


@dataclass(frozen=True)
class Aim:
    """An aim: its words, the name of the number, its limit and form, and whether the limit is the least allowed.

    If the number has several parts, `parts` names how many of them were measured, and `planned` is how many there are.
    `why` is the reason if there is no number.
    """

    words: str
    name: str
    limit: int | float
    form: str
    least: bool = False
    parts: str = ""
    planned: int = 0
    rest: Rest = "extreme"
    why: str = ""

    def is_met(self, value: float) -> bool:
        """Return whether a number is within the limit."""
        return value >= self.limit if self.least else value <= self.limit

    def verdict(self, values: Mapping[str, float]) -> str:
        """Return whether the aim was reached, as far as it was measured."""
        value = values.get(self.name)
        if value is None:
            return NOT_RUN
        if self.is_whole(values):
            return MET if self.is_met(value) else MISSED
        missing = self.planned - values.get(self.parts, 0.0)
        could_be_met = self.rest == "count" or (self.rest == "tally" and self.is_met(value + missing))
        return {
            "extreme": {True: "met so far", False: MISSED},
            "count": {True: MET, False: "not shown yet"},
            "tally": {True: MET, False: "not shown yet" if could_be_met else MISSED},
            "time": {True: "likely met", False: MISSED},
            "mean": {True: "met so far", False: "**missed so far**"},
        }[self.rest][self.is_met(value)]

    def is_whole(self, values: Mapping[str, float]) -> bool:
        """Return whether the number is of all its parts."""
        return not self.parts or values.get(self.parts, 0.0) >= self.planned

    @property
    def counts_faults(self) -> bool:
        """Whether the aim is that nothing is counted."""
        return self.limit == 0 and self.form == "n"

    @property
    def reason(self) -> str:
        """Why there is no number, if there is none."""
        if self.why:
            return self.why
        return "no record of this benchmark" if self.name.startswith("bench:") else "its cells have no record"


def _none(words: str, name: str, parts: str = "", planned: int = 0, why: str = "") -> Aim:
    """Return the aim that nothing is counted."""
    return Aim(words, name, 0, "n", False, parts, planned, why=why)


def _by_budget(model: str) -> tuple[Aim, ...]:
    parts = f"results/by_budget/{model}/lines"
    lines = {replace(cell, seed=0) for cell in PLANS["fidelity_by_budget"].cells() if cell.recipe == model}
    planned = max(len(lines), len(EXPLAINED) * len(HORIZONS) * (1 + len(OTHER_BUDGETS)))
    return (
        Aim(
            f"`{model}`: sufficiency with gates run again at most 0.01, every budget from 5 to 50 % and every horizon",
            f"results/by_budget/{model}/sufficiency",
            *(0.01, ".3f", False, parts, planned),
        ),
        Aim(
            f"`{model}`: fidelity by window, clipped, at least 0.97, every budget from 5 to 50 % and every horizon",
            f"results/by_budget/{model}/score",
            *(0.97, ".3f", True, parts, planned),
        ),
    )


def _fev(words: str, count: str, tasks: int) -> Aim:
    parts = "results/fev/look_backs"
    planned = len({plan.look_back for plan in PLANS["fev"].also if DEFAULT in plan.models})
    why = f"`{DEFAULT}` has no record in these tasks"
    return Aim(
        f"fev: {words}, at one look-back", f"results/fev/{count}", tasks, "n", True, parts, planned, "count", why
    )


def _planted(chosen: str, of: str, best: str) -> tuple[Aim, ...]:
    """Return the aims about planted truth for settings chosen in one way; in names, {} is the generator."""
    limits = {"pulse": 0.96, "decoy": 0.94, "trend": 0.80}
    return (
        *(
            Aim(
                f"`{mode}`, settings chosen by {chosen}: AUROC at least {limit:.2f}",
                *(of.format(mode), limit, ".3f", True),
            )
            for mode, limit in limits.items()
        ),
        Aim(
            f"settings chosen by {chosen}: the best AUP of all maps, run or in print, on all three", best, 3, "n", True
        ),
    )


def _stacked(recipe: str, limit: int) -> Aim:
    return Aim(
        f"60 stacked cells of `{recipe}` in at most {limit} s, without the start of the processes",
        *(f"results/stacked/{recipe}/wall", limit, "s", False, f"results/stacked/{recipe}/cells", 60, "time"),
    )


def _over_official(recipe: str) -> Aim:
    words = f"`{recipe}` is trained 20 times as fast as by the official TQNet code, on every one of three data sets"
    return Aim(words, f"results/over_official/{recipe}/least", 20, "×", True)


def _of_tables(words: str, ours: str, other: str, name: str, limit: int | float, form: str, rest: Rest = "mean") -> Aim:
    """Return an aim about two models on the ten tables."""
    pair = f"results/tables/{ours}/{other}"
    return Aim(words, name, limit, form, rest == "tally", f"{pair}/tables", len(TEN_TABLES), rest)


def _of_choice(words: str, name: str, limit: int | float, form: str, least: bool, rest: Rest) -> Aim:
    parts = f"choice/{OVERALL}/tables"
    return Aim(words, f"choice/{OVERALL}/{name}", limit, form, least, parts, len(TEN_TABLES), rest)


def _fleet(one: str, kind: str, words: str) -> Aim:
    why = "the record has only the model for all" if kind == "own" else ""
    return Aim(
        f"52 {words}, {one}: mean MASE on test days below those of seasonal naive and of MSTL",
        *(f"results/fleet/{kind}/{'generated' if 'generated' in words else 'tables'}/over_best", 0.0, "%+"),
        why=why,
    )


def _drivers(words: str, name: str, limit: int | float, form: str) -> Aim:
    return Aim(words, f"bench:cpu-drivers/drivers/default_{name}", limit, form, least=True)


_LEAN = "bench:cpu-serving/serving/lean_2"
_OLD_SERVICE = "the record is older than this part of the benchmark"
_MISSING_FUZZ = "`make torture` has no record of the part `fuzz`"
_MISSING_NODES = "`make torture` has no record of the part `distributed`"
_TORTURE, _MUTATIONS = "bench:torture", "bench:cpu-mutations/mutations"
_RECEIPTS = "bench:cpu-receipts/receipts"

TOPICS: dict[str, tuple[Aim, ...]] = {
    "Errors on the benchmarks": (
        Aim("at a fifth: MSE at most 0.333", f"accuracy/{OVERALL}/{DEFAULT}/mse", 0.333, ".4f"),
        Aim("at a fifth: MAE at most 0.355", f"accuracy/{OVERALL}/{DEFAULT}/mae", 0.355, ".4f"),
        Aim("gates open: MSE at most 0.332", f"accuracy/{OVERALL}/{OPEN}/mse", 0.332, ".4f"),
        Aim("gates open: MAE at most 0.351", f"accuracy/{OVERALL}/{OPEN}/mae", 0.351, ".4f"),
        *(
            Aim(
                f"{data}: {metric.upper()} not above that of `{FORMER}`",
                *(f"results/over_former/{data}/{metric}", 0.0, "%+"),
            )
            for metric in ("mse", "mae")
            for data in MAIN
        ),
        Aim(f"MSE of every data set at most 1 % above `{FORMER}`", "results/over_former/most/mse", 0.01, "%+"),
        Aim(f"MAE of every data set at most 1 % above `{FORMER}`", "results/over_former/most/mae", 0.01, "%+"),
        Aim(
            "standard deviation of the MSE at a fifth over seeds at most 0.001",
            *(f"accuracy/{OVERALL}/{DEFAULT}/mse_std", 0.001, ".4f"),
        ),
    ),
    "Against rivals": (
        Aim(
            "ahead of or level with the best rival in 12 of 20 cells by MSE",
            *("results/cells/not_behind/mse", 12, "n", True),
        ),
        Aim("the same in 10 of 20 cells by MAE", "results/cells/not_behind/mae", 10, "n", True),
        Aim(
            "MSE below every rival that counts all test windows, run or in print",
            *("results/over_best_mean/mse", 0.0, "%+"),
        ),
        Aim(
            "MAE below every rival that counts all test windows, run or in print",
            *("results/over_best_mean/mae", 0.0, "%+"),
        ),
    ),
    "Foundation models, and reading further back": (
        _fev("ahead of PatchTST and LightGBM in all three tasks", "ahead", 3),
        _fev("at most 3 % above Chronos-2 in two tasks", "close", 2),
        Aim(
            "look-back 336 with 5.7 % read has a lower MSE than 96 with 20 % on at least six of eight",
            *("results/look_back/336/better", 6, "n", True, "results/look_back/336/data", len(LENGTHENED), "tally"),
            why="`ibforecast reproduce look_back` was not run",
        ),
    ),
    "The ten other tables": (
        _of_tables(
            f"geometric mean of the MSE at most 0.93 times that of `{FORMER}`",
            *(DEFAULT, FORMER, f"results/tables/{DEFAULT}/{FORMER}/mse_ratio", 0.93, ".3f"),
        ),
        _of_tables(
            "MSE lower than that of LightGBM on at least seven tables",
            *(DEFAULT, "lightgbm", f"results/tables/{DEFAULT}/lightgbm/tables_lower_mse", 7, "n", "tally"),
        ),
        _of_choice(f"`{CHOOSING}`: MSE at least 2 % below one fixed mask", "over_fixed", -0.02, "%+", False, "mean"),
        _of_choice(
            f"`{CHOOSING}`: ahead of it on at least four tables (95 % interval)", "tables_ahead", 4, "n", True, "tally"
        ),
        _of_choice(f"`{CHOOSING}`: more than 1 % behind it on no table", "tables_behind", 0, "n", False, "extreme"),
    ),
    "Rare events of the demo table": (
        Aim(
            "at least 35 of 36 events of the test rows are read, the worst of three seeds",
            *("bench:cpu-demo/demo/default_fewest_events_read", 35, "n", True, "bench:cpu-demo/demo/default_seeds", 3),
        ),
        Aim(
            "validation error at most 0.120, the worst of three seeds",
            *("bench:cpu-demo/demo/default_largest_validation_error", 0.12, ".4f", False),
            *("bench:cpu-demo/demo/default_seeds", 3),
        ),
    ),
    "Windows whose cause is known": (
        *_planted("validation error", "results/planted/by_error/{}/auroc", "results/planted/by_error/best_aup"),
        *_planted("recovery", f"support_recovery/{{}}/framed/{NATIVE}/auroc", "results/planted/best_aup"),
    ),
    "Fidelity of masks": (*_by_budget(ONE_MASK), *_by_budget(CHOOSING)),
    "Receipts, and a readout that adds up": (
        _none(
            "receipts of 100,000 forecasts over ten tables: no sum that is not the forecast as printed",
            *("results/receipts/wrong", f"{_RECEIPTS}/receipts", 100_000),
        ),
        _none("no true receipt that `verify` refuses", f"{_RECEIPTS}/not_accepted", f"{_RECEIPTS}/receipts", 1),
        _none("no forged receipt that `verify` accepts", f"{_RECEIPTS}/not_refused", f"{_RECEIPTS}/forged", 1),
        Aim(
            "a receipt of an additive readout in at most 1.2 times its forecast, on every table",
            *("bench:cpu-receipts/receipts/largest_receipt_over_forecast", 1.2, ".2×"),
        ),
        Aim(
            "a receipt of any other readout in at most 50 ms, on every table",
            *("bench:cpu-receipts/receipts/largest_receipt_ms", 50, "ms"),
        ),
        *(
            Aim(
                f"`additive`: {metric.upper()} over the 20 cells at most 1.5 % above the default (geometric mean)",
                *(f"results/additive/geometric/{metric}", 0.015, "%+"),
            )
            for metric in ("mse", "mae")
        ),
        *(
            _of_tables(
                f"`additive`: {metric.upper()} on the ten tables at most 1.5 % above the default (geometric mean)",
                *("additive", DEFAULT, f"results/additive/tables_over/{metric}", 0.015, "%+"),
            )
            for metric in ("mse", "mae")
        ),
    ),
    "Causes that drivers name": (
        _drivers("planted lags: AUROC over channels and lags at least 0.99", "lags_auroc", 0.99, ".3f"),
        _drivers("planted lags: the same for the worst channel", "lags_worst_auroc", 0.99, ".3f"),
        _drivers("planted events: AUROC over channels at least 0.99", "events_channels_auroc", 0.99, ".3f"),
        _drivers("planted events: AUROC over channels and places at least 0.99", "events_auroc", 0.99, ".3f"),
        _drivers("`flow_wye`: rain is what moves the flow most", "wye_rain_first", 1, "yes"),
        _drivers("`flow_france19`: rain moves every flow most, after the flow itself", "france_rain_first", 1, "%0"),
        _drivers("`flow_france19`: the same in events", "france_rain_first_in_events", 1, "%0"),
    ),
    "Time of a fit": (
        Aim(
            "a plain fit of a year of quarter hours in at most 60 s",
            *("bench:cpu-fits/fits/quarter_hours_plain_seconds", 60, "s"),
        ),
        Aim("a plain fit of a year of hours in at most 20 s", "bench:cpu-fits/fits/hours_plain_seconds", 20, "s"),
        Aim(
            "quarter hours in at most 8 times LightGBM's time",
            *("bench:cpu-fits/fits/quarter_hours_plain_over_lightgbm", 8, "×"),
        ),
        Aim(
            "short training: MSE at most 0.5 % above the longer one, ETTm1",
            *("results/over_longer/ETTm1/mse", 0.005, "%+"),
        ),
        Aim("the same on ETTm2", "results/over_longer/ETTm2/mse", 0.005, "%+"),
        Aim("the same on tetuan", "results/over_longer/tetuan/mse", 0.005, "%+"),
        Aim(
            "times and errors of LightGBM, NHITS, DLinear and TiDE in the same run",
            *("results/neighbours", 4, "n", True),
            why="the benchmark `neighbours` has no record",
        ),
    ),
    "Start, explanation and document": (
        Aim(
            "`import ibforecast` takes at most 0.25 s longer than PyTorch",
            *("bench:cpu-start/start/library_seconds_beyond_torch", 0.25, ".2s"),
        ),
        Aim("`ibforecast --help` in at most 0.3 s", "bench:cpu-start/start/help_seconds", 0.3, ".2s"),
        Aim(
            "`ibforecast predict` of a saved model in at most 2.5 s",
            "bench:cpu-start/start/predict_seconds",
            2.5,
            ".2s",
        ),
        Aim(
            "one explained forecast in at most 1.3 times the same readout without gates, `sealed`, in three shapes",
            *("results/plain_readout/sealed/most", 1.3, ".2×"),
        ),
        Aim(
            "the same of `choosing`",
            *("results/plain_readout/choosing/most", 1.3, ".2×"),
        ),
        Aim(
            "the whole document in at most 2 times the forecast",
            *("bench:cpu-start/document/document_over_forecast", 2, ".2×"),
        ),
    ),
    "Training on a GPU, and growth": (
        _stacked(ONE_MASK, 120),
        _stacked(DEFAULT, 300),
        _over_official(ONE_MASK),
        _over_official(DEFAULT),
        *(
            Aim(
                f"growth with {size} on a processor: exponent at most 1.1{words}",
                *(f"results/growth/{size}/{name}", 1.1, ".2f"),
            )
            for size in ("rows", "channels")
            for name, words in (("most", ""), ("last", ", between the two largest sizes"))
        ),
        Aim(
            "growth with rows and channels on a GPU: exponent at most 1.1",
            *("results/growth/gpu/most", 1.1, ".2f"),
            why="the only record on a card is of a recipe that is gone",
        ),
    ),
    "The running service": (
        Aim(
            "64 clients that send Arrow and get lean answers, two processes: at least 25 % of the bare batched network",
            *(f"{_LEAN}_over_batched", 0.25, "%1", True),
            why=_OLD_SERVICE,
        ),
        Aim("their p99 at most 5 times p50", f"{_LEAN}_p99_over_p50", 5, "×", why=_OLD_SERVICE),
        _none("none of their requests fails", f"{_LEAN}_errors", why=_OLD_SERVICE),
        Aim(
            "64 clients that send JSON and get whole documents, one process: at least 25 % of the bare batched network",
            *("bench:cpu-serving/serving/clients_64_over_batched", 0.25, "%1", True),
        ),
    ),
    "A table never seen before": (
        _none(
            "400 generated series: on validation windows none with an MAE more than 2 % above the best naive forecast",
            *("results/naive/generated/worse", "results/naive/generated/channels", 400),
        ),
        _none(
            "every channel of the ten tables: the same",
            *("results/naive/tables/worse", "results/naive/tables/channels"),
            sum(table.columns for table in TEN_TABLES),
        ),
        *(
            _fleet(one, kind, words)
            for kind, one in (("shared", "one model for all"), ("own", "a model for each"))
            for words in ("generated series", "series of real tables")
        ),
        Aim(
            "from a year of quarter hours in ten channels to a verified receipt in at most 300 s of waiting",
            *("bench:cpu-first/first/seconds", 300, "s"),
        ),
        Aim(
            "60 typical mistakes: each message names rule, value and remedy",
            *("results/mistakes", 60, "n", True),
            why="a test and not a benchmark: `tests/cli/test_mistakes.py` checks a list at every change",
        ),
    ),
    "Attacks and forgeries": (
        _none(
            "a million scrambled windows: none changes in any bit",
            *(f"{_TORTURE}/scrambled/changed", f"{_TORTURE}/scrambled/windows", 1_000_000),
        ),
        _none(
            "kills at 1,000 operations: all resumed to the same bits",
            *(f"{_TORTURE}/kills/broken", f"{_TORTURE}/kills/points", 1_000),
        ),
        _none(
            "a million malformed inputs: no undocumented error, none above the limits of memory and time",
            *(f"{_TORTURE}/fuzz/broken", f"{_TORTURE}/fuzz/inputs", 1_000_000, _MISSING_FUZZ),
        ),
        _none(
            "a fleet of 10,000 series with nodes killed: nothing lost",
            *(f"{_TORTURE}/distributed/broken", f"{_TORTURE}/distributed/series", 10_000, _MISSING_NODES),
        ),
        _none(
            "ten minutes at 256 clients, attacked, processes killed: no wrong answer, and none lost for no reason",
            *(f"{_TORTURE}/service/broken", f"{_TORTURE}/service/seconds", 600),
        ),
        _none("the same: no attempt that fails, except with 429", f"{_TORTURE}/service/lost_to_kills"),
        _none(
            "the same: no answer of `/health` after more than a second",
            f"{_TORTURE}/service/health_above_1_s",
            f"{_TORTURE}/service/health",
            1,
        ),
        Aim(
            "the same: hostile clients slow honest ones by at most 2 times",
            *(f"{_TORTURE}/service/calm_over_attacked", 2, ".2×"),
        ),
        _none("no forged document passes `verify --exact`", f"{_MUTATIONS}/passed_exactly", f"{_MUTATIONS}/edits", 1),
        _none(
            "no forged document passes `verify` as it is", f"{_MUTATIONS}/passed_by_default", f"{_MUTATIONS}/edits", 1
        ),
    ),
}
"""The aims by topic, each with the number that says whether it was reached."""

AIMS = tuple(chain.from_iterable(TOPICS.values()))
"""All aims."""
