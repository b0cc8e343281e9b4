"""The promises of every explainer, checked for each of them with three kinds of predictor."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ibforecast.core.contracts import Explainer, Importance, Predictor, SelfExplaining
from ibforecast.core.window import Window
from ibforecast.explain.chance import Chance
from ibforecast.explain.guest import GivenMap, Guest
from ibforecast.model.config import GateConfig, ModelConfig, ReadoutConfig
from ibforecast.model.network import IBForecast
from ibforecast_lab.experiments.published import numbers
from ibforecast_lab.explainers import EXPLAINERS
from ibforecast_lab.explainers.dynamask import Dynamask
from ibforecast_lab.explainers.extremal_mask import ExtremalMask
from ibforecast_lab.explainers.integrated_gradients import IntegratedGradients
from ibforecast_lab.explainers.native import Native
from ibforecast_lab.explainers.occlusion import Occlusion
from ibforecast_lab.explainers.saliency import Saliency
from ibforecast_lab.explainers.timing import Timing
from ibforecast_lab.recipes import BOOK
from ibforecast_lab.rivals.dlinear import DLinear, DLinearConfig
from ibforecast_lab.rivals.tft import TFT, TFTConfig

LOOK_BACK, HORIZON, CHANNELS, CYCLE, BATCH = 36, 12, 2, 12, 4
SIZES = {"look_back": LOOK_BACK, "horizon": HORIZON, "channels": CHANNELS, "cycle": CYCLE}
SHARE = torch.tensor([0.2, 0.5, 0.1, 0.3])


class UserModel(nn.Module):
    """A small convolutional forecaster with dropout and batch normalisation, as the model of a user may have."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Sequential(nn.Conv1d(CHANNELS, CHANNELS, 3, padding=1), nn.BatchNorm1d(CHANNELS), nn.Tanh())
        self.read = nn.Sequential(nn.Dropout(0.5), nn.Linear(LOOK_BACK, HORIZON))

    def forward(self, values: Tensor) -> Tensor:
        future: Tensor = self.read(self.mix(values.transpose(1, 2))).transpose(1, 2)
        return future


def ours() -> Predictor:
    gate, readout = GateConfig(width=8, heads=2), ReadoutConfig(width=16)
    return IBForecast(ModelConfig(**SIZES, budget=0.4, gate=gate, readout=readout))


PREDICTORS: dict[str, Callable[[], Predictor]] = {
    "ibforecast": ours,
    "dlinear": lambda: DLinear(DLinearConfig(**SIZES, kernel=5)),
    "guest": lambda: Guest(UserModel()),
}


@dataclass(frozen=True)
class Case:
    """An explainer with quick settings, and which of the optional promises it makes.

    `draws`: its map depends on random numbers, drawn for each window. `separate`: a map depends only on its own window.
    """

    name: str
    explainer: Explainer
    draws: bool = False
    separate: bool = True
    optimises: bool = False


CASES = [
    Case("occlusion", Occlusion(patch_len=12, chunk=4)),
    Case("timing", Timing(segments=3, shortest=4, longest=12, samples=10), draws=True),
    Case("integrated_gradients", IntegratedGradients(steps=6, chunk=4)),
    Case("saliency", Saliency()),
    Case("dynamask", Dynamask(steps=6), optimises=True),
    Case("extremal_mask", ExtremalMask(steps=6, width=4), separate=False, draws=True, optimises=True),
    Case("chance", Chance(), draws=True),
    Case("native", Native()),
]


def pairs(keep: Callable[[Case], bool] = lambda case: True) -> pytest.MarkDecorator:
    """Return every explainer with every predictor it can explain."""
    every = [(case, kind) for case in CASES for kind in PREDICTORS if keep(case) and (case.name, kind) != NO_NATIVE]
    return pytest.mark.parametrize(("case", "kind"), every, ids=[f"{case.name}-{kind}" for case, kind in every])


NO_NATIVE = ("native", "guest")
every_pair = pairs()


def build(kind: str) -> Predictor:
    """Build it tiny, with perturbed weights, because some start at zero and would have no effect."""
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        predictor = PREDICTORS[kind]()
        with torch.no_grad():
            for parameter in predictor.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
    return predictor.eval()


def batch_of_windows(seed: int = 1) -> Window:
    """Return windows with gaps at various phases; the first has no gap, the second lacks a whole patch."""
    random = torch.Generator().manual_seed(seed)
    values = 1 + 2 * torch.randn(BATCH, LOOK_BACK, CHANNELS, generator=random)
    observed = torch.rand(BATCH, LOOK_BACK, CHANNELS, generator=random) > 0.05
    observed[0] = True
    observed[1, 12:24, 0] = False
    phase = torch.randint(0, CYCLE, (BATCH, 1), generator=random) + torch.arange(LOOK_BACK + HORIZON)
    return Window(values.where(observed, torch.zeros(())), observed, phase % CYCLE)


