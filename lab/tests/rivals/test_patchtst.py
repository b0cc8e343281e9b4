from dataclasses import replace
from typing import Literal

import pytest
import torch

from ibforecast.core.errors import UsageError
from ibforecast.core.window import Window
from ibforecast_lab.rivals.patchtst import PatchTST, PatchTSTConfig

SIZES = PatchTSTConfig(96, 5, 3, 24, width=8, hidden=12, layers=2, heads=2)
VARIANTS = pytest.mark.parametrize("variant", ["library", "official"])


def window(batch: int = 2, channels: int = 3) -> Window:
    values = torch.randn(batch, 96, channels)
    observed, phase = torch.ones_like(values, dtype=torch.bool), torch.zeros(batch, 101, dtype=torch.int64)
    return Window(values, observed, phase)


def used(variant: Literal["library", "official"]) -> PatchTST:
    """Return a network whose batch statistics are not the initial ones."""
    model = PatchTST(replace(SIZES, variant=variant))
    model(window(batch=8))
    return model.eval()


def test_a_look_back_of_96_gives_12_patches_and_the_last_repeats_the_last_value() -> None:
    values = torch.randn(2, 96, 3)
    patches = PatchTST(SIZES).to_patches(values)
    assert patches.shape == (2, 3, 12, 16)
    assert SIZES.patches == 12
    for n in range(12):
        for t in range(16):
            assert torch.equal(patches[:, :, n, t], values[:, min(8 * n + t, 95)])


@pytest.mark.parametrize(("look_back", "patch_len", "stride"), [(96, 16, 8), (50, 16, 8), (20, 5, 7), (9, 9, 1)])
def test_the_configuration_has_the_right_number_of_patches(look_back: int, patch_len: int, stride: int) -> None:
    config = replace(SIZES, look_back=look_back, patch_len=patch_len, stride=stride)
    assert PatchTST(config).to_patches(torch.randn(1, look_back, 3)).shape[2] == config.patches


@VARIANTS
def test_no_channel_affects_another(variant: Literal["library", "official"]) -> None:
    model, batch = used(variant), window()
    changed = batch.values.clone()
    changed[:, :, 1] = torch.randn(2, 96)
    forecast, other = model(batch).values, model(replace(batch, values=changed)).values
    assert torch.equal(forecast[:, :, [0, 2]], other[:, :, [0, 2]])
    assert not torch.allclose(forecast[:, :, 1], other[:, :, 1])


@VARIANTS
def test_patchtst_equals_its_layers_written_head_by_head(variant: Literal["library", "official"]) -> None:
    model, batch = used(variant), window(batch=1, channels=1)
    values = batch.values[0, :, 0]
    level, scale = values.mean(), (values.var(unbiased=False) + 1e-5).sqrt()
    rows = model.embed(model.to_patches(((values - level) / scale)[None, :, None])[0, 0]) + model.position
    earlier = [torch.zeros(12, 12), torch.zeros(12, 12)]
    for layer in model.layers:
        query, key, value = layer.query_key_value(rows).chunk(3, dim=1)
        gathered = []
        for head, own in enumerate((slice(0, 4), slice(4, 8))):
            scores = query[:, own] @ key[:, own].T / 2 + earlier[head]
            gathered.append(scores.softmax(1) @ value[:, own])
            earlier[head] = scores if variant == "official" else earlier[head]
        rows = layer.attention_norm((rows + layer.out(torch.cat(gathered, dim=1)))[None])[0]
        rows = layer.feed_forward_norm((rows + layer.feed_forward(rows))[None])[0]
    expected = model.leave(model.norm(rows[None])[0].flatten()) * scale + level
    torch.testing.assert_close(model(batch).values[0, :, 0], expected, rtol=1e-4, atol=1e-5)


def test_only_the_official_network_learns_its_positions() -> None:
    assert not used("library").position.requires_grad
    official = used("official").position
    assert official.requires_grad
    assert official.abs().max() <= 0.02


def test_the_fixed_positions_are_sines_and_cosines() -> None:
    position = used("library").position
    for n in range(12):
        for place in range(8):
            angle = torch.tensor(n / 10_000 ** (2 * (place // 2) / 8))
            torch.testing.assert_close(position[n, place], angle.cos() if place % 2 else angle.sin())


def test_a_patch_longer_than_the_look_back_is_refused() -> None:
    with pytest.raises(UsageError, match=r"patch_len must not exceed look_back \(got patch_len=16, look_back=12\)"):
        replace(SIZES, look_back=12)
