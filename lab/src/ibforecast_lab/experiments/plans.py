"""The labels of tables and figures, and the cells that each needs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from ibforecast.core.errors import UsageError, hint
from ibforecast.zoo.recipes import DEFAULT
from ibforecast_lab.data.fev import TASKS
from ibforecast_lab.data.standin import STAND_INS
from ibforecast_lab.data.suite import SUITE
from ibforecast_lab.experiments.ledger import LOOK_BACK, Cell
from ibforecast_lab.experiments.parts import DRIVERS, FRAMED
from ibforecast_lab.experiments.variants import JOIN, SWEEPS
from ibforecast_lab.recipes import names

T = TypeVar("T", str, int)

HORIZONS = (96, 192, 336, 720)
MAIN = ("ETTh1", "ETTh2", "ETTm1", "ETTm2", "Weather")
LARGE = ("Electricity", "Solar", "Traffic")
SEEDS = (2024, 2025, 2026)
EXPLAINED = ("ETTh1", "ETTm1", "Weather")
CHOOSING, ONE_MASK = "choosing", "sealed"
"""The recipe whose mask depends on the window, and the same with one learned mask for all windows."""

OPEN = f"{CHOOSING}{JOIN}open"
"""The same with gates open: what reading everything is worth."""

FORMER = "steady"
"""The former default, whose mask and level depend on the window and whose settings depend on the kind of table."""

STATIC = ("static-fixed", "static-newest")
EARLIER = (FORMER, "dense", "paper", *STATIC)
"""Recipes before sealed reading, and the paper's own."""

OURS = (DEFAULT, ONE_MASK, CHOOSING, "additive", OPEN, *EARLIER)
OF_THE_PAPER = "paper-sparse"
AT_A_BUDGET = (ONE_MASK, CHOOSING, OF_THE_PAPER)
"""The recipes whose explanations are studied."""

INTERPRETABLE = ("patchdecomp", "tft", "dlinear", "protots")
BLACK_BOX = (
    "tqnet",
    "cyclenet-linear",
    "cyclenet-mlp",
    "itransformer",
    "patchtst",
    "timesnet",
    "olinear",
    "timeemb",
    "timexer",
)
IN_SUITE = (DEFAULT, "additive", f"{CHOOSING}{JOIN}no-exchange", OPEN, FORMER, "cyclenet-mlp", "tqnet")
FITTED_IN_SUITE = ("seasonal-naive", "lightgbm")
"""The models that are run on the tables of the suite, in addition to `CHOOSING` and `ONE_MASK`, which are studied."""

FITTED = (*FITTED_IN_SUITE, "ridge")
"""Models that are fitted without random numbers, or not at all, so one seed is enough."""

SMALL_BUDGETS = (0.05, 0.1)
OTHER_BUDGETS = (*SMALL_BUDGETS, 0.35, 0.5)
"""The budgets at which the trade-off is measured, in addition to the recipes' own, 0.2."""

WHOLE_PATCHES = (0.125, 0.5)
"""Budgets of `static-newest`, which reads whole patches of all channels.

Of eight patches, 0.2 allows one and 0.5 allows four. 0.35 allows two: a quarter, the recipe's own budget.
"""

ABLATED = {
    ONE_MASK: (
        *("no-profile", "no-phase", "no-by-channel", "no-cross-channel", "no-seasonal-frame", "patch_len=12"),
        *("no-spread", "no-learned-mask", "no-spectrum", "squared-error", "no-averaging", "no-anchor"),
    ),
    CHOOSING: ("no-exchange", "no-departure"),
    OF_THE_PAPER: ("no-gated-base", "no-hard-gates", "no-profile", "no-budget", "no-contiguity"),
    "factors": ("no-diversity",),
}
"""The parts removed from each recipe: from ours what distinguishes it, from the paper's those that it removed."""

SWEPT = {
    ONE_MASK: ("width", "dropout", "frequency_share", "patch_len", "recent", "learning_rate", "most_steps"),
    OF_THE_PAPER: ("rate_weight", "contiguity_weight", "budget_weight", "prior"),
}
"""The settings changed in each recipe; the paper's are those that it changed."""


