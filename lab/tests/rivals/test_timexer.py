"""TimeXer: what a channel learns of the others, and the network written channel by channel."""

from dataclasses import replace

import pytest
import torch

from ibforecast.core.errors import UsageError
from ibforecast.core.window import Window
from ibforecast_lab.rivals.timexer import TimeXer, TimeXerConfig

SIZES = TimeXerConfig(48, 5, 3, 24, width=8, hidden=12, layers=2, heads=2)


def window(batch: int = 2) -> Window:
    values = torch.randn(batch, 48, 3)
    observed, phase = torch.ones_like(values, dtype=torch.bool), torch.zeros(batch, 53, dtype=torch.int64)
    return Window(values, observed, phase, torch.rand(batch, 53, 4) - 0.5)


def test_timexer_equals_its_stages_written_channel_by_channel() -> None:
    model, batch = TimeXer(replace(SIZES, layers=1)).eval(), window(batch=1)
    values = batch.values[0]
    level, scale = values.mean(0), (values.var(0, unbiased=False) + 1e-5).sqrt()
    framed = (values - level) / scale
    assert batch.calendar is not None
    calendar = batch.calendar[0, :48]
    rows = [framed[:, c] for c in range(3)] + [calendar[:, feature] for feature in range(4)]
    series = torch.stack([model.embed_series(row) for row in rows])[None]
    layer = model.layers[0]
    for c in range(3):
        patches = [model.embed(framed[16 * n : 16 * n + 16, c]) + model.position[n] for n in range(3)]
        tokens = torch.stack([*patches, model.whole[c, 0]])[None]
        tokens = layer.within_norm(tokens + layer.within(tokens, tokens))
        last = layer.across_norm(tokens[:, -1:] + layer.across(tokens[:, -1:], series))
        tokens = torch.cat([tokens[:, :-1], last], dim=1)
        tokens = model.norm(layer.feed_forward_norm(tokens + layer.feed_forward(tokens)))
        expected = model.leave(tokens.flatten()) * scale[c] + level[c]
        torch.testing.assert_close(model(batch).values[0, :, c], expected, rtol=1e-4, atol=1e-5)


def test_a_channel_learns_of_the_others_only_through_its_own_token() -> None:
    model, batch = TimeXer(SIZES).eval(), window()
    changed = batch.values.clone()
    changed[:, :, 1] = torch.randn(2, 48)
    other = replace(batch, values=changed)
    assert not torch.allclose(model(batch).values[:, :, 0], model(other).values[:, :, 0])
    with torch.no_grad():
        for layer in model.layers:
            layer.across.out.weight.zero_()
    assert torch.equal(model(batch).values[:, :, [0, 2]], model(other).values[:, :, [0, 2]])


def test_only_the_calendar_of_the_look_back_matters() -> None:
    model, batch = TimeXer(SIZES).eval(), window()
    assert batch.calendar is not None
    past, future = batch.calendar.clone(), batch.calendar.clone()
    past[:, :48] = 0
    future[:, 48:] = 0
    assert not torch.allclose(model(replace(batch, calendar=past)).values, model(batch).values)
    assert torch.equal(model(replace(batch, calendar=future)).values, model(batch).values)


def test_a_patch_that_does_not_divide_the_look_back_is_refused() -> None:
    with pytest.raises(UsageError, match=r"patch_len must divide look_back \(got patch_len=16, look_back=50\)"):
        replace(SIZES, look_back=50)
