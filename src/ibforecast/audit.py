"""Audits: whether explanations can be relied on, by their fidelity, the certificate and further measures.

`audit_windows` audits a fitted model on a table's windows, `audit_guest` any map of any forecaster. docs/measures.md
explains the measures, docs/audit.md how to use an audit as a gate.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import isfinite, nan
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ibforecast._version import __version__
from ibforecast.core import document
from ibforecast.core.budget import allowance, require_budget
from ibforecast.core.chosen import evenly_spaced
from ibforecast.core.contracts import Explainer, Predictor
from ibforecast.core.errors import ModelFileError, UsageError, require
from ibforecast.core.files import write_atomically
from ibforecast.core.window import Window
from ibforecast.data.windows import Windows
from ibforecast.evaluate.accuracy import accuracy
from ibforecast.evaluate.fidelity import (
    Fidelity,
    Gating,
    Shifts,
    Space,
    native_importance,
    native_points,
    perturb,
)
from ibforecast.evaluate.information import rate_bits
from ibforecast.evaluate.sensitivity import certificate, end_to_end
from ibforecast.explain.chance import Chance
from ibforecast.explain.guest import GivenMap, Guest
from ibforecast.explain.subject import at_rest
from ibforecast.zoo.configs import build
from ibforecast.zoo.saved import DOCUMENT, FittedModel

FORMAT, VERSION = "ibforecast.audit", 1
FILE = "audit.json"
MIN_FIDELITY = 0.9
BATCH = 256

LookBack = Float[Tensor, "batch look_back channel"]


@dataclass(frozen=True)
class Shortfall:
    """A rule that does not hold: what it requires, the measured value, and what to do."""

    rule: str
    value: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.rule} (got {self.value}); {self.remedy}"


@dataclass(frozen=True)
class FidelityAudit:
    """How faithful a map is to its forecaster, compared with a random map of as many points on the same windows.

    `all_deleted` is how far forecasts move if everything is deleted (squared, in units of the window's scale); fidelity
    is a share of it. `points` is the mean number of points a window's map may name, `points_of` the number of points in
    a window.
    """

    fidelity: Fidelity
    chance: Fidelity
    all_deleted: float
    points: float
    points_of: int

    _LOST: ClassVar[str] = "without what the map names the forecast moves too little: try another map"
    _KEPT: ClassVar[str] = "what the map names does not carry the forecast: try another map"
    _STILL: ClassVar[str] = "give windows, or a forecaster, whose forecast depends on the window"

    @property
    def score(self) -> float:
        """The main result: comprehensiveness, clipped at 1 per window, minus sufficiency; NaN if undefined."""
        return self.fidelity.clipped_score

    @property
    def windows(self) -> int:
        """Number of windows measured."""
        return self.fidelity.windows

    def passed(self, min_fidelity: float = MIN_FIDELITY) -> bool:
        """Return whether every rule holds."""
        return not self.shortfalls(min_fidelity)

    def shortfalls(self, min_fidelity: float = MIN_FIDELITY) -> tuple[Shortfall, ...]:
        """Return the rules that do not hold; an undefined score passes no bar."""
        check_bar(min_fidelity)
        rule, fidelity = f"fidelity must be at least {min_fidelity:g}", self.fidelity
        if not isfinite(self.score):
            return (Shortfall(rule, f"undefined: {self._why_undefined()}", self._STILL),)
        if self.score >= min_fidelity:
            return ()
        lost, kept = 1 - fidelity.clipped_comprehensiveness, fidelity.sufficiency
        parts = f"comprehensiveness {fidelity.clipped_comprehensiveness:.4f} less sufficiency {kept:.4f}"
        return (Shortfall(rule, f"{self.score:.4f}: {parts}", self._KEPT if kept >= lost else self._LOST),)

    def in_words(self) -> str:
        """Return the scores as text, one map per line."""
        return "\n".join([self._title(), *self._table()])

    def document(self, min_fidelity: float = MIN_FIDELITY) -> dict[str, Any]:
        """Return everything as plain data, None where undefined, with the verdict at this bar."""
        shortfalls = self.shortfalls(min_fidelity)
        content = {
            "score": self.score,
            "min_fidelity": min_fidelity,
            "passed": not shortfalls,
            "shortfalls": [asdict(shortfall) for shortfall in shortfalls],
            "audit": asdict(self),
        }
        plain: dict[str, Any] = document.without_nan(content)
        return plain

    def _why_undefined(self) -> str:
        if self.all_deleted == 0:
            return "no forecast moves even with everything deleted"
        return "forecasts are not numbers"

    def _title(self) -> str:
        return f"Fidelity over {self.windows} windows; a map names {self.points:.4g} of {self.points_of} points."

    def _rows(self) -> dict[str, Fidelity]:
        return {"the map": self.fidelity, "chance": self.chance}

    def _table(self) -> list[str]:
        head = f"{'':<24}{'score':>10}{'compreh.':>10}{'(raw)':>10}{'suffic.':>10}"
        return [head, *(f"{name:<24}{_cells(fidelity)}" for name, fidelity in self._rows().items())]


@dataclass(frozen=True)
class Audit(FidelityAudit):
    """The audit of a model's explanations on evenly spaced windows of a part of a table.

    `fidelity` and `chance` are with gates deciding again. `frozen` is with the mask held: its comprehensiveness must be
    1 and its sufficiency 0, which checks the code. `replay_bits` and `scramble_bits` belong to the certificate:
    the bits of forecasts that changed over all these windows. `relative`, `gates_relative` and `masks_changed` are the
    end-to-end sensitivity; `rate_bits` is the mean per window, relative to `prior`. `masks` is the number of different
    masks, `empty` the number of windows in which nothing was read.
    """

    frozen: Fidelity
    replay_bits: int
    scramble_bits: int
    compared: int
    scrambled: int
    relative: float
    gates_relative: float
    masks_changed: float
    rate_bits: float
    prior: float
    sealed: bool
    mse: float
    mae: float
    open_rate: float
    largest_open_rate: float
    budget: float
    masks: int
    empty: int
    split: str
    available: int
    table_sha256: str
    weights_sha256: str
    device: str
    ibforecast_version: str
    finished: str

    _LOST: ClassVar[str] = (
        "without its evidence the gate opens something else: "
        "fit with the recipe sealed, or raise absence_weight and departure_weight in a copy of yours"
    )
    _KEPT: ClassVar[str] = (
        "given only its evidence the gate opens something else: "
        "fit with the recipe sealed, or raise consistency_weight in a copy of yours"
    )
    _STILL: ClassVar[str] = "fit longer or with a larger budget, or audit windows in which something happens"

    @property
    def changed_bits(self) -> int:
        """Number of bits of forecasts that changed although context and mask were held; must be zero."""
        return self.replay_bits + self.scramble_bits

    def shortfalls(self, min_fidelity: float = MIN_FIDELITY) -> tuple[Shortfall, ...]:
        """Return the rules that do not hold: the bar, and the certificate at any bar."""
        below = super().shortfalls(min_fidelity)
        if below and self.empty:
            read = f"{below[0].value}, with nothing read in {self.empty} of {self.windows} windows"
            remedy = self._STILL if self.empty == self.windows else below[0].remedy
            below = (Shortfall(below[0].rule, read, remedy),)
        if self.sealed and (self.relative or self.masks_changed):
            moved = f"{_percent(self.relative)} of the squared shift, {_percent(self.masks_changed)} of masks changed"
            remedy = "do not rely on these explanations: the forecast depends on values that were not read"
            below = (*below, Shortfall("nothing unread may move a forecast of a sealed model", moved, remedy))
        if not self.changed_bits:
            return below
        certified = Shortfall(
            "no bit of a forecast may change, context and mask held",
            f"{self.replay_bits} bits on replay, {self.scramble_bits} on scrambling closed tokens, "
            f"over {self.windows} windows",
            "do not rely on these explanations: the forecast is computed from more than they say",
        )
        return (*below, certified)

    def in_words(self) -> str:
        """Return the audit as text, with a note if a good score means little."""
        return "\n".join([self._title(), *self._table(), *self._facts(), *self._notes()])

    def save(self, folder: str | Path, min_fidelity: float = MIN_FIDELITY) -> Path:
        """Write the audit into the folder of its model, whole or not at all; replace an older one."""
        if not (Path(folder) / DOCUMENT).is_file():
            raise UsageError(
                "an audit must be saved in a model's folder", f"{folder}, which is not one", "save the model first"
            )
        path = Path(folder) / FILE
        write_atomically(path, document.write(FORMAT, VERSION, self.document(min_fidelity)).encode())
        return path

    def _rows(self) -> dict[str, Fidelity]:
        return {"own map, re-gated": self.fidelity, "own map, mask held": self.frozen, "chance, re-gated": self.chance}

    def _title(self) -> str:
        return (
            f"Audit of {self.windows} of {self.available} windows ({self.split}): {_percent(self.open_rate)} read, "
            f"at most {_percent(self.largest_open_rate)} of a window (budget {_percent(self.budget)})."
        )

    def _facts(self) -> list[str]:
        # The mask of a sealed model says nothing about a window, so its bits are no rate.
        rate = f"rate          {_number(self.rate_bits, '.1f')} bits per window beyond a prior of {self.prior:g}"
        return [
            f"certificate   {self.changed_bits} bits changed, context and mask held "
            f"({self.compared:,} forecast values compared, {self.scrambled:,} closed points scrambled)",
            f"end to end    other values in closed tokens cause {_percent(self.relative)} of the squared shift that "
            f"deleting everything causes, through the gates {_percent(self.gates_relative)}; "
            f"{_percent(self.masks_changed)} of masks change",
            *([] if self.sealed else [rate]),
            f"errors        MSE {_number(self.mse, '.4f')}, MAE {_number(self.mae, '.4f')} (standardised)",
        ]

    def _notes(self) -> list[str]:
        notes = []
        if self.open_rate == 1:
            notes.append("note: everything is read, so the score is perfect whatever the model does")
        elif self.masks == 1 and self.windows > 1 and not self.empty:
            notes.append("note: the mask is the same in every window, so the score says nothing about its choice")
        if self.sealed and self.relative == self.masks_changed == 0:
            notes.append("note: the model is sealed, and nothing that was not read moved a forecast or a mask")
        if 0 < self.empty < self.windows:
            notes.append(f"note: nothing is read in {self.empty} of the windows")
        return notes


def check_bar(min_fidelity: float) -> None:
    """Refuse a bar outside of [0, 1]."""
    rule = "min_fidelity must lie in [0, 1]"
    require(0 <= min_fidelity <= 1, rule, f"min_fidelity={min_fidelity}", f"try {MIN_FIDELITY}")


def audit_windows(fitted: FittedModel, windows: Windows, count: int, split: str, table_sha256: str) -> Audit:
    """Audit a fitted model on `count` evenly spaced windows; the network must be on their device."""
    device = windows.values.device
    require(count >= 2, "an audit needs a second window to take closed tokens from", f"windows={count}", "try 1024")
    places = evenly_spaced(count, len(windows)).to(device)
    chosen = windows.at(windows.starts[places].cpu().numpy())
    network, prior = fitted.network, fitted.config.objective.prior
    generator = torch.Generator().manual_seed(fitted.summary.seed)
    own, frozen, chance, bits, masks = [], [], [], [], []
    with at_rest(network):
        for window, _ in chosen.batches(BATCH):
            explanation = network(window).explanation
            points, importance = native_points(explanation), native_importance(explanation)
            own.append(_shifts(network, window, importance, points))
            frozen.append(_shifts(network, window, importance, points, gating="frozen"))
            chance.append(_shifts(network, window, _by_chance(network, window, points, generator), points))
            bits.append(rate_bits(explanation, prior))
            masks.append(explanation.mask.flatten(1))
        held = certificate(network, chosen, generator, BATCH)
        free = end_to_end(network, chosen, generator, BATCH)
        measured = accuracy(fitted.predictor, chosen, BATCH)
    mask = torch.cat(masks)
    shifts = Shifts.joined(own)
    return Audit(
        fidelity=shifts.fidelity(),
        chance=Shifts.joined(chance).fidelity(),
        frozen=Shifts.joined(frozen).fidelity(),
        all_deleted=float(shifts.all_deleted.mean()),
        points=float(mask.sum(dim=1).double().mean()) * fitted.config.patch_len,
        points_of=chosen.look_back * chosen.values.shape[1],
        replay_bits=int(held.replay_bits.sum()),
        scramble_bits=int(held.scramble_bits.sum()),
        compared=held.compared,
        scrambled=held.scrambled,
        relative=free.relative,
        gates_relative=free.gates_relative,
        masks_changed=free.masks_changed,
        rate_bits=float(torch.cat(bits).mean()),
        prior=prior,
        sealed=fitted.config.sealed,
        mse=measured.mse,
        mae=measured.mae,
        open_rate=float(measured.open_rate.mean()),
        largest_open_rate=float(measured.open_rate.max()),
        budget=fitted.config.budget,
        masks=len(np.unique(mask.cpu().numpy(), axis=0)),
        empty=int((~mask.any(dim=1)).sum()),
        split=split,
        available=len(windows),
        table_sha256=table_sha256,
        weights_sha256=fitted.weights_sha256,
        device=str(device),
        ibforecast_version=__version__,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def audit_guest(
    function: Callable[[Tensor], Tensor],
    values: LookBack | Float[np.ndarray, "batch look_back channel"],
    importance: Float[Tensor, "..."] | Float[np.ndarray, "..."] | Explainer,
    *,
    budget: float = 0.2,
    space: Space = "frame",
    seed: int = 0,
    batch: int = BATCH,
) -> FidelityAudit:
    """Score a map of any forecaster: how much of the forecast depends on the points it ranks highest.

    `function` forecasts (batch, horizon, channel) from `values` (batch, look_back, channel); a module is put into
    evaluation mode meanwhile. NaN in the values is a gap: it is filled with the mean of the channel and never named.
    `importance` grades every value, with signs dropped, or is an explainer that computes the map. The map may name
    ⌊budget · look_back · channel⌋ points of each window; deleted values become the mean of their channel. `space` is
    that of `evaluate.fidelity.Measure`.
    """
    window = _window(_tensor(values))
    cells, device = window.values[0].numel(), window.values.device
    require_budget(budget)
    points = allowance(budget, cells)
    require(points >= 1, "budget must allow at least one point", f"{budget} of {cells}", "try a larger one")
    grades = importance if isinstance(importance, Explainer) else _grades(_tensor(importance), window)
    guest, generator = Guest(function), torch.Generator(device).manual_seed(seed)
    own, chance = [], []
    with at_rest(guest):
        for first in range(0, len(window.values), batch):
            rows = slice(first, first + batch)
            part = Window(window.values[rows], window.observed[rows], window.phase[rows])
            explainer = grades if isinstance(grades, Explainer) else GivenMap(grades[rows])
            allowed = torch.full((len(part.values),), points, device=device)
            graded = explainer.explain(guest, part, allowed / cells, generator).values
            own.append(_shifts(guest, part, graded, allowed, space=space))
            chance.append(_shifts(guest, part, _by_chance(guest, part, allowed, generator), allowed, space=space))
    shifts = Shifts.joined(own)
    return FidelityAudit(
        fidelity=shifts.fidelity(),
        chance=Shifts.joined(chance).fidelity(),
        all_deleted=float(shifts.all_deleted.mean()),
        points=float(points),
        points_of=cells,
    )


def saved_audit(folder: str | Path, weights_sha256: str) -> Audit | None:
    """Read the audit saved with a model; None if there is none, or if it is of other weights."""
    path = Path(folder) / FILE
    if not path.is_file():
        return None
    try:
        content = document.read(path.read_bytes(), FORMAT, VERSION, ModelFileError)
        audit = build(Audit, _map_leaves(content["audit"], lambda value: nan if value is None else value), FILE)
        if document.fingerprint(content) != document.fingerprint(audit.document(content["min_fidelity"])):
            raise ModelFileError("what it states must follow from its measurements", "something else", "audit again")
    except (ModelFileError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise ModelFileError(f"{FILE} must be as it was written", f"{error} in {folder}", "audit again") from error
    return audit if audit.weights_sha256 == weights_sha256 else None


def _shifts(
    predictor: Predictor,
    window: Window,
    importance: LookBack,
    points: Int[Tensor, " batch"],
    gating: Gating = "regated",
    space: Space = "frame",
) -> Shifts:
    return perturb(predictor, window, importance, points, gating).shifts(space=space)


def _by_chance(
    predictor: Predictor, window: Window, points: Int[Tensor, " batch"], generator: torch.Generator
) -> LookBack:
    return Chance().explain(predictor, window, points / window.values[0].numel(), generator).values


def _window(values: LookBack) -> Window:
    """Return windows without a season: every step has phase 0, and NaN is a gap."""
    observed = ~values.isnan()
    require(len(values) > 0, "an audit needs a window", "none", "give values (batch, look_back, channel)")
    require(
        bool(observed.any(dim=1).all()),
        "every channel must be observed at least once in every window",
        "a channel of only NaN",
        "leave the window or the channel out",
    )
    phase = torch.zeros(values.shape[:2], dtype=torch.int64, device=values.device)
    return Window(values.nan_to_num(0.0), observed, phase)


def _grades(importance: Float[Tensor, "..."], window: Window) -> LookBack:
    require(
        importance.shape == window.values.shape,
        "importance must grade every value of the windows",
        f"{tuple(importance.shape)} for {tuple(window.values.shape)}",
        "give it as (batch, look_back, channel)",
    )
    return importance


def _tensor(values: Float[Tensor, "..."] | Float[np.ndarray, "..."]) -> Float[Tensor, "..."]:
    return values if isinstance(values, Tensor) else torch.tensor(values)


def _cells(fidelity: Fidelity) -> str:
    numbers: Sequence[float] = (
        fidelity.clipped_score,
        fidelity.clipped_comprehensiveness,
        fidelity.comprehensiveness,
        fidelity.sufficiency,
    )
    return "".join(f"{_number(number, '.3f'):>10}" for number in numbers)


def _number(value: float, shape: str) -> str:
    return format(value, shape) if isfinite(value) else "undefined"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %" if isfinite(fraction) else "undefined"


def _map_leaves(nested: Any, change: Callable[[Any], Any]) -> Any:
    """Return the same nested data with every leaf changed."""
    if isinstance(nested, dict):
        return {name: _map_leaves(value, change) for name, value in nested.items()}
    return [_map_leaves(value, change) for value in nested] if isinstance(nested, list) else change(nested)