@dataclass(frozen=True)
class Plan:
    """The data sets, horizons, models (recipes), seeds and study of a label; empty if the label needs no runs.

    A model may be a variant of a recipe; it is run at each of the `budgets` (None: its own). `also` contains further
    plans with other settings, such as another look-back.
    """

    data: tuple[str, ...] = ()
    horizons: tuple[int, ...] = ()
    models: tuple[str, ...] = ()
    seeds: tuple[int, ...] = SEEDS
    study: str = ""
    budgets: tuple[float | None, ...] = (None,)
    look_back: int = LOOK_BACK
    also: tuple["Plan", ...] = ()

    def cells(self) -> list[Cell]:
        """Return all cells, short horizons first."""
        own = [
            Cell(data, horizon, model, seed, budget, self.look_back, self.study)
            for horizon in self.horizons
            for data in self.data
            for model in self.models
            for budget in self.budgets
            for seed in self.seeds
        ]
        every = dict.fromkeys((*own, *(cell for plan in self.also for cell in plan.cells())))
        return sorted(every, key=lambda cell: cell.horizon)

    def narrowed(
        self,
        data: tuple[str, ...] = (),
        horizons: tuple[int, ...] = (),
        models: tuple[str, ...] = (),
        seeds: tuple[int, ...] = (),
    ) -> "Plan":
        """Return a plan with only the named values; an empty argument keeps all. Models may be any recipe.

        A model that the plan does not name is run on the plan's own data sets or, if it has none, on all others.
        """
        every = (self, *self.also)
        data = _checked("data set", data, _all(plan.data for plan in every))
        horizons = _checked("horizon", horizons, _all(plan.horizons for plan in every))
        known = _all(plan.models for plan in every)
        models = _checked("model", models, (*known, *names())) if models else known
        others = set(known) - set(self.models)
        strangers = () if self.data else tuple(model for model in models if model not in known)
        return replace(
            self._kept(data, horizons, seeds),
            models=tuple(model for model in models if model not in others),
            also=tuple(
                replace(plan._kept(data, horizons, seeds), models=(*_both(plan.models, models), *strangers))
                for plan in self.also
            ),
        )

    def _kept(self, data: tuple[str, ...], horizons: tuple[int, ...], seeds: tuple[int, ...]) -> "Plan":
        return replace(
            self, data=_both(self.data, data), horizons=_both(self.horizons, horizons), seeds=seeds or self.seeds
        )


