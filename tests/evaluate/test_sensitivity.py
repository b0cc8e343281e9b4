"""The certificate, the forecasters it detects, and the effect of closed tokens once gates and frame may react."""

import struct
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ibforecast.core.context import Context
from ibforecast.core.errors import UsageError
from ibforecast.core.explanation import Explanation, Forecast
from ibforecast.core.tokens import spread
from ibforecast.core.window import Window
from ibforecast.data.windows import Windows
from ibforecast.evaluate.sensitivity import certificate, end_to_end, resampled
from ibforecast.evaluate.verification import changed_bits
from ibforecast.explain.guest import Guest
from ibforecast.model.config import FrameKind, GateConfig, GateKind, ModelConfig, ReadoutConfig
from ibforecast.model.network import IBForecast

LOOK_BACK, HORIZON, CHANNELS, ROWS, PATCH_LEN, CYCLE = 12, 4, 2, 90, 3, 5
COUNT = ROWS - LOOK_BACK - HORIZON + 1


def config(kind: GateKind = "exact", budget: float = 0.5, frame: FrameKind = "mean") -> ModelConfig:
    return ModelConfig(
        LOOK_BACK,
        HORIZON,
        CHANNELS,
        CYCLE,
        patch_len=PATCH_LEN,
        budget=budget,
        frame=frame,
        gate=GateConfig(kind=kind, width=4, heads=2),
        readout=ReadoutConfig(width=6),
    )


def windows(missing: float = 0.02) -> Windows:
    random = torch.Generator().manual_seed(0)
    values = torch.randn(ROWS, CHANNELS, generator=random).cumsum(0)
    observed = torch.rand(ROWS, CHANNELS, generator=random) >= missing
    filled = values.where(observed, torch.zeros(()))
    return Windows(filled, observed, torch.arange(ROWS + HORIZON) % CYCLE, torch.arange(COUNT), LOOK_BACK, HORIZON)


def build(kind: type[IBForecast], settings: ModelConfig) -> IBForecast:
    with torch.random.fork_rng([]):
        torch.manual_seed(1)
        forecaster = kind(settings)
        with torch.no_grad():
            for parameter in forecaster.parameters():
                parameter.add_(0.4 * torch.randn_like(parameter))
    return forecaster.eval()


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("kind", ["exact", "threshold", "capped", "newest"])
@pytest.mark.parametrize("batch", [7, 1024])
def test_no_bit_of_an_honest_forecaster_changes(kind: GateKind, batch: int) -> None:
    result = certificate(build(IBForecast, config(kind)), windows(missing=0.05), generator(), batch)
    assert result.holds
    assert not result.scramble_bits.any()
    assert not result.replay_bits.any()
    assert len(result.scramble_bits) == COUNT
    assert result.compared == COUNT * HORIZON * CHANNELS


@torch.no_grad()
def test_the_number_of_scrambled_points_is_reported() -> None:
    forecaster, data = build(IBForecast, config(budget=0.25)), windows(missing=0.0)
    assert certificate(forecaster, data, generator(), 10).scrambled == COUNT * (8 - 2) * PATCH_LEN


class Remembering(IBForecast):
    """A forecaster that adds a little of its last closed tokens to the forecast without explaining it."""

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        _, deviation = self.decompose(window, held)
        self.last = deviation
        return super().forward(window, held)

    def replay(self, explanation: Explanation) -> Tensor:
        closed = self.last.masked_fill(spread(explanation.mask, PATCH_LEN), 0.0)
        return super().replay(explanation) + 1e-4 * closed.mean(dim=1, keepdim=True)


class Leaking(IBForecast):
    """A forecaster whose readout gets a hundredth of every closed token: its gate is soft."""

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        _, deviation = self.decompose(window, held)
        honest = super().forward(window, held).explanation
        assert honest is not None
        leaky = replace(honest, evidence=honest.evidence + 0.01 * (deviation - honest.evidence))
        return Forecast(self.replay(leaky), leaky)


class Lying(IBForecast):
    """A forecaster that gives some windows another forecast than their explanation gives."""

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        forecast = super().forward(window, held)
        return replace(forecast, values=forecast.values + 1e-3 * (window.values[:1, :1] > 2))


def test_a_replay_that_reads_closed_tokens_is_detected() -> None:
    result = certificate(build(Remembering, config()), windows(), generator(), batch=20)
    assert not result.holds
    assert not result.replay_bits.any()  # it remembers the same tokens both times
    assert (result.scramble_bits > 0).float().mean() > 0.9


def test_a_gate_that_is_not_quite_closed_is_detected() -> None:
    result = certificate(build(Leaking, config()), windows(), generator(), batch=20)
    assert not result.holds
    assert (result.scramble_bits > 0).float().mean() > 0.9


def test_a_forecast_that_differs_from_its_explanation_is_detected() -> None:
    result = certificate(build(Lying, config()), windows(), generator(), batch=1)
    assert not result.holds
    assert 0 < int((result.replay_bits > 0).sum()) < COUNT
    assert not result.scramble_bits.any()


