import pytest
import torch

from ibforecast.core.errors import UsageError
from ibforecast.core.window import Window
from ibforecast_lab.rivals.cyclenet import CycleNet, CycleNetConfig

LOOK_BACK, HORIZON, CHANNELS, CYCLE = 10, 6, 3, 7


def window(batch: int = 4) -> Window:
    first = torch.randint(0, CYCLE, (batch, 1))
    values = torch.randn(batch, LOOK_BACK, CHANNELS)
    return Window(values, torch.ones_like(values, dtype=torch.bool), first + torch.arange(LOOK_BACK + HORIZON))


def with_profile(**settings: object) -> CycleNet:
    model = CycleNet(CycleNetConfig(LOOK_BACK, HORIZON, CHANNELS, CYCLE, **settings)).eval()  # type: ignore[arg-type]
    torch.nn.init.normal_(model.profile)
    return model


@pytest.mark.parametrize("backbone", ["linear", "mlp"])
@pytest.mark.parametrize("normalise", [True, False])
def test_cyclenet_equals_its_equation_even_if_the_cycle_does_not_divide_the_look_back(
    backbone: str, normalise: bool
) -> None:
    model, batch = with_profile(backbone=backbone, width=5, normalise=normalise), window()
    forecast = model(batch).values
    for n in range(len(batch.values)):
        for c in range(CHANNELS):
            past = batch.values[n, :, c]
            level = past.mean() if normalise else 0.0
            scale = (past.var() + 1e-5).sqrt() if normalise else 1.0
            tau = int(batch.phase[n, 0])
            seasonal = [model.profile[(tau + t) % CYCLE, c] for t in range(LOOK_BACK + HORIZON)]
            deviation = torch.stack([(past[t] - level) / scale - seasonal[t] for t in range(LOOK_BACK)])
            future = model.backbone(deviation)
            for h in range(HORIZON):
                expected = (future[h] + seasonal[LOOK_BACK + h]) * scale + level
                torch.testing.assert_close(forecast[n, h, c], expected)


def test_a_backbone_of_zeros_leaves_the_profile_of_the_coming_phases() -> None:
    model, batch = with_profile(backbone="linear", normalise=False), window()
    torch.nn.init.zeros_(model.backbone.weight)
    torch.nn.init.zeros_(model.backbone.bias)
    torch.testing.assert_close(model(batch).values, model.profile[batch.phase[:, LOOK_BACK:] % CYCLE])


def test_the_profile_starts_at_zero_and_has_a_row_per_phase() -> None:
    model = CycleNet(CycleNetConfig(LOOK_BACK, HORIZON, CHANNELS, CYCLE))
    assert model.profile.shape == (CYCLE, CHANNELS)
    assert not model.profile.any()


def test_the_linear_backbone_is_one_map_shared_by_all_channels() -> None:
    model = CycleNet(CycleNetConfig(96, 720, 21, 144, backbone="linear"))
    assert sum(p.numel() for p in model.parameters()) == 96 * 720 + 720 + 144 * 21


def test_an_unknown_backbone_is_refused_with_the_known_ones() -> None:
    config = CycleNetConfig(LOOK_BACK, HORIZON, CHANNELS, CYCLE)
    object.__setattr__(config, "backbone", "cubic")  # bypasses the type checks of the tests
    with pytest.raises(UsageError, match="backbone must be one of linear, mlp"):
        config.__post_init__()


def test_a_horizon_of_zero_is_refused() -> None:
    with pytest.raises(UsageError, match=r"horizon must be at least 1 \(got horizon=0\)"):
        CycleNetConfig(LOOK_BACK, 0, CHANNELS, CYCLE)
