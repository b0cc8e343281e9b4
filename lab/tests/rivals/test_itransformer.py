from dataclasses import replace

import pytest
import torch
from torch import nn

from ibforecast.core.errors import UsageError
from ibforecast.core.window import Window
from ibforecast_lab.rivals.itransformer import ITransformer, ITransformerConfig

LOOK_BACK, HORIZON, CHANNELS = 12, 5, 4
SIZES = ITransformerConfig(LOOK_BACK, HORIZON, CHANNELS, 7, width=16, hidden=24, layers=2, heads=4)


def window(batch: int = 3) -> Window:
    values, steps = torch.randn(batch, LOOK_BACK, CHANNELS), LOOK_BACK + HORIZON
    observed, phase = torch.ones_like(values, dtype=torch.bool), torch.zeros(batch, steps, dtype=torch.int64)
    return Window(values, observed, phase, torch.rand(batch, steps, 4) - 0.5)


@pytest.mark.parametrize("calendar", [True, False])
def test_permuting_the_channels_permutes_the_forecast(calendar: bool) -> None:
    model, batch = ITransformer(replace(SIZES, calendar=calendar)).eval(), window()
    order = torch.tensor([2, 0, 3, 1])
    permuted = replace(batch, values=batch.values[:, :, order])
    torch.testing.assert_close(model(permuted).values, model(batch).values[:, :, order], rtol=1e-4, atol=1e-5)


def test_itransformer_equals_a_post_norm_layer_written_token_by_token() -> None:
    model, batch = ITransformer(replace(SIZES, layers=1)).eval(), window(batch=1)
    values = batch.values[0]
    scale = (values.var(0, unbiased=False) + 1e-5).sqrt()
    assert batch.calendar is not None
    rows = [model.embed((values[:, c] - values[:, c].mean()) / scale[c]) for c in range(CHANNELS)]
    rows += [model.embed(batch.calendar[0, :LOOK_BACK, feature]) for feature in range(4)]
    layer, final = model.encoder[0], model.encoder[1]
    assert isinstance(layer, nn.TransformerEncoderLayer)
    query_map, key_map, value_map = layer.self_attn.in_proj_weight.chunk(3)
    for c in range(CHANNELS):
        heads = []
        for own in torch.arange(16).chunk(4):
            scores = torch.stack([(query_map @ rows[c])[own] @ (key_map @ other)[own] / 2 for other in rows])
            heads.append(scores.softmax(0) @ torch.stack([(value_map @ other)[own] for other in rows]))
        attended = layer.norm1(rows[c] + layer.self_attn.out_proj(torch.cat(heads)))
        encoded = layer.norm2(attended + layer.linear2(nn.functional.gelu(layer.linear1(attended))))
        expected = model.leave(final(encoded)) * scale[c] + values[:, c].mean()
        torch.testing.assert_close(model(batch).values[0, :, c], expected, rtol=1e-4, atol=1e-5)


def test_only_the_calendar_of_the_look_back_matters() -> None:
    model, batch = ITransformer(SIZES).eval(), window()
    assert batch.calendar is not None
    past, future = batch.calendar.clone(), batch.calendar.clone()
    past[:, :LOOK_BACK] = 0
    future[:, LOOK_BACK:] = 0
    assert not torch.allclose(model(replace(batch, calendar=past)).values, model(batch).values)
    assert torch.equal(model(replace(batch, calendar=future)).values, model(batch).values)


def test_the_calendar_is_needed_only_if_it_is_read() -> None:
    assert ITransformer(SIZES).reads_calendar
    without = ITransformer(replace(SIZES, calendar=False)).eval()
    assert not without.reads_calendar
    assert without(replace(window(), calendar=None)).values.shape == (3, HORIZON, CHANNELS)


def test_a_window_without_a_calendar_is_refused_with_the_remedy() -> None:
    with pytest.raises(UsageError, match="set calendar = false"):
        ITransformer(SIZES)(replace(window(), calendar=None))


def test_heads_that_do_not_divide_the_width_are_refused() -> None:
    with pytest.raises(UsageError, match=r"heads must divide width \(got heads=3, width=16\)"):
        replace(SIZES, heads=3)
