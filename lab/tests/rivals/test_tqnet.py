import math

import pytest
import torch

from ibforecast.core.errors import UsageError
from ibforecast.core.window import Window
from ibforecast_lab.rivals.tqnet import TQNet, TQNetConfig

LOOK_BACK, HORIZON, CHANNELS, CYCLE, HEADS = 12, 5, 3, 7, 4


def window(batch: int = 2) -> Window:
    first = torch.randint(0, CYCLE, (batch, 1))
    values = torch.randn(batch, LOOK_BACK, CHANNELS)
    return Window(values, torch.ones_like(values, dtype=torch.bool), first + torch.arange(LOOK_BACK + HORIZON))


def model(**settings: object) -> TQNet:
    made = TQNet(TQNetConfig(LOOK_BACK, HORIZON, CHANNELS, CYCLE, width=8, **settings)).eval()  # type: ignore[arg-type]
    torch.nn.init.normal_(made.query)
    return made


def test_a_query_is_the_periodic_slice_of_the_table_that_starts_at_the_phase_of_the_look_back() -> None:
    made, batch = model(), window()
    queries = made.queries(batch, LOOK_BACK)
    for n in range(len(batch.values)):
        for c in range(CHANNELS):
            for t in range(LOOK_BACK):
                assert queries[n, c, t] == made.query[(int(batch.phase[n, 0]) + t) % CYCLE, c]


def test_tqnet_equals_attention_written_head_by_head_and_channel_by_channel() -> None:
    made, batch = model(), window()
    values = batch.values
    series = ((values - values.mean(1, keepdim=True)) / (values.var(1, keepdim=True) + 1e-5).sqrt()).transpose(1, 2)
    part = LOOK_BACK // HEADS
    query_map, key_map, value_map = made.attention.in_proj_weight.chunk(3)
    query_bias, key_bias, value_bias = made.attention.in_proj_bias.chunk(3)
    for n in range(len(values)):
        query = made.queries(batch, LOOK_BACK)[n] @ query_map.T + query_bias
        key, value = series[n] @ key_map.T + key_bias, series[n] @ value_map.T + value_bias
        for c in range(CHANNELS):
            heads = []
            for head in range(HEADS):
                own = slice(head * part, (head + 1) * part)
                weights = torch.stack([query[c, own] @ key[other, own] / math.sqrt(part) for other in range(CHANNELS)])
                heads.append(weights.softmax(0) @ value[:, own])
            hidden = made.enter(series[n, c] + made.attention.out_proj(torch.cat(heads)))
            future = made.leave(hidden + made.block(hidden))
            expected = future * (values[n, :, c].var() + 1e-5).sqrt() + values[n, :, c].mean()
            torch.testing.assert_close(made(batch).values[n, :, c], expected, rtol=1e-4, atol=1e-5)


def test_an_untrained_network_attends_alike_for_all_channels() -> None:
    made, batch = TQNet(TQNetConfig(LOOK_BACK, HORIZON, CHANNELS, CYCLE, width=8)).eval(), window()
    series = batch.values.transpose(1, 2)
    gathered, _ = made.attention(made.queries(batch, LOOK_BACK), series, series, need_weights=False)
    torch.testing.assert_close(gathered, gathered[:, :1].expand_as(gathered))


def test_without_normalisation_the_level_of_the_window_reaches_the_network() -> None:
    made, batch = model(normalise=False), window()
    raised = Window(batch.values + 1, batch.observed, batch.phase)
    assert not torch.allclose(made(raised).values, made(batch).values + 1, atol=1e-2)


def test_heads_that_do_not_divide_the_look_back_are_refused_with_divisors() -> None:
    with pytest.raises(UsageError, match=r"heads must divide look_back \(got heads=5, look_back=12\); try 1, 2, 3"):
        TQNetConfig(LOOK_BACK, HORIZON, CHANNELS, CYCLE, heads=5)


def test_a_dropout_of_one_is_refused() -> None:
    with pytest.raises(UsageError, match=r"attention_dropout must lie in \[0, 1\)"):
        TQNetConfig(LOOK_BACK, HORIZON, CHANNELS, CYCLE, attention_dropout=1.0)
