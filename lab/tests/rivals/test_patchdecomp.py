from dataclasses import replace

import pytest
import torch
from torch import Tensor

from ibforecast.core.errors import UsageError
from ibforecast.core.window import Window
from ibforecast_lab.rivals.patchdecomp import PatchDecomp, PatchDecompConfig

CONFIG = PatchDecompConfig(look_back=48, horizon=20, channels=3, cycle=24, patch_len=12, width=16, heads=4, layers=2)


def window_of(values: Tensor, horizon: int = 20) -> Window:
    batch, look_back, _ = values.shape
    phase = torch.arange(look_back + horizon).expand(batch, -1) % 24
    return Window(values, torch.ones_like(values, dtype=torch.bool), phase)


def model_of(config: PatchDecompConfig) -> PatchDecomp:
    torch.manual_seed(0)
    return PatchDecomp(config).eval()


@torch.no_grad()
def test_contributions_and_the_window_mean_sum_to_the_forecast() -> None:
    model, window = model_of(CONFIG), window_of(3 + 2 * torch.randn(5, 48, 3))
    contributions = model.contributions(window)
    assert contributions.shape == (5, 4, 3, 20)
    rebuilt = contributions.sum(dim=1).transpose(1, 2) + window.values.mean(dim=1, keepdim=True)
    assert torch.allclose(model(window).values, rebuilt, atol=1e-5)


@torch.no_grad()
def test_multivariate_contributions_of_all_channels_sum_to_the_forecast() -> None:
    model, window = model_of(replace(CONFIG, multivariate=True)), window_of(3 + 2 * torch.randn(5, 48, 3))
    contributions = model.contributions(window)
    assert contributions.shape == (5, 4, 3, 20, 3)
    rebuilt = contributions.sum(dim=(1, 2)) + window.values.mean(dim=1, keepdim=True)
    assert torch.allclose(model(window).values, rebuilt, atol=1e-5)


@torch.no_grad()
def test_patchdecomp_equals_attention_written_head_by_head() -> None:
    model, window = model_of(CONFIG), window_of(torch.randn(1, 48, 3))
    values = window.values[0, :, 1]
    level, scale = values.mean(), (values.var(unbiased=False) + 1e-5).sqrt()
    patches = ((values - level) / scale).view(4, 12)
    source = model.source_encoder(patches @ model.embed[0] + model.embed_bias[0] + model.position[:4])
    target = model.target_encoder(model.position[4:])
    bias = sum(source[s] @ model.patch_bias[s] for s in range(4))
    future = []
    for row in target:
        heads = []
        for head in range(4):
            part = slice(4 * head, 4 * head + 4)
            weights = torch.softmax(model.key(source)[:, part] @ model.query(row)[part] / 2, dim=0)
            heads.append(weights @ model.value(source)[:, part])
        future.append(model.decoder(model.out(torch.cat(heads)) + bias))
    naive = level + scale * torch.cat(future)[:20]
    assert torch.allclose(model(window).values[0, :, 1], naive, atol=1e-5)


@pytest.mark.parametrize("multivariate", [False, True])
@torch.no_grad()
def test_importance_is_one_non_negative_number_per_patch(multivariate: bool) -> None:
    model, window = model_of(replace(CONFIG, multivariate=multivariate)), window_of(torch.randn(2, 48, 3))
    patches = model.importance(window).view(2, 4, 12, 3)
    assert (patches >= 0).all()
    assert torch.equal(patches, patches[:, :, :1].expand_as(patches))
    sizes = model.contributions(window).abs().flatten(3).mean(dim=3)
    assert torch.equal(patches[:, :, 0], sizes)


@torch.no_grad()
def test_channels_affect_each_other_only_if_multivariate() -> None:
    values = torch.randn(2, 48, 3)
    changed = values.clone()
    changed[..., 2] += torch.randn(2, 48)
    for multivariate in (False, True):
        model = model_of(replace(CONFIG, multivariate=multivariate))
        before, after = model(window_of(values)).values, model(window_of(changed)).values
        assert torch.equal(before[..., :2], after[..., :2]) != multivariate


def test_patches_that_do_not_tile_the_look_back_are_refused() -> None:
    with pytest.raises(UsageError, match="patch_len must divide look_back"):
        replace(CONFIG, patch_len=10)


@pytest.mark.parametrize(("setting", "value"), [("heads", 3), ("dropout", 1.0), ("layers", 0)])
def test_invalid_settings_are_refused(setting: str, value: float) -> None:
    with pytest.raises(UsageError, match=setting):
        replace(CONFIG, **{setting: value})
