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
    made = {
        "linear": LinearReadout(LOOK_BACK, HORIZON),
        "mlp": MLPReadout(LOOK_BACK, HORIZON, 6),
        "phase": phase,
        "cross": CrossChannel(phase, LOOK_BACK, CYCLE, CHANNELS, 0.5),
    }[kind]
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return made.eval()


@pytest.fixture(autouse=True)
def _the_same_numbers_every_time() -> Iterator[None]:
    with torch.random.fork_rng([]):
        torch.manual_seed(1)
        yield


def seen() -> tuple[Tensor, Tensor, Context]:
    mask = torch.tensor([[1.0, 0, 0], [0, 1, 1], [0, 0, 0], [1, 1, 0]]).expand(BATCH, PATCHES, CHANNELS)
    evidence = torch.randn(BATCH, LOOK_BACK, CHANNELS) * mask.repeat_interleave(3, dim=1)
    phase = (torch.tensor([[2], [5]]) + torch.arange(LOOK_BACK + HORIZON)) % CYCLE
    frame = torch.randn(BATCH, CHANNELS), 1 + torch.rand(BATCH, CHANNELS)
    return evidence, mask, Context(*frame, phase, torch.randn(CYCLE, CHANNELS))


EVERY = pytest.mark.parametrize("kind", ["linear", "mlp", "phase", "cross"])


@EVERY
@torch.no_grad()
def test_frame_and_profile_stay_outside_the_readout(kind: str) -> None:
    evidence, mask, context = seen()
    future = readout(kind)(evidence, mask, context)
    assert future.shape == (BATCH, HORIZON, CHANNELS)
    other = replace(context, level=context.level + 9, scale=context.scale * 9, profile=context.profile - 9)
    assert torch.equal(readout(kind)(evidence, mask, other), future)


@EVERY
@torch.no_grad()
def test_the_phase_is_read_by_those_that_say_so(kind: str) -> None:
    evidence, mask, context = seen()
    shifted = replace(context, phase=context.phase + 1)
    moved = not torch.equal(readout(kind)(evidence, mask, shifted), readout(kind)(evidence, mask, context))
    assert moved == (kind in ("phase", "cross"))


@EVERY
@torch.no_grad()
def test_the_phase_of_the_future_is_left_to_the_context(kind: str) -> None:
    evidence, mask, context = seen()
    phase = context.phase.clone()
    phase[:, LOOK_BACK:] += 1
    later = replace(context, phase=phase)
    assert torch.equal(readout(kind)(evidence, mask, later), readout(kind)(evidence, mask, context))


@EVERY
@torch.no_grad()
def test_the_mask_is_read_by_those_that_say_so(kind: str) -> None:
    evidence, mask, context = seen()
    moved = not torch.equal(readout(kind)(evidence, 1 - mask, context), readout(kind)(evidence, mask, context))
    assert moved == (kind in ("phase", "cross"))


@EVERY
@torch.no_grad()
def test_channels_read_each_other_only_across_channels(kind: str) -> None:
    evidence, mask, context = seen()
    other = evidence.clone()
    other[..., 1] += mask.repeat_interleave(3, dim=1)[..., 1]
    first, second = readout(kind)(evidence, mask, context), readout(kind)(other, mask, context)
    assert (first[..., 1] - second[..., 1]).abs().max() > 1e-3
    apart = (first[..., [0, 2]] - second[..., [0, 2]]).abs().max()
    assert (apart > 1e-3) == (kind == "cross")


@EVERY
@torch.no_grad()
def test_windows_do_not_read_each_other(kind: str) -> None:
    evidence, mask, context = seen()
    other = evidence.clone()
    other[1] *= -3
    assert torch.equal(readout(kind)(evidence, mask, context)[0], readout(kind)(other, mask, context)[0])


@torch.no_grad()
def test_the_query_across_channels_is_the_phase_and_not_the_evidence() -> None:
    evidence, mask, context = seen()
    cross = readout("cross")
    assert isinstance(cross, CrossChannel)
    asked: list[tuple[Tensor, Tensor]] = []
    cross.attention.register_forward_pre_hook(lambda module, given: asked.append(given))
    cross(evidence, mask, context)
    query, source = asked[0]
    for b in range(BATCH):
        for c in range(CHANNELS):
            for t in range(LOOK_BACK):
                assert query[b, c, t] == cross.query[int(context.phase[b, t]) % CYCLE, c]
    assert torch.equal(source, evidence.transpose(1, 2))


@torch.no_grad()
def test_across_channels_what_is_gathered_is_added_to_the_evidence() -> None:
    evidence, mask, context = seen()
    cross = readout("cross")
    assert isinstance(cross, CrossChannel)
    query = cross.query[context.phase[:, :LOOK_BACK] % CYCLE].transpose(1, 2)
    gathered = cross.attention(query, evidence.transpose(1, 2)).transpose(1, 2)
    torch.testing.assert_close(
        cross(evidence, mask, context), cross.readout(evidence + gathered, mask, context), rtol=1e-6, atol=1e-6
    )


@torch.no_grad()
def test_the_phase_readout_is_evidence_and_mask_plus_phase_and_a_block_with_a_skip() -> None:
    evidence, mask, context = seen()
    made = readout("phase")
    assert isinstance(made, PhaseReadout)
    future = made(evidence, mask, context)
    for b in range(BATCH):
        for c in range(CHANNELS):
            row = torch.cat([evidence[b, :, c], mask[b, :, c]])
            hidden = made.enter.weight @ row + made.enter.bias + made.phase.weight[int(context.phase[b, 0]) % CYCLE]
            inner = torch.nn.functional.gelu(made.block[0].weight @ hidden + made.block[0].bias)
            hidden = hidden + torch.nn.functional.gelu(made.block[2].weight @ inner + made.block[2].bias)
            torch.testing.assert_close(future[b, :, c], made.leave.weight @ hidden + made.leave.bias)


def test_the_phase_starts_out_saying_nothing() -> None:
    evidence, mask, context = seen()
    made = PhaseReadout(LOOK_BACK, HORIZON, PATCHES, CYCLE, 0, 6, 0.0).eval()
    shifted = replace(context, phase=context.phase + 3)
    assert torch.equal(made(evidence, mask, shifted), made(evidence, mask, context))
    assert made.phase.weight.requires_grad


@pytest.mark.parametrize("look_back", [5, 6, 8, 9])
def test_across_channels_any_look_back_is_served(look_back: int) -> None:
    phase = PhaseReadout(look_back, HORIZON, 1, CYCLE, 0, 6, 0.0)
    cross = CrossChannel(phase, look_back, CYCLE, CHANNELS, 0.0).eval()
    _, _, context = seen()
    evidence, mask = torch.randn(BATCH, look_back, CHANNELS), torch.ones(BATCH, 1, CHANNELS)
    assert cross(evidence, mask, context).shape == (BATCH, HORIZON, CHANNELS)


@pytest.mark.parametrize(
    ("kind", "cross", "made"),
    [
        ("linear", False, LinearReadout),
        ("mlp", False, MLPReadout),
        ("phase", False, PhaseReadout),
        ("phase", True, CrossChannel),
    ],
)
def test_the_configuration_names_the_readout(kind: str, cross: bool, made: type[Readout]) -> None:
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
    assert type(network.readout) is made


@EVERY
def test_dropout_is_for_training_alone(kind: str) -> None:
    evidence, mask, context = seen()
    made = readout(kind)
    assert torch.equal(made(evidence, mask, context), made(evidence, mask, context))
    made.train()
    assert torch.equal(made(evidence, mask, context), made(evidence, mask, context)) == (kind in ("linear", "mlp"))
