"""Labels of the paper, and the cells each of them takes."""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeVar

from ibforecast.core.errors import UsageError
from ibforecast.data.standin import STAND_INS
from ibforecast.experiments.ledger import Cell
from ibforecast.experiments.parts import FRAMED
from ibforecast.experiments.rows import HORIZONS
from ibforecast.zoo.recipes import names

T = TypeVar("T", str, int)

MAIN = ("ETTh1", "ETTh2", "ETTm1", "ETTm2", "Weather")
LARGE = ("Electricity", "Solar", "Traffic")
SEEDS = (2024, 2025, 2026)
EXPLAINED = ("ETTh1", "ETTm1", "Weather")
AT_A_BUDGET = ("exact", "paper-sparse", "static-newest", "static-fixed")
OURS = ("exact", "dense", "paper", "static-newest", "static-fixed")
INTERPRETABLE = ("patchdecomp", "tft", "dlinear", "protots")
BLACK_BOX = ("tqnet", "cyclenet-linear", "cyclenet-mlp", "itransformer", "patchtst", "timesnet")


@dataclass(frozen=True)
class Plan:
    """What a label takes: its data sets, horizons, models (recipes), seeds and study; none where it takes no run."""

    data: tuple[str, ...] = ()
    horizons: tuple[int, ...] = ()
    models: tuple[str, ...] = ()
    seeds: tuple[int, ...] = SEEDS
    study: str = ""

    def cells(self) -> list[Cell]:
        """Every cell, short horizons first."""
        return [
            Cell(data, horizon, model, seed, study=self.study)
            for horizon in self.horizons
            for data in self.data
            for model in self.models
            for seed in self.seeds
        ]

    def narrowed(
        self,
        data: tuple[str, ...] = (),
        horizons: tuple[int, ...] = (),
        models: tuple[str, ...] = (),
        seeds: tuple[int, ...] = (),
    ) -> "Plan":
        """Keep what is named; what is not named stays whole. Models may be any recipe."""
        return Plan(
            _chosen("data set", data, self.data),
            _chosen("horizon", horizons, self.horizons),
            _chosen("model", models, (*self.models, *names())) if models else self.models,
            seeds or self.seeds,
            self.study,
        )


_ALL_MODELS = (*OURS, *INTERPRETABLE, *BLACK_BOX)
PLANS: dict[str, Plan] = {
    "datasets": Plan(),
    "configuration": Plan(),
    "accuracy": Plan(MAIN, HORIZONS, _ALL_MODELS),
    "per_horizon": Plan(MAIN, HORIZONS, _ALL_MODELS),
    "large_channels": Plan((*LARGE, *STAND_INS), HORIZONS, ("exact", "dense", "tqnet")),
    "fidelity": Plan(EXPLAINED, (96,), (*AT_A_BUDGET, "dlinear", "patchdecomp", "tft"), study="explanations"),
    "fidelity_rankings": Plan(EXPLAINED, (96,), ("exact",), study="explanations"),
    "certificate": Plan(MAIN, (96,), ("exact",), study="explanations"),
    "gate_map": Plan(("ETTh1",), (96,), ("exact",), SEEDS[:1], "explanations"),
    "gate_frequency": Plan(("ETTh1",), (96,), ("exact",), SEEDS[:1], "explanations"),
    "support_recovery": Plan(tuple(FRAMED), (24,), ("framed", "patchdecomp", "tft"), study="recovery"),
    "cost": Plan(("ETTh1", "Weather"), (96,), ("exact",), SEEDS[:1], "cost"),
}


def plan(label: str) -> Plan:
    """Look a label up."""
    if label not in PLANS:
        close = get_close_matches(label, PLANS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"choose among {', '.join(PLANS)}"
        raise UsageError(f"a label must be one of the paper's that are built (got {label!r}); {hint}")
    return PLANS[label]


def _chosen(what: str, asked: tuple[T, ...], known: tuple[T, ...]) -> tuple[T, ...]:
    for one in asked:
        if one not in known:
            raise UsageError(f"{what} must belong to the label (got {one}); choose among {', '.join(map(str, known))}")
    return asked or known