def _variants(recipe: str, variants: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{recipe}{JOIN}{variant}" for variant in variants)


def _sweeps(recipe: str) -> tuple[str, ...]:
    """Return the recipe and its variants with one setting changed."""
    settings = (f"{setting}={value:g}" for setting in SWEPT[recipe] for value in SWEEPS[setting].values)
    return (recipe, *_variants(recipe, tuple(settings)))


def _ablated(recipe: str) -> tuple[str, ...]:
    """Return the recipe and its variants with one part removed."""
    return (recipe, *_variants(recipe, ABLATED[recipe]))


def _of_suite(models: tuple[str, ...], seeds: tuple[int, ...] = SEEDS, study: str = "") -> Iterator[Plan]:
    for horizon in (24, 7, 48, 96, 144):
        data = tuple(table.name for table in SUITE.values() if horizon in table.horizons)
        yield Plan(data, (horizon,), models, seeds, study)


def _of_fev(models: tuple[str, ...], look_backs: tuple[int, ...], seeds: tuple[int, ...] = SEEDS) -> Iterator[Plan]:
    for look_back in look_backs:
        for items in TASKS.values():
            data, horizon = tuple(item.name for item in items), items[0].horizon
            yield Plan(data, (horizon,), models, seeds, "fev", look_back=look_back)


LONGER = (192, 336, 720)
"""The look-backs that are compared with that of the protocol."""

LENGTHENED = (*MAIN, "bike_dc", "metro_i94", "vic_elec")
"""The data sets of the comparison: the benchmarks, and tables of hours and half-hours with people's rhythms."""


def _of_look_backs() -> Iterator[Plan]:
    for look_back in (LOOK_BACK, *LONGER):
        budget = (0.2 * LOOK_BACK / look_back,)  # the same number of values
        for horizon in (24, 48, 96):
            data = tuple(name for name in LENGTHENED if horizon == (SUITE[name].horizons[0] if name in SUITE else 96))
            yield Plan(data, (horizon,), ("default",), SEEDS, "reach", budget, look_back)


_FEV = (
    *_of_fev(("default",), (LOOK_BACK, *LONGER[1:])),
    *_of_fev(("ridge",), (LOOK_BACK, *LONGER[1:]), SEEDS[:1]),
    *_of_fev(("seasonal-naive",), LONGER[1:2], SEEDS[:1]),
)
CHOICE = Plan(also=tuple(_of_suite((CHOOSING, ONE_MASK), study="choice")))
_SUITE = (*CHOICE.also, *_of_suite(IN_SUITE), *_of_suite(FITTED_IN_SUITE, SEEDS[:1]))
_ERRORS = Plan(
    MAIN, HORIZONS, (*OURS, *INTERPRETABLE, *BLACK_BOX), also=(Plan(MAIN, HORIZONS, (DEFAULT,), budgets=(0.1,)),)
)
CAPACITY = Plan(
    (max(STAND_INS, key=lambda name: STAND_INS[name].channels),),
    (96,),
    (OF_THE_PAPER, *_variants(OF_THE_PAPER, ("wide-gate", "deep-gate"))),
    SEEDS[:1],
)
"""The paper's question whether its gate network is too small for the most channels."""

_BUDGETS = (None, *OTHER_BUDGETS)
_BY_BUDGET = (
    Plan(EXPLAINED, HORIZONS, (ONE_MASK,), study="native", budgets=_BUDGETS),
    Plan(("ETTh2", "ETTm2"), (96,), (ONE_MASK,), study="native", budgets=(None, *SMALL_BUDGETS)),
    Plan(EXPLAINED, (96,), (CHOOSING,), study="native", budgets=_BUDGETS),
)
PLANS: dict[str, Plan] = {
    "datasets": Plan(),
    "configuration": Plan(),
    "accuracy": _ERRORS,
    "per_horizon": _ERRORS,
    "tables": replace(_SUITE[0], also=_SUITE[1:]),
    "fev": Plan(also=_FEV),
    "look_back": Plan(also=tuple(_of_look_backs())),
    "dropped_batch": Plan(MAIN, HORIZONS, ("seasonal-naive", "ridge", "dlinear"), SEEDS[:1]),
    "large_channels": Plan((*LARGE, *STAND_INS), HORIZONS, (DEFAULT, FORMER, "dense", "tqnet"), also=(CAPACITY,)),
    "fidelity": Plan(EXPLAINED, (96,), (*AT_A_BUDGET, "dlinear", "patchdecomp", "tft"), study="explanations"),
    "fidelity_by_budget": replace(_BY_BUDGET[0], also=_BY_BUDGET[1:]),
    "fidelity_rankings": Plan(EXPLAINED, (96,), AT_A_BUDGET, study="explanations"),
    "certificate": Plan(MAIN, (96,), (ONE_MASK, CHOOSING), study="promises"),
    "gate_map": Plan(("ETTh1",), (96,), AT_A_BUDGET, SEEDS[:1], "explanations"),
    "gate_frequency": Plan(("ETTh1",), (96,), AT_A_BUDGET, SEEDS[:1], "explanations"),
    "support_recovery": Plan(
        tuple(FRAMED),
        (24,),
        ("framed", "paper-sparse", "paper-framed", "patchdecomp", "tft"),
        study="recovery",
        also=(
            Plan(("framed-decoy",), (24,), _variants("paper-framed", ("rate_weight=0.02",)), study="recovery"),
            Plan(("framed-pulse",), (24,), _variants("paper-framed", ("no-profile",)), study="recovery"),
        ),
    ),
    "convergence": Plan(("framed-pulse",), (24,), ("framed",), SEEDS[:1], "convergence"),
    "cost": Plan(("ETTh1", "Weather"), (96,), (ONE_MASK, CHOOSING), SEEDS[:1], "cost"),
    "coverage": Plan(MAIN, (96,), (DEFAULT,), study="coverage"),
    "tradeoff": Plan(
        EXPLAINED,
        HORIZONS,
        ("static-newest", OPEN, "dense"),
        also=(
            *_BY_BUDGET,
            Plan(EXPLAINED, HORIZONS[:3], ("static-newest",), study="native", budgets=WHOLE_PATCHES),
            Plan(EXPLAINED, HORIZONS, (OF_THE_PAPER,), study="native", budgets=(None, 0.1, 0.5)),
            Plan(EXPLAINED, HORIZONS[:3], ("any-budget",), study="budgets"),
        ),
    ),
    "fixed_mask": Plan(MAIN, (96, 336), (CHOOSING, ONE_MASK), study="choice", budgets=(None, *SMALL_BUDGETS)),
    "choice": CHOICE,
    "ablations": Plan(
        ("ETTh1", "Weather"),
        (96,),
        (*_ablated(ONE_MASK), *_ablated(CHOOSING)),
        study="native",
        also=(
            Plan(("ETTh1",), (96,), (*_ablated(OF_THE_PAPER), *_ablated("factors"), "static-newest"), study="native"),
        ),
    ),
    "sensitivity": Plan(
        EXPLAINED,
        (96,),
        (*_sweeps(ONE_MASK), *_sweeps(OF_THE_PAPER)),
        SEEDS[:1],
        "native",
        also=(Plan(EXPLAINED, (96,), (ONE_MASK, OF_THE_PAPER), SEEDS[:1], "native", OTHER_BUDGETS),),
    ),
    "factors": Plan(
        (DRIVERS,),
        (24,),
        _ablated("factors"),
        study="factors",
        also=(Plan(("ETTh1",), (96,), ("factors",), study="factors"),),
    ),
}


def plan(label: str) -> Plan:
    """Return the plan of a label."""
    if label not in PLANS:
        raise UsageError("label must be known", repr(label), hint(label, list(PLANS)))
    return PLANS[label]


def _all(groups: Iterable[tuple[T, ...]]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(one for group in groups for one in group))


def _both(known: tuple[T, ...], chosen: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(one for one in chosen if one in known)


def _checked(name: str, chosen: tuple[T, ...], known: tuple[T, ...]) -> tuple[T, ...]:
    for one in chosen:
        if one not in known:
            raise UsageError(f"{name} must belong to the label", one, f"choose among {', '.join(map(str, known))}")
    return chosen or known
