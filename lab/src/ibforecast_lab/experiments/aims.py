"""What was aimed at, by the name of the number that says whether it was reached."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ibforecast.zoo.recipes import DEFAULT
from ibforecast_lab.experiments.plans import CHOOSING, FORMER, LENGTHENED, ONE_MASK, OPEN, PLANS
from ibforecast_lab.experiments.sheet import NATIVE
from ibforecast_lab.experiments.tables.errors import OVERALL

Rest = Literal["extreme", "count", "time"]
"""What the missing parts of a number could do to it.

They can only move an extreme away from the aim, only move a count towards it, and make a time longer.
"""

MET, MISSED = "met", "**missed**"
NOT_RUN = "not run"


@dataclass(frozen=True)
class Aim:
    """An aim: its words, the name of the number, its limit and form, and whether the limit is the least allowed.

    If the number is of several parts, `parts` is the name of how many there are, and `planned` how many
    there should be.
    """

    words: str
    name: str
    limit: int | float
    form: str
    least: bool = False
    parts: str = ""
    planned: int = 0
    rest: Rest = "extreme"

    def is_met(self, value: float) -> bool:
        """Whether a number is within the limit."""
        return value >= self.limit if self.least else value <= self.limit

    def verdict(self, values: Mapping[str, float]) -> str:
        """Return whether the aim was reached, as far as it was measured."""
        value = values.get(self.name)
        if value is None:
            return NOT_RUN
        if self.is_whole(values):
            return MET if self.is_met(value) else MISSED
        return {
            "extreme": {True: "met so far", False: MISSED},
            "count": {True: MET, False: "not shown yet"},
            "time": {True: "likely met", False: MISSED},
        }[self.rest][self.is_met(value)]

    def is_whole(self, values: Mapping[str, float]) -> bool:
        """Whether the number is of all its parts."""
        return not self.parts or values.get(self.parts, 0.0) >= self.planned


def _by_budget(model: str) -> tuple[Aim, ...]:
    parts = f"results/by_budget/{model}/lines"
    lines = len({replace(cell, seed=0) for cell in PLANS["fidelity_by_budget"].cells() if cell.recipe == model})
    return (
        Aim(
            f"`{model}`: sufficiency at most 0.01 at every budget from 5 to 50 %",
            f"results/by_budget/{model}/sufficiency",
            *(0.01, ".3f", False, parts, lines),
        ),
        Aim(
            f"`{model}`: fidelity by window, clipped, at least 0.97 at every budget from 5 to 50 %",
            f"results/by_budget/{model}/score",
            *(0.97, ".3f", True, parts, lines),
        ),
    )


def _fev(words: str, count: str, tasks: int) -> Aim:
    parts = "results/fev/look_backs"
    planned = len({plan.look_back for plan in PLANS["fev"].also if DEFAULT in plan.models})
    return Aim(f"fev: {words}, at one look-back", f"results/fev/{count}", tasks, "n", True, parts, planned, "count")


def _planted(mode: str, limit: float) -> Aim:
    name = f"support_recovery/{mode}/framed/{NATIVE}/auroc"
    return Aim(f"planted truth, `{mode}`: AUROC at least {limit:.2f}", name, limit, ".3f", least=True)


def _stacked(recipe: str, limit: int) -> Aim:
    return Aim(
        f"60 stacked cells of `{recipe}` in at most {limit} s, without the start of the processes",
        *(f"results/stacked/{recipe}/wall", limit, "s", False, f"results/stacked/{recipe}/cells", 60, "time"),
    )


AIMS = (
    Aim("at a fifth: MSE at most 0.333", f"accuracy/{OVERALL}/{DEFAULT}/mse", 0.333, ".4f"),
    Aim("at a fifth: MAE at most 0.355", f"accuracy/{OVERALL}/{DEFAULT}/mae", 0.355, ".4f"),
    Aim("gates open: MSE at most 0.332", f"accuracy/{OVERALL}/{OPEN}/mse", 0.332, ".4f"),
    Aim("gates open: MAE at most 0.351", f"accuracy/{OVERALL}/{OPEN}/mae", 0.351, ".4f"),
    Aim(f"MSE of no data set above `{FORMER}`", "results/over_former/most/mse", 0.0, "%+"),
    Aim(f"MAE of no data set above `{FORMER}`", "results/over_former/most/mae", 0.0, "%+"),
    Aim(f"MSE of every data set at most 1 % above `{FORMER}`", "results/over_former/most/mse", 0.01, "%+"),
    Aim(f"MAE of every data set at most 1 % above `{FORMER}`", "results/over_former/most/mae", 0.01, "%+"),
    Aim(
        "standard deviation of this MSE over seeds at most 0.001", f"accuracy/{OVERALL}/{DEFAULT}/mse_std", 0.001, ".4f"
    ),
    Aim(
        "ahead of or level with the best rival in 12 of 20 cells by MSE", "results/cells/not_behind/mse", 12, "n", True
    ),
    Aim("the same in 10 of 20 cells by MAE", "results/cells/not_behind/mae", 10, "n", True),
    Aim("MSE below every rival that counts all test windows, run or in print", "results/over_best_mean/mse", 0.0, "%+"),
    Aim("MAE below every rival that counts all test windows, run or in print", "results/over_best_mean/mae", 0.0, "%+"),
    _fev("ahead of PatchTST and LightGBM in all three tasks", "ahead", 3),
    _fev("at most 3 % above Chronos-2 in two tasks", "close", 2),
    Aim(
        "look-back 336 with 5.7 % read has a lower MSE than 96 with 20 % on at least six of eight",
        *("results/look_back/336/better", 6, "n", True, "results/look_back/336/data", len(LENGTHENED), "count"),
    ),
    Aim("choosing: MSE on other tables at least 2 % below one fixed mask", f"choice/{OVERALL}/over_fixed", -0.02, "%+"),
    Aim("additive: MSE over the 20 cells at most 1.5 % above the default", "results/additive/over/mse", 0.015, "%+"),
    Aim("additive: MAE over the 20 cells at most 1.5 % above the default", "results/additive/over/mae", 0.015, "%+"),
    Aim(
        "additive: MSE on other tables at most 1.5 % above the default", "results/additive/tables_over/mse", 0.015, "%+"
    ),
    Aim("short training: MSE at most 0.5 % above the longer one, ETTm1", "results/over_longer/ETTm1/mse", 0.005, "%+"),
    Aim("the same on ETTm2", "results/over_longer/ETTm2/mse", 0.005, "%+"),
    Aim("the same on tetuan", "results/over_longer/tetuan/mse", 0.005, "%+"),
    _planted("pulse", 0.96),
    _planted("decoy", 0.94),
    _planted("trend", 0.80),
    Aim(
        "planted truth: the best AUP of all maps, run or in print, on all three",
        "results/planted/best_aup",
        3,
        "n",
        True,
    ),
    *_by_budget(ONE_MASK),
    *_by_budget(CHOOSING),
    _stacked(ONE_MASK, 120),
    _stacked(DEFAULT, 300),
    Aim(
        "`sealed` is trained 20 times as fast as by the official TQNet code",
        "results/over_official/sealed/least",
        20,
        "×",
        True,
    ),
    Aim(
        "a plain fit of a year of quarter hours in at most 60 s",
        "bench:cpu-fits/fits/quarter_hours_plain_seconds",
        60,
        "s",
    ),
    Aim("the same in at most 8 times LightGBM's time", "bench:cpu-fits/fits/quarter_hours_plain_over_lightgbm", 8, "×"),
    Aim(
        "the service reaches 25 % of the bare network",
        "bench:cpu-serving/serving/clients_64_over_batched",
        0.25,
        "%1",
        True,
    ),
)
"""All aims that have a number."""
