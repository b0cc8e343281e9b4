"""Small networks and windows for hypothesis to draw from."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor

from ibforecast.core.window import Window
from ibforecast.model.config import GateConfig, ModelConfig, ReadoutConfig
from ibforecast.model.network import IBForecast


@dataclass(frozen=True)
class Case:
    """A network with arbitrary weights and a batch of windows to hold it to its word on."""

    network: IBForecast
    window: Window

    @property
    def config(self) -> ModelConfig:
        return self.network.config


def some_config(draw: st.DrawFn, **fixed: Any) -> ModelConfig:
    patch_len, patches, channels = (draw(st.integers(*ends)) for ends in ((1, 4), (1, 5), (1, 4)))
    kind = draw(st.sampled_from(["linear", "mlp", "phase"]))
    gate: dict[str, Any] = {
        "kind": draw(st.sampled_from(["exact", "capped", "threshold"])),
        "attention": draw(st.sampled_from(["joint", "within"])),
        "recent": draw(st.integers(0, 2)),
        "width": 4,
        "heads": 2,
    }
    tokens = patches * channels
    return ModelConfig(
        look_back=patch_len * patches,
        horizon=draw(st.integers(1, 6)),
        channels=channels,
        cycle=draw(st.integers(1, 9)),
        patch_len=patch_len,
        budget=fixed.pop("budget", None) or draw(st.integers(-(-100 // tokens), 100)) / 100,
        frame=fixed.pop("frame", None) or draw(st.sampled_from(["mean", "weighted", "none"])),
        profile=draw(st.booleans()),
        gate=GateConfig(**gate | fixed.pop("gate", {})),
        readout=ReadoutConfig(kind=kind, width=6, cross_channel=kind == "phase" and draw(st.booleans())),
        **fixed,
    )


def built(config: ModelConfig, seed: int) -> IBForecast:
    """A network whose weights are all away from where they start, and small enough not to drown each other."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        network = IBForecast(config)
        with torch.no_grad():
            for parameter in network.parameters():
                if parameter.requires_grad:
                    parameter.add_(0.4 * torch.randn_like(parameter))
    return network.eval()


def some_window(draw: st.DrawFn, config: ModelConfig, gaps: bool) -> Window:
    random = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    batch, steps = draw(st.integers(1, 3)), config.look_back + config.horizon
    values = 30 * torch.randn(batch, config.look_back, config.channels, generator=random)
    share = draw(st.sampled_from([0.0, 0.05, 0.4])) if gaps else 0.0
    observed = torch.rand(values.shape, generator=random) >= share
    tau = torch.randint(0, config.cycle, (batch, 1), generator=random)
    return Window(values.where(observed, torch.zeros(())), observed, (tau + torch.arange(steps)) % config.cycle)


def cases_with(gaps: bool = True, **fixed: Any) -> st.SearchStrategy[Case]:
    @st.composite
    def drawn(draw: st.DrawFn) -> Case:
        config = some_config(draw, **{key: dict(v) if isinstance(v, dict) else v for key, v in fixed.items()})
        network = built(config, draw(st.integers(0, 2**32 - 1)))
        return Case(network, some_window(draw, config, gaps))

    return drawn()


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Equal to the last bit, the sign of zero and the payload of a NaN included."""
    return one.shape == other.shape and torch.equal(one.view(torch.int32), other.view(torch.int32))


@pytest.fixture(scope="session")
def cases() -> Callable[..., st.SearchStrategy[Case]]:
    return cases_with
