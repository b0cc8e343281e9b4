"""The room and its neighbours: what they import; its names, its simplest explainers, and the predictor at rest."""

import ast
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import ibforecast
from ibforecast.core.contracts import Importance
from ibforecast.core.errors import UsageError
from ibforecast.core.tokens import spread
from ibforecast.core.window import Window
from ibforecast.explain.chance import Chance
from ibforecast.explain.guest import Guest
from ibforecast.explain.subject import at_rest
from ibforecast.model.network import IBForecast
from ibforecast_lab.experiments.published import numbers
from ibforecast_lab.explainers import EXPLAINERS
from ibforecast_lab.explainers.native import Native
from ibforecast_lab.recipes import BOOK
from ibforecast_lab.rivals.tft import TFT, TFTConfig

Make = Callable[..., IBForecast]
Explain = Callable[..., Importance]
HOUSE = Path(ibforecast.__file__).parent


@pytest.mark.parametrize(
    ("room", "further"),
    [
        ("explain", ("ibforecast.layers",)),
        ("evaluate", ("ibforecast.data", "numpy")),
        ("train", ("ibforecast.data", "safetensors")),
    ],
)
def test_a_room_knows_the_contract_and_no_concrete_model_nor_anything_optional(
    room: str, further: tuple[str, ...]
) -> None:
    allowed = ("ibforecast.core", f"ibforecast.{room}", "torch", "jaxtyping", *further)
    for path in (HOUSE / room).glob("*.py"):
        for module in imported_in(path):
            known = any(f"{module}.".startswith(f"{name}.") for name in allowed)
            assert known or module.split(".")[0] in sys.stdlib_module_names, (path, module)


def imported_in(path: Path) -> list[str]:
    """The modules a file imports, wherever in it."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf8"))))
    plain = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return plain + [str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)]


def test_every_explainer_of_the_published_tables_is_there_by_its_name() -> None:
    models = {number.model for table in ("fidelity", "support_recovery") for number in numbers(table)}
    assert models - set(BOOK.forecasters) - {"timing_defaults"} == EXPLAINERS.keys() - {"native"}


def test_the_native_explanation_is_the_models_own(make_model: Make, explain: Explain, window: Window) -> None:
    model = make_model()
    importance = explain(Native(), model, window)
    with torch.no_grad():
        probability = model(window).explanation.probability
    assert torch.equal(importance.values, spread(probability, 12) * window.observed)
    assert (importance.forwards, importance.backwards) == (1, 0)


def test_a_model_without_an_explanation_of_its_own_is_refused_by_name(explain: Explain, window: Window) -> None:
    with pytest.raises(UsageError, match=r"explains itself \(got Guest\); use .*occlusion"):
        explain(Native(), Guest(lambda values: values), window)


def test_chance_is_uniform_differs_by_generator_and_asks_nothing_of_the_predictor(explain: Explain) -> None:
    values = torch.zeros(20, 96, 7)
    window = Window(values, torch.ones_like(values, dtype=torch.bool), torch.arange(100).expand(20, -1))
    guest = Guest(lambda values: pytest.fail("it was asked"))
    one, other = (explain(Chance(), guest, window, seed=seed).values for seed in (0, 1))
    assert (one != other).double().mean() > 0.99
    assert ((one >= 0) & (one < 1)).all()
    assert abs(float(one.mean()) - 0.5) < 0.01
    assert abs(float(one.std()) - 12**-0.5) < 0.01
    assert abs(float(torch.corrcoef(torch.stack([one[:, 1:].flatten(), one[:, :-1].flatten()]))[0, 1])) < 0.03


def test_whatever_goes_wrong_the_predictor_is_woken_as_it_was() -> None:
    guest = Guest(nn.Sequential(nn.Dropout(), nn.Linear(2, 2))).train()
    guest.function[1].eval()  # type: ignore[index]
    modes = [module.training for module in guest.modules()]

    def interrupted() -> None:
        with at_rest(guest):
            assert not any(module.training for module in guest.modules())
            raise RuntimeError("midway")

    with pytest.raises(RuntimeError, match="midway"):
        interrupted()
    assert [module.training for module in guest.modules()] == modes
    assert torch.is_grad_enabled()


def test_cudnn_stands_aside_for_recurrent_predictors_alone_and_comes_back() -> None:
    found = torch.backends.cudnn.enabled
    recurrent = TFT(TFTConfig(36, 12, 2, 12, width=8, heads=2))
    for predictor, expected in ((recurrent, False), (Guest(nn.Linear(2, 2)), found)):
        with at_rest(predictor):
            assert torch.backends.cudnn.enabled is expected
        assert torch.backends.cudnn.enabled is found


def test_a_recurrent_predictor_that_reads_the_calendar_can_be_explained(explain: Explain, window: Window) -> None:
    torch.manual_seed(0)
    predictor = TFT(TFTConfig(36, 12, 2, 12, width=8, heads=2)).double()
    calendar = torch.rand(3, 48, 4, generator=torch.Generator().manual_seed(0)).double() - 0.5
    given = Window(window.values, window.observed, window.phase, calendar)
    for name in ("occlusion", "saliency", "integrated_gradients"):
        assert explain(EXPLAINERS[name], predictor, given).values.any()