def precise(window: Window) -> Window:
    return replace(window, values=window.values.double())


def rows(window: Window, chosen: slice) -> Window:
    return Window(window.values[chosen], window.observed[chosen], window.phase[chosen])


def explain(
    case: Case, predictor: Predictor, window: Window, seed: int = 3, share: Tensor = SHARE, **settings: Any
) -> Importance:
    explainer = replace(case.explainer, **settings) if settings else case.explainer  # type: ignore[type-var]
    return explainer.explain(predictor, window, share, torch.Generator().manual_seed(seed))


def state_of(predictor: Predictor) -> list[Any]:
    """Return copies of everything that an explainer could change."""
    weights = [tensor.clone() for tensor in predictor.state_dict().values()]
    parameters = list(predictor.parameters())
    grads = [None if p.grad is None else p.grad.clone() for p in parameters]
    return [weights, grads, [p.requires_grad for p in parameters], [module.training for module in predictor.modules()]]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, list):
        return len(one) == len(other) and all(same(*both) for both in zip(one, other, strict=True))
    return torch.equal(one, other) if isinstance(one, Tensor) else one == other


def test_every_registered_explainer_has_a_case() -> None:
    assert {case.name for case in CASES} == set(EXPLAINERS)
    for case in CASES:
        assert type(case.explainer) is type(EXPLAINERS[case.name])


def test_every_explainer_of_the_published_tables_is_registered_by_its_name() -> None:
    models = {number.model for table in ("fidelity", "support_recovery") for number in numbers(table)}
    assert models - set(BOOK.forecasters) - {"timing_defaults"} == EXPLAINERS.keys() - {"native"}


@every_pair
def test_a_map_has_a_finite_non_negative_grade_for_every_value(case: Case, kind: str) -> None:
    window = batch_of_windows()
    importance = explain(case, build(kind), window).values
    assert importance.shape == window.values.shape
    assert importance.dtype == window.values.dtype
    assert importance.isfinite().all()
    assert (importance >= 0).all()
    assert not importance.requires_grad
    assert importance.flatten(1).any(dim=1).all()


@every_pair
def test_the_same_seed_gives_the_same_map_and_another_seed_another_if_it_draws(case: Case, kind: str) -> None:
    predictor, window = build(kind), batch_of_windows()
    one = explain(case, predictor, window).values
    assert torch.equal(explain(case, predictor, window).values, one)
    assert torch.equal(explain(case, predictor, window, seed=4).values, one) != case.draws


@pairs(lambda case: case.separate)
def test_a_map_does_not_depend_on_the_other_windows_of_its_batch(case: Case, kind: str) -> None:
    predictor, window, others = build(kind).double(), precise(batch_of_windows()), precise(batch_of_windows(seed=9))
    together = explain(case, predictor, window).values
    mixed = Window(
        torch.cat([100 * others.values[:2], window.values[2:]]),
        torch.cat([others.observed[:2], window.observed[2:]]),
        torch.cat([others.phase[:2], window.phase[2:]]),
    )
    torch.testing.assert_close(explain(case, predictor, mixed).values[2:], together[2:], rtol=1e-6, atol=1e-6)