def test_a_nan_forecast_is_never_certified() -> None:
    class Broken(IBForecast):
        def replay(self, explanation: Explanation) -> Tensor:
            return super().replay(explanation) * torch.nan

    result = certificate(build(Broken, config()), windows(), generator())
    assert not result.holds
    assert (result.scramble_bits == 32 * HORIZON * CHANNELS).all()


numbers = st.floats(width=32, allow_nan=False)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6))
def test_changed_bits_are_those_of_the_float_representation(pairs: list[tuple[float, float]]) -> None:
    one, other = (torch.tensor([pair[place] for pair in pairs]).view(1, -1, 1) for place in (0, 1))
    bits = [
        (struct.unpack("I", struct.pack("f", a))[0] ^ struct.unpack("I", struct.pack("f", b))[0]).bit_count()
        for a, b in pairs
    ]
    assert changed_bits(one, other).tolist() == [sum(bits)]


def test_a_sign_counts_as_one_bit_and_nan_as_all_bits() -> None:
    zero, nothing = torch.zeros(1, 1, 1), torch.full((1, 1, 1), torch.nan)
    assert changed_bits(zero, -zero).tolist() == [1]
    assert changed_bits(nothing, nothing).tolist() == [32]
    assert changed_bits(nothing.double(), nothing.double()).tolist() == [64]
    assert changed_bits(zero.double(), -zero.double()).tolist() == [1]


@torch.no_grad()
def test_resampled_windows_keep_open_tokens_and_deviate_like_their_donor_elsewhere() -> None:
    forecaster, data = build(IBForecast, config()), windows(missing=0.0)
    window, donor = data.look_backs(data.starts[:5]), data.look_backs(data.starts[40:45])
    donor.observed[0, 2, 1] = False
    explanation = forecaster(window).explanation
    donor_context = forecaster.context(donor)
    values = resampled(window, explanation, donor, donor_context)
    opened = spread(explanation.mask, PATCH_LEN)
    assert torch.equal(values[opened], window.values[opened])
    deviation, expected = explanation.context.remove(values), donor_context.remove(donor.values)
    expected[0, 2, 1] = 0
    torch.testing.assert_close(deviation[~opened], expected[~opened], atol=1e-5, rtol=1e-4)
    assert (values != window.values)[~opened].all()


def test_nothing_moves_if_neither_gate_nor_frame_can_react() -> None:
    shifts = end_to_end(build(IBForecast, config("newest", frame="none")), windows(), generator(), batch=16)
    assert not shifts.all_free.any()
    assert not shifts.gates_free.any()
    assert (shifts.relative, shifts.masks_changed) == (0, 0)
    assert (shifts.all_deleted > 0).all()


def test_with_a_fixed_mask_only_the_frame_reacts_to_closed_tokens() -> None:
    shifts = end_to_end(build(IBForecast, config("newest")), windows(), generator(), batch=16)
    assert not shifts.gates_free.any()
    assert (shifts.all_free > 0).all()
    assert shifts.masks_changed == 0


def test_with_everything_open_there_is_nothing_to_scramble() -> None:
    shifts = end_to_end(build(IBForecast, config("open", 1.0)), windows(missing=0.0), generator())
    assert not shifts.all_free.any()


def test_gates_that_read_every_token_react_to_closed_ones() -> None:
    forecaster, data = build(IBForecast, config()), windows()
    shifts = end_to_end(forecaster, data, generator(), batch=16)
    assert len(shifts.all_free) == COUNT
    assert shifts.gates_relative > 0
    assert 0 < shifts.masks_changed <= 1
    moved = shifts.all_free > 0
    assert moved[shifts.mask_changed].all()
    assert shifts.relative == pytest.approx(float(shifts.all_free.mean() / shifts.all_deleted.mean()))
    assert certificate(forecaster, data, generator()).holds  # no bit changes with context and mask held


def test_the_result_depends_on_the_generator_but_not_on_the_batch_size() -> None:
    forecaster, data = build(IBForecast, config()), windows()
    small, whole = (end_to_end(forecaster, data, generator(), batch=size) for size in (5, 1000))
    torch.testing.assert_close(small.all_free, whole.all_free, rtol=1e-3, atol=1e-8)
    assert torch.equal(small.mask_changed, whole.mask_changed)
    assert not torch.equal(end_to_end(forecaster, data, generator(1)).all_free, whole.all_free)


def test_measuring_leaves_forecaster_and_global_generator_unchanged() -> None:
    forecaster, state = build(IBForecast, config()), torch.get_rng_state()
    weights = {name: tensor.clone() for name, tensor in forecaster.state_dict().items()}
    certificate(forecaster, windows(), generator())
    end_to_end(forecaster, windows(), generator())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in forecaster.state_dict().items())


def test_a_predictor_without_an_explanation_and_a_single_window_are_refused() -> None:
    with pytest.raises(UsageError, match="explains itself"):
        end_to_end(Guest(lambda values: values[:, -HORIZON:]), windows(), generator())
    with pytest.raises(UsageError, match="second window"):
        end_to_end(build(IBForecast, config()), windows().at(range(1)), generator())
