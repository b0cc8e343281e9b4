"""Pretrained models as rivals: any module from a maker and local weights, and Chronos-2."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ibforecast.core.errors import DataError, MissingExtraError, UsageError
from ibforecast.core.sizes import Sizes
from ibforecast.core.window import Window
from ibforecast_lab.data.resident import resident
from ibforecast_lab.experiments.ledger import Cell
from ibforecast_lab.experiments.parts import Parts
from ibforecast_lab.experiments.studies import audited
from ibforecast_lab.recipes import resolve
from ibforecast_lab.rivals.pretrained import FOLDER, Pretrained, PretrainedConfig

LOOK_BACK, HORIZON, CHANNELS = 12, 4, 3


class Small(nn.Module):
    """A linear map over time with dropout, which evaluation mode switches off."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(LOOK_BACK, HORIZON)
        self.dropout = nn.Dropout(0.5)

    def forward(self, values: Tensor) -> Tensor:
        forecast: Tensor = self.dropout(self.map(values.transpose(1, 2))).transpose(1, 2)
        return forecast


def make(config: PretrainedConfig) -> nn.Module:
    """Load a small model from a safetensors file."""
    module = Small()
    module.load_state_dict(load_file(config.path))
    return module


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    torch.manual_seed(0)
    module = Small().eval()
    save_file(module.state_dict(), tmp_path / "small.safetensors")
    monkeypatch.setenv(FOLDER, str(tmp_path))
    return module


def config(**settings: Any) -> PretrainedConfig:
    return PretrainedConfig(LOOK_BACK, HORIZON, CHANNELS, 6, **settings)


def window(batch: int = 5) -> Window:
    values = torch.randn(batch, LOOK_BACK, CHANNELS, generator=torch.Generator().manual_seed(1))
    phase = torch.arange(LOOK_BACK + HORIZON).repeat(batch, 1)
    return Window(values, torch.ones_like(values, dtype=torch.bool), phase)


def own() -> Pretrained:
    return Pretrained(config(maker=f"{__name__}:make", weights="small.safetensors"))


def test_a_module_with_local_weights_forecasts_as_it_did_where_it_was_trained(trained: Small) -> None:
    rival, some = own(), window()
    assert torch.allclose(rival(some).values, trained(some.values))
    assert not [weight for weight in rival.parameters() if weight.requires_grad]
    assert not rival.module.training


def test_weights_that_are_not_here_are_refused_with_the_place_where_they_belong(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"must be on this machine.*set IBFORECAST_WEIGHTS"):
        Pretrained(config(maker=f"{__name__}:make", weights=str(tmp_path / "nowhere")))


@pytest.mark.parametrize("maker", ["chronos3", "ibforecast_lab:nothing", "no.such.module:make"])
def test_an_unknown_maker_is_refused(maker: str) -> None:
    with pytest.raises(UsageError, match=r"package\.module:function"):
        Pretrained(config(maker=maker))


def test_the_audit_compares_maps_of_the_module_with_chance(trained: Small) -> None:
    random = torch.Generator().manual_seed(2)
    past = torch.randn(30, LOOK_BACK, CHANNELS, generator=random).numpy()
    future = torch.randn(30, HORIZON, CHANNELS, generator=random).numpy()
    test = resident(past, future, torch.zeros(30, dtype=torch.int64).numpy())
    rows = audited.study(own(), Parts(test, test, test), Cell("Tiny", HORIZON, "small", 1, look_back=LOOK_BACK))
    scores = {row["explainer"]: row["score"] for row in rows}
    assert list(scores)[::2] == list(audited.AUDITED)
    assert scores["integrated_gradients"] > scores["chance, for integrated_gradients"] + 0.2
    rival = resolve("seasonal-naive", Sizes(LOOK_BACK, HORIZON, CHANNELS, 6)).build(0)
    with pytest.raises(UsageError, match="needs a pretrained model"):
        audited.study(rival, Parts(test, test, test), Cell("Tiny", HORIZON, "seasonal-naive", 1, look_back=LOOK_BACK))


# --- Chronos-2 ---


class FakeChronos(nn.Module):
    """A module with the interface of Chronos-2: patches of 3 steps, three quantiles, sums over the group."""

    def forward(self, context: Tensor, group_ids: Tensor, num_output_patches: int) -> Any:
        """Forecast the mean over the group of last values, plus the number of the quantile."""
        last = torch.stack([context[group_ids == group, -1].mean() for group in group_ids])
        steps = torch.arange(3 * num_output_patches)
        return SimpleNamespace(quantile_preds=last[:, None, None] + 10 * torch.arange(-1, 2)[:, None] + steps)


@pytest.fixture
def chronos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    calls: list[Any] = []

    class Chronos2Pipeline:
        model, model_output_patch_size, model_prediction_length = FakeChronos(), 3, 9
        quantiles = (0.1, 0.5, 0.9)

        @classmethod
        def from_pretrained(cls, *arguments: Any, **settings: Any) -> "Chronos2Pipeline":
            calls.append((arguments, settings))
            return cls()

    module = ModuleType("chronos")
    module.Chronos2Pipeline = Chronos2Pipeline  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "chronos", module)
    monkeypatch.setenv(FOLDER, str(tmp_path))
    (tmp_path / "chronos-2").mkdir()
    return calls


def test_chronos_forecasts_its_median_for_all_channels_of_a_window_as_one_group(chronos: list[Any]) -> None:
    rival, some = resolve("chronos-2", config()).build(0), window()
    forecast = rival(some).values
    expected = some.values[:, -1].mean(dim=1)[:, None, None] + torch.arange(HORIZON)[:, None]
    assert torch.allclose(forecast, expected.expand(-1, -1, CHANNELS))


def test_chronos_is_loaded_from_a_local_folder_of_safetensors(chronos: list[Any], tmp_path: Path) -> None:
    resolve("chronos-2", config()).build(0)
    assert chronos == [((str(tmp_path / "chronos-2"),), {"local_files_only": True, "use_safetensors": True})]


def test_a_horizon_beyond_that_of_chronos_is_refused(chronos: list[Any]) -> None:
    with pytest.raises(UsageError, match="at most 9 steps"):
        Pretrained(PretrainedConfig(LOOK_BACK, 10, CHANNELS, 6))


def test_without_its_package_chronos_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "chronos", None)
    with pytest.raises(MissingExtraError, match="chronos"):
        Pretrained(config())
