"""Windows that react to values that were not read: none of a sealed model, and nearly all of a conditional one."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from ibforecast.core.context import Context
from ibforecast.core.errors import UsageError
from ibforecast.core.explanation import Explanation, Forecast
from ibforecast.core.tokens import spread
from ibforecast.core.window import Window
from ibforecast.data.windows import Windows
from ibforecast.model.config import GateConfig, ModelConfig, ReadoutConfig
from ibforecast.model.network import IBForecast
from ibforecast.model.reading import SealedForecast
from ibforecast_lab.measures.unread import KINDS, reactions, scrambles

LOOK_BACK, HORIZON, CHANNELS, CYCLE, ROWS, PATCH_LEN = 12, 4, 2, 5, 60, 2
COUNT = ROWS - LOOK_BACK - HORIZON + 1


def build(kind: type[IBForecast] = SealedForecast, **changes: Any) -> IBForecast:
    settings = {"sealed": True, "frame": "seasonal", "gate": GateConfig(attention="none", recent=1, every=3)} | changes
    readout = ReadoutConfig(width=6, by_channel=True, cross_channel=True)
    config = ModelConfig(
        LOOK_BACK, HORIZON, CHANNELS, CYCLE, patch_len=PATCH_LEN, budget=0.4, readout=readout, **settings
    )
    with torch.random.fork_rng([]):
        torch.manual_seed(1)
        forecaster = kind(config)
        with torch.no_grad():
            for parameter in forecaster.parameters():
                parameter.add_(0.4 * torch.randn_like(parameter))
    return forecaster.eval()


def conditional(**changes: Any) -> IBForecast:
    return build(IBForecast, **{"sealed": False, "frame": "weighted", "gate": GateConfig(width=4, heads=2)} | changes)


def windows(missing: float = 0.1) -> Windows:
    random = torch.Generator().manual_seed(0)
    values = torch.randn(ROWS, CHANNELS, generator=random).cumsum(0)
    observed = torch.rand(ROWS, CHANNELS, generator=random) >= missing
    phase = torch.arange(ROWS + HORIZON) % CYCLE
    return Windows(values.where(observed, torch.zeros(())), observed, phase, torch.arange(COUNT), LOOK_BACK, HORIZON)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("batch", [7, 1024])
def test_no_window_of_a_sealed_model_reacts_to_any_kind_of_scrambling(missing: float, batch: int) -> None:
    reacted = reactions(build(), windows(missing), generator(), batch)
    assert tuple(reacted) == KINDS
    for reaction in reacted.values():
        assert len(reaction.anything) == COUNT
        assert not (reaction.mask | reaction.context | reaction.forecast | reaction.anything).any()


def test_every_kind_of_scrambling_moves_a_conditional_model() -> None:
    for name, reaction in reactions(conditional(), windows(), generator()).items():
        assert reaction.context.all(), name
        assert reaction.forecast.all(), name
        assert reaction.anything.all(), name
    assert reactions(conditional(), windows(), generator())["noise"].mask.any()


def test_with_a_fixed_mask_and_no_frame_only_the_forecast_of_a_model_that_peeks_reacts() -> None:
    class Peeking(SealedForecast):
        """A sealed reader that adds a little of the first unread value that it is shown to the forecast."""

        def forward(self, window: Window, held: Context | None = None) -> Forecast:
            forecast = super().forward(window, held)
            assert forecast.explanation is not None
            closed = ~spread(forecast.explanation.mask, PATCH_LEN)
            return replace(forecast, values=forecast.values + 1e-3 * (window.values * closed).sum(dim=1, keepdim=True))

    for name, reaction in reactions(build(Peeking), windows(), generator()).items():
        assert reaction.forecast.all(), name
        assert not (reaction.mask | reaction.context).any(), name


def test_evidence_that_lets_unread_values_through_is_noticed_without_a_change_of_the_forecast() -> None:
    class Leaking(SealedForecast):
        """A sealed reader whose evidence contains unread values that its forecast leaves out."""

        def forward(self, window: Window, held: Context | None = None) -> Forecast:
            forecast = super().forward(window, held)
            own = forecast.explanation
            assert own is not None
            return replace(forecast, explanation=replace(own, evidence=own.evidence + window.values))

    reaction = reactions(build(Leaking), windows(missing=0.0), generator())["noise"]
    assert reaction.anything.all()
    assert not reaction.forecast.any()


@torch.no_grad()
def test_scrambling_replaces_all_that_was_not_read_and_leaves_the_rest() -> None:
    data = windows()
    window, donor = data.look_backs(data.starts[:6]), data.look_backs(data.starts[20:26])
    explanation: Explanation = build()(window).explanation
    read = spread(explanation.mask, PATCH_LEN)
    for name, other in scrambles(window, explanation.mask, donor, generator()):
        assert torch.equal(other.values[read], window.values[read])
        replaced = torch.ones_like(read) if name != "another window" else donor.values != window.values
        assert _differ(other.values, window.values)[~read & replaced].all()
        assert torch.equal(other.observed, read if name == "unobserved" else window.observed), name


def _differ(one: Tensor, other: Tensor) -> Tensor:
    return (one != other) | one.isnan() | other.isnan()


def test_one_window_has_no_other_to_take_values_from() -> None:
    with pytest.raises(UsageError, match="second window"):
        reactions(build(), windows().at(range(1)), generator())
