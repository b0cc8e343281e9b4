"""The certificate, whom it finds out, and what closed tokens do once gates and frame may react."""

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
    held = values.where(observed, torch.zeros(()))
    return Windows(held, observed, torch.arange(ROWS + HORIZON) % CYCLE, torch.arange(COUNT), LOOK_BACK, HORIZON)


def built(kind: type[IBForecast], settings: ModelConfig) -> IBForecast:
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
def test_of_an_honest_forecaster_not_a_bit_changes(kind: GateKind, batch: int) -> None:
    told = certificate(built(IBForecast, config(kind)), windows(missing=0.05), generator(), batch)
    assert told.holds
    assert not told.scramble_bits.any()
    assert not told.replay_bits.any()
    assert len(told.scramble_bits) == COUNT
    assert told.compared == COUNT * HORIZON * CHANNELS


@torch.no_grad()
def test_it_says_how_many_closed_points_held_noise() -> None:
    forecaster, given = built(IBForecast, config(budget=0.25)), windows(missing=0.0)
    assert certificate(forecaster, given, generator(), 10).scrambled == COUNT * (8 - 2) * PATCH_LEN


class Remembering(IBForecast):
    """Puts a little of the closed tokens it saw last into the forecast, behind the explanation's back."""

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        _, deviation = self.decompose(window, held)
        self.last = deviation
        return super().forward(window, held)

    def replay(self, explanation: Explanation) -> Tensor:
        closed = self.last.masked_fill(spread(explanation.mask, PATCH_LEN), 0.0)
        return super().replay(explanation) + 1e-4 * closed.mean(dim=1, keepdim=True)


class Leaking(IBForecast):
    """Lets a hundredth of every closed token through to the readout: a gate that is soft in truth."""

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        _, deviation = self.decompose(window, held)
        honest = super().forward(window, held).explanation
        assert honest is not None
        leaky = replace(honest, evidence=honest.evidence + 0.01 * (deviation - honest.evidence))
        return Forecast(self.replay(leaky), leaky)


class Lying(IBForecast):
    """Forecasts something else than its explanation gives, for the windows of one batch only."""

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        forecast = super().forward(window, held)
        return replace(forecast, values=forecast.values + 1e-3 * (window.values[:1, :1] > 2))


def test_a_replay_that_peeks_at_closed_tokens_is_found_out() -> None:
    told = certificate(built(Remembering, config()), windows(), generator(), batch=20)
    assert not told.holds
    assert not told.replay_bits.any()  # it remembers well enough to tell the same story twice
    assert (told.scramble_bits > 0).float().mean() > 0.9


def test_a_gate_that_lets_a_little_through_is_found_out() -> None:
    told = certificate(built(Leaking, config()), windows(), generator(), batch=20)
    assert not told.holds
    assert (told.scramble_bits > 0).float().mean() > 0.9


def test_a_forecast_that_is_not_its_explanations_is_found_out() -> None:
    told = certificate(built(Lying, config()), windows(), generator(), batch=1)
    assert not told.holds
    assert 0 < int((told.replay_bits > 0).sum()) < COUNT
    assert not told.scramble_bits.any()


def test_a_forecast_that_is_no_number_certifies_nothing() -> None:
    class Broken(IBForecast):
        def replay(self, explanation: Explanation) -> Tensor:
            return super().replay(explanation) * torch.nan

    told = certificate(built(Broken, config()), windows(), generator())
    assert not told.holds
    assert (told.scramble_bits == 32 * HORIZON * CHANNELS).all()


numbers = st.floats(width=32, allow_nan=False)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6))
def test_changed_bits_are_counted_as_they_stand_in_memory(pairs: list[tuple[float, float]]) -> None:
    one, other = (torch.tensor([pair[place] for pair in pairs]).view(1, -1, 1) for place in (0, 1))
    bits = [
        (struct.unpack("I", struct.pack("f", a))[0] ^ struct.unpack("I", struct.pack("f", b))[0]).bit_count()
        for a, b in pairs
    ]
    assert changed_bits(one, other).tolist() == [sum(bits)]


def test_a_sign_is_one_bit_and_no_number_is_all_of_them() -> None:
    zero, nothing = torch.zeros(1, 1, 1), torch.full((1, 1, 1), torch.nan)
    assert changed_bits(zero, -zero).tolist() == [1]
    assert changed_bits(nothing, nothing).tolist() == [32]
    assert changed_bits(nothing.double(), nothing.double()).tolist() == [64]
    assert changed_bits(zero.double(), -zero.double()).tolist() == [1]


@torch.no_grad()
def test_resampled_windows_keep_what_is_open_and_deviate_like_their_donor_elsewhere() -> None:
    forecaster, given = built(IBForecast, config()), windows(missing=0.0)
    window, donor = given.look_backs(given.starts[:5]), given.look_backs(given.starts[40:45])
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


def test_where_neither_gate_nor_frame_can_react_nothing_moves() -> None:
    told = end_to_end(built(IBForecast, config("newest", frame="none")), windows(), generator(), batch=16)
    assert not told.all_free.any()
    assert not told.gates_free.any()
    assert (told.relative, told.masks_changed) == (0, 0)
    assert (told.all_deleted > 0).all()


def test_a_fixed_mask_holds_still_but_the_frame_still_passes_something_on() -> None:
    told = end_to_end(built(IBForecast, config("newest")), windows(), generator(), batch=16)
    assert not told.gates_free.any()
    assert (told.all_free > 0).all()
    assert told.masks_changed == 0


def test_with_everything_open_there_is_nothing_to_scramble() -> None:
    told = end_to_end(built(IBForecast, config("open", 1.0)), windows(missing=0.0), generator())
    assert not told.all_free.any()


def test_gates_that_read_every_token_pass_on_what_they_saw() -> None:
    forecaster, given = built(IBForecast, config()), windows()
    told = end_to_end(forecaster, given, generator(), batch=16)
    assert len(told.all_free) == COUNT
    assert told.gates_relative > 0
    assert 0 < told.masks_changed <= 1
    moved = told.all_free > 0
    assert moved[told.mask_changed].all()
    assert told.relative == pytest.approx(float(told.all_free.mean() / told.all_deleted.mean()))
    assert certificate(forecaster, given, generator()).holds  # and yet, with context and mask held, not a bit


def test_sizes_of_batches_change_nothing_and_the_generator_everything() -> None:
    forecaster, given = built(IBForecast, config()), windows()
    small, whole = (end_to_end(forecaster, given, generator(), batch=size) for size in (5, 1000))
    torch.testing.assert_close(small.all_free, whole.all_free, rtol=1e-3, atol=1e-8)
    assert torch.equal(small.mask_changed, whole.mask_changed)
    assert not torch.equal(end_to_end(forecaster, given, generator(1)).all_free, whole.all_free)


def test_measuring_leaves_forecaster_and_global_generator_as_they_were() -> None:
    forecaster, state = built(IBForecast, config()), torch.get_rng_state()
    weights = {name: tensor.clone() for name, tensor in forecaster.state_dict().items()}
    certificate(forecaster, windows(), generator())
    end_to_end(forecaster, windows(), generator())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in forecaster.state_dict().items())


def test_a_predictor_without_an_explanation_and_a_single_window_are_refused() -> None:
    with pytest.raises(UsageError, match="explains itself"):
        end_to_end(Guest(lambda values: values[:, -HORIZON:]), windows(), generator())
    with pytest.raises(UsageError, match="second window"):
        end_to_end(built(IBForecast, config()), windows().at(range(1)), generator())