@pairs(lambda case: case.separate)
def test_a_single_window_has_the_same_map_as_in_a_batch(case: Case, kind: str) -> None:
    """Random numbers are drawn window by window, so for explainers that draw this holds only for the first window.

    In double precision, because Adam turns the last bit of a gradient near zero into a full step: in single precision
    a few of Dynamask's values depend on the rounding in their batch.
    """
    predictor, window = build(kind).double(), precise(batch_of_windows())
    together = explain(case, predictor, window).values
    for row in range(1 if case.draws else BATCH):
        one = slice(row, row + 1)
        single = explain(case, predictor, rows(window, one), share=SHARE[one]).values
        torch.testing.assert_close(single[0], together[row], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("training", [False, True])
@every_pair
def test_explaining_changes_neither_the_predictor_nor_the_global_generator(
    case: Case, kind: str, training: bool
) -> None:
    predictor, window = build(kind).train(training), batch_of_windows()
    next(predictor.children()).train(not training)
    first, *_ = predictor.parameters()
    first.grad = torch.full_like(first, 7.0)
    first.requires_grad_(False)
    before_values = [window.values.clone(), window.observed.clone(), window.phase.clone()]
    before, drawn = state_of(predictor), torch.get_rng_state()
    explain(case, predictor, window)
    assert same(state_of(predictor), before)
    assert torch.equal(torch.get_rng_state(), drawn)
    assert same([window.values, window.observed, window.phase], before_values)
    assert torch.is_grad_enabled()


@every_pair
def test_a_predictor_in_training_mode_is_explained_in_evaluation_mode(case: Case, kind: str) -> None:
    predictor, window = build(kind), batch_of_windows()
    at_rest = explain(case, predictor, window).values
    assert torch.equal(explain(case, predictor.train(), window).values, at_rest)


@every_pair
def test_a_missing_value_is_graded_exactly_zero_and_never_read(case: Case, kind: str) -> None:
    predictor, window = build(kind), batch_of_windows()
    importance = explain(case, predictor, window).values
    assert not importance[~window.observed].any()
    filled = replace(window, values=window.values.where(window.observed, torch.tensor(1e6)))
    assert torch.equal(explain(case, predictor, filled).values, importance)


@every_pair
def test_a_channel_without_a_single_observation_leaves_the_map_finite(case: Case, kind: str) -> None:
    window = batch_of_windows()
    window.observed[2, :, 1] = False
    importance = explain(case, build(kind), window).values
    assert importance.isfinite().all()
    assert not importance[2, :, 1].any()


@every_pair
def test_a_constant_window_leaves_the_map_finite(case: Case, kind: str) -> None:
    window = batch_of_windows()
    window.values[3] = 0.0
    assert explain(case, build(kind), window).values.isfinite().all()


@every_pair
def test_a_map_is_the_same_if_gradients_are_off_or_the_values_have_a_graph(case: Case, kind: str) -> None:
    predictor, window = build(kind), batch_of_windows()
    importance = explain(case, predictor, window).values
    with torch.no_grad():
        assert torch.equal(explain(case, predictor, window).values, importance)
    tracked = replace(window, values=window.values.clone().requires_grad_())
    assert torch.equal(explain(case, predictor, tracked).values, importance)
    assert tracked.values.grad is None


@pairs(lambda case: "chunk" in getattr(case.explainer, "__dataclass_fields__", {}))
def test_the_chunk_size_changes_only_rounding(case: Case, kind: str) -> None:
    predictor, window = build(kind), batch_of_windows()
    one, many = (explain(case, predictor, window, chunk=chunk).values for chunk in (1, 1000))
    torch.testing.assert_close(one, many, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_reported_passes_are_the_passes_made(case: Case) -> None:
    seen = {"forwards": 0, "backwards": 0}

    class Counting(DLinear):
        """A forecaster that counts the windows of its forward and backward passes."""

        def forward(self, window: Window, held: Any = None) -> Any:
            forecast = super().forward(window, held)
            seen["forwards"] += len(window.values)
            if forecast.values.requires_grad:
                forecast.values.register_hook(lambda slope: seen.update(backwards=seen["backwards"] + len(slope)))
            return forecast

        def importance(self, window: Window) -> Tensor:
            self(window)
            return super().importance(window)

    torch.manual_seed(0)
    predictor = Counting(DLinearConfig(**SIZES, kernel=5))
    importance = explain(case, predictor, batch_of_windows())
    assert importance.forwards * BATCH == seen["forwards"]
    assert importance.backwards * BATCH == seen["backwards"]


@pairs(lambda case: case.optimises)
def test_optimisers_report_every_step_with_the_loss_of_every_window(case: Case, kind: str) -> None:
    calls: list[tuple[int, Tensor]] = []
    explain(case, build(kind), batch_of_windows(), on_step=lambda step, loss: calls.append((step, loss)))
    assert [step for step, _ in calls] == list(range(6))
    assert all(loss.shape == (BATCH,) and loss.isfinite().all() and not loss.requires_grad for _, loss in calls)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_explainers_are_frozen_and_equal_if_their_settings_are(case: Case) -> None:
    assert replace(case.explainer) == case.explainer  # type: ignore[type-var]
    assert hash(replace(case.explainer)) == hash(case.explainer)  # type: ignore[type-var]
    with pytest.raises(AttributeError):
        case.explainer.steps = 1  # type: ignore[attr-defined]


def test_a_given_map_is_an_explainer() -> None:
    window, predictor = batch_of_windows(), build("guest")
    signed = torch.randn(window.values.shape, generator=torch.Generator().manual_seed(5))
    importance = explain(Case("given", GivenMap(signed)), predictor, window)
    assert torch.equal(importance.values, signed.abs() * window.observed)
    assert (importance.forwards, importance.backwards) == (0, 0)


def test_only_the_guest_has_no_native_explanation() -> None:
    assert [kind for kind in PREDICTORS if not isinstance(build(kind), SelfExplaining)] == ["guest"]


def test_a_recurrent_predictor_can_be_explained_with_windows_that_have_a_calendar() -> None:
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        predictor = TFT(TFTConfig(**SIZES, width=8, heads=2))
    calendar = torch.rand(BATCH, LOOK_BACK + HORIZON, 4, generator=torch.Generator().manual_seed(0)) - 0.5
    window = replace(batch_of_windows(), calendar=calendar)
    for name in ("occlusion", "saliency", "integrated_gradients"):
        assert explain(Case(name, EXPLAINERS[name]), predictor, window).values.any()
