"""Stage 4: readouts read evidence, mask and context, and nothing else."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from ibforecast.core.context import Context
from ibforecast.model.config import GateConfig, ModelConfig, ReadoutConfig
from ibforecast.model.network import IBForecast
from ibforecast.model.stage4_readout import CrossChannel, LinearReadout, MLPReadout, PhaseReadout, Readout

LOOK_BACK, HORIZON, CHANNELS, CYCLE, PATCHES, BATCH = 12, 5, 3, 7, 4, 2


def readout(kind: str) -> Readout:
    torch.manual_seed(0)
    phase = PhaseReadout(LOOK_BACK, HORIZON, PATCHES, CYCLE, 0, 6, 0.5)
    layer = {
        "linear": LinearReadout(LOOK_BACK, HORIZON),
        "mlp": MLPReadout(LOOK_BACK, HORIZON, 6),
        "phase": phase,
        "cross": CrossChannel(phase, LOOK_BACK, CYCLE, CHANNELS, 0.5),
    }[kind]
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return layer.eval()


@pytest.fixture(autouse=True)
def _fixed_seed() -> Iterator[None]:
    with torch.random.fork_rng([]):
        torch.manual_seed(1)
        yield


def inputs() -> tuple[Tensor, Tensor, Context]:
    mask = torch.tensor([[1.0, 0, 0], [0, 1, 1], [0, 0, 0], [1, 1, 0]]).expand(BATCH, PATCHES, CHANNELS)
    evidence = torch.randn(BATCH, LOOK_BACK, CHANNELS) * mask.repeat_interleave(3, dim=1)
    phase = (torch.tensor([[2], [5]]) + torch.arange(LOOK_BACK + HORIZON)) % CYCLE
    frame = torch.randn(BATCH, CHANNELS), 1 + torch.rand(BATCH, CHANNELS)
    return evidence, mask, Context(*frame, phase, torch.randn(CYCLE, CHANNELS))


EVERY_KIND = pytest.mark.parametrize("kind", ["linear", "mlp", "phase", "cross"])


@EVERY_KIND
@torch.no_grad()
def test_the_readout_ignores_frame_and_profile(kind: str) -> None:
    evidence, mask, context = inputs()
    future = readout(kind)(evidence, mask, context)
    assert future.shape == (BATCH, HORIZON, CHANNELS)
    other = replace(context, level=context.level + 9, scale=context.scale * 9, profile=context.profile - 9)
    assert torch.equal(readout(kind)(evidence, mask, other), future)


@EVERY_KIND
@torch.no_grad()
def test_only_the_phase_and_cross_readouts_read_the_phase(kind: str) -> None:
    evidence, mask, context = inputs()
    shifted = replace(context, phase=context.phase + 1)
    moved = not torch.equal(readout(kind)(evidence, mask, shifted), readout(kind)(evidence, mask, context))
    assert moved == (kind in ("phase", "cross"))


@EVERY_KIND
@torch.no_grad()
def test_the_readout_ignores_the_phase_of_the_future(kind: str) -> None:
    evidence, mask, context = inputs()
    phase = context.phase.clone()
    phase[:, LOOK_BACK:] += 1
    later = replace(context, phase=phase)
    assert torch.equal(readout(kind)(evidence, mask, later), readout(kind)(evidence, mask, context))


@EVERY_KIND
@torch.no_grad()
def test_only_the_phase_and_cross_readouts_read_the_mask(kind: str) -> None:
    evidence, mask, context = inputs()
    moved = not torch.equal(readout(kind)(evidence, 1 - mask, context), readout(kind)(evidence, mask, context))
    assert moved == (kind in ("phase", "cross"))


@EVERY_KIND
@torch.no_grad()
def test_only_the_cross_readout_mixes_channels(kind: str) -> None:
    evidence, mask, context = inputs()
    other = evidence.clone()
    other[..., 1] += mask.repeat_interleave(3, dim=1)[..., 1]
    first, second = readout(kind)(evidence, mask, context), readout(kind)(other, mask, context)
    assert (first[..., 1] - second[..., 1]).abs().max() > 1e-3
    apart = (first[..., [0, 2]] - second[..., [0, 2]]).abs().max()
    assert (apart > 1e-3) == (kind == "cross")


@EVERY_KIND
@torch.no_grad()
def test_the_readout_does_not_mix_windows(kind: str) -> None:
    evidence, mask, context = inputs()
    other = evidence.clone()
    other[1] *= -3
    assert torch.equal(readout(kind)(evidence, mask, context)[0], readout(kind)(other, mask, context)[0])


@torch.no_grad()
def test_the_query_of_the_cross_readout_is_that_of_the_phase() -> None:
    evidence, mask, context = inputs()
    cross = readout("cross")
    assert isinstance(cross, CrossChannel)
    inputs_of_attention: list[tuple[Tensor, Tensor]] = []
    cross.attention.register_forward_pre_hook(lambda module, arguments: inputs_of_attention.append(arguments))
    cross(evidence, mask, context)
    query, source = inputs_of_attention[0]
    for b in range(BATCH):
        for c in range(CHANNELS):
            for t in range(LOOK_BACK):
                assert query[b, c, t] == cross.query[int(context.phase[b, t]) % CYCLE, c]
    assert torch.equal(source, evidence.transpose(1, 2))


@torch.no_grad()
def test_the_cross_readout_adds_the_attention_to_the_evidence() -> None:
    evidence, mask, context = inputs()
    cross = readout("cross")
    assert isinstance(cross, CrossChannel)
    query = cross.query[context.phase[:, :LOOK_BACK] % CYCLE].transpose(1, 2)
    gathered = cross.attention(query, evidence.transpose(1, 2)).transpose(1, 2)
    torch.testing.assert_close(
        cross(evidence, mask, context), cross.readout(evidence + gathered, mask, context), rtol=1e-6, atol=1e-6
    )


@torch.no_grad()
def test_the_phase_readout_follows_its_formula() -> None:
    evidence, mask, context = inputs()
    layer = readout("phase")
    assert isinstance(layer, PhaseReadout)
    future = layer(evidence, mask, context)
    for b in range(BATCH):
        for c in range(CHANNELS):
            row = torch.cat([evidence[b, :, c], mask[b, :, c]])
            hidden = layer.enter.weight @ row + layer.enter.bias + layer.phase.weight[int(context.phase[b, 0]) % CYCLE]
            inner = torch.nn.functional.gelu(layer.block[0].weight @ hidden + layer.block[0].bias)
            hidden = hidden + torch.nn.functional.gelu(layer.block[2].weight @ inner + layer.block[2].bias)
            torch.testing.assert_close(future[b, :, c], layer.leave.weight @ hidden + layer.leave.bias)


def test_the_phase_starts_without_effect() -> None:
    evidence, mask, context = inputs()
    layer = PhaseReadout(LOOK_BACK, HORIZON, PATCHES, CYCLE, 0, 6, 0.0).eval()
    shifted = replace(context, phase=context.phase + 3)
    assert torch.equal(layer(evidence, mask, shifted), layer(evidence, mask, context))
    assert layer.phase.weight.requires_grad


@pytest.mark.parametrize("look_back", [5, 6, 8, 9])
def test_the_cross_readout_accepts_any_look_back(look_back: int) -> None:
    phase = PhaseReadout(look_back, HORIZON, 1, CYCLE, 0, 6, 0.0)
    cross = CrossChannel(phase, look_back, CYCLE, CHANNELS, 0.0).eval()
    _, _, context = inputs()
    evidence, mask = torch.randn(BATCH, look_back, CHANNELS), torch.ones(BATCH, 1, CHANNELS)
    assert cross(evidence, mask, context).shape == (BATCH, HORIZON, CHANNELS)


@pytest.mark.parametrize(
    ("kind", "cross", "expected"),
    [
        ("linear", False, LinearReadout),
        ("mlp", False, MLPReadout),
        ("phase", False, PhaseReadout),
        ("phase", True, CrossChannel),
    ],
)
def test_the_configuration_selects_the_readout(kind: str, cross: bool, expected: type[Readout]) -> None:
    network = IBForecast(
        ModelConfig(
            LOOK_BACK,
            HORIZON,
            CHANNELS,
            CYCLE,
            patch_len=3,
            gate=GateConfig(width=8, heads=2),
            readout=ReadoutConfig(kind=kind, width=6, cross_channel=cross),  # type: ignore[arg-type]
        )
    )
    assert type(network.readout) is expected


@EVERY_KIND
def test_dropout_is_used_only_in_training(kind: str) -> None:
    evidence, mask, context = inputs()
    layer = readout(kind)
    assert torch.equal(layer(evidence, mask, context), layer(evidence, mask, context))
    layer.train()
    assert torch.equal(layer(evidence, mask, context), layer(evidence, mask, context)) == (kind in ("linear", "mlp"))


@EVERY_KIND
@torch.no_grad()
def test_windows_of_a_few_versions_of_each_channel_are_read_as_whole_windows_are(kind: str) -> None:
    _, mask, context = inputs()
    versions = torch.randn(5, LOOK_BACK, CHANNELS) * mask[:1].repeat_interleave(3, dim=1)
    which = torch.randint(5, (40, CHANNELS))
    context = Context(
        torch.zeros(40, CHANNELS), torch.ones(40, CHANNELS), context.phase[:1].expand(40, -1), context.profile
    )
    windows = torch.stack([versions[which[:, channel], :, channel] for channel in range(CHANNELS)], dim=-1)
    layer, mask = readout(kind), mask[:1].expand(40, -1, -1)
    expected = layer(windows, mask, context)
    together = layer.of_versions(versions, which, mask, context, [2, 0])
    assert torch.allclose(together, expected[..., [2, 0]], atol=1e-5)
    # A receipt must not depend on which other receipts are computed with it.
    assert torch.equal(layer.of_versions(versions, which, mask, context, [0])[..., 0], together[..., 1])
