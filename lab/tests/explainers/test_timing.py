"""TIMING: its segments are intervals in the window, and without segments it is integrated gradients."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ibforecast.core.contracts import Importance
from ibforecast.core.errors import UsageError
from ibforecast.core.window import Window
from ibforecast.explain.guest import Guest
from ibforecast.explain.subject import Subject, at_rest
from ibforecast.model.network import IBForecast
from ibforecast_lab.explainers.relaxation import gradient
from ibforecast_lab.explainers.timing import EPSILON, VARIANTS, Segments, Timing

modest = settings(max_examples=60, deadline=None, derandomize=True)
SEEDS = st.integers(0, 2**32 - 1)
Make = Callable[..., IBForecast]
Explain = Callable[..., Importance]


def attribution(timing: Timing, model: IBForecast, window: Window, seed: int = 0) -> Tensor:
    with at_rest(model):
        return timing.attribution(Subject.of(model, window), torch.Generator().manual_seed(seed))


@st.composite
def drawings(draw: st.DrawFn) -> tuple[int, int, int, int, int, int, bool]:
    """Draw settings, sizes of a window, a seed, and whether to use only extreme random numbers."""
    shortest = draw(st.integers(1, 60))
    sizes = draw(st.integers(1, 50)), draw(st.integers(1, 5))
    return draw(st.integers(0, 6)), shortest, draw(st.integers(shortest, 70)), *sizes, draw(SEEDS), draw(st.booleans())


def segments_of(drawn: tuple[int, int, int, int, int, int, bool]) -> Segments:
    segments, shortest, longest, look_back, channels, seed, extreme = drawn
    uniform = torch.rand(2, 3, segments, 3, generator=torch.Generator().manual_seed(seed))
    uniform = uniform.round().clamp(max=1 - 2**-24) if extreme else uniform
    return Timing(segments, shortest, longest).draw(uniform, look_back, channels)


@modest
@given(drawn=drawings())
def test_segments_have_an_allowed_length_and_lie_in_the_window(
    drawn: tuple[int, int, int, int, int, int, bool],
) -> None:
    _, shortest, longest, look_back, channels, *_ = drawn
    segments = segments_of(drawn)
    assert ((segments.channel >= 0) & (segments.channel < channels)).all()
    assert (segments.length >= min(shortest, look_back)).all()
    assert (segments.length <= min(longest, look_back)).all()
    assert (segments.start >= 0).all()
    assert (segments.start + segments.length <= look_back).all()


@modest
@given(drawn=drawings())
def test_only_the_cells_of_segments_are_held(
    drawn: tuple[int, int, int, int, int, int, bool],
) -> None:
    look_back, channels, segments = drawn[3], drawn[4], segments_of(drawn)
    held = torch.zeros(2, 3, look_back, channels, dtype=torch.bool)
    for step in range(2):
        for row in range(3):
            drawn_here = (part[step, row].tolist() for part in (segments.start, segments.length, segments.channel))
            for start, length, channel in zip(*drawn_here, strict=True):
                held[step, row, start : start + length, channel] = True
    assert torch.equal(segments.cells(look_back, channels), held)


def test_every_length_channel_and_start_is_drawn_and_the_first_step_is_not_preferred() -> None:
    """In the release the first step is nearly always held; here no more often than by chance."""
    uniform = torch.rand(1, 1, 20000, 3, generator=torch.Generator().manual_seed(0))
    segments = Timing(1, 3, 5).draw(uniform, 10, 2)
    assert set(segments.length.unique().tolist()) == {3, 4, 5}
    assert set(segments.channel.unique().tolist()) == {0, 1}
    for length in (3, 4, 5):
        starts = segments.start[segments.length == length]
        assert set(starts.unique().tolist()) == set(range(10 - length))
        assert starts.bincount().float().std() < 0.1 * starts.bincount().float().mean()


def test_timing_without_segments_is_integrated_gradients_by_left_riemann_sum(make_model: Make, window: Window) -> None:
    captum = pytest.importorskip("captum.attr")
    model = make_model()
    subject = Subject.of(model, window)

    def target(values: Tensor) -> Tensor:
        forecasts = subject.relaxed(values.unflatten(0, (-1, len(subject.values))))
        return forecasts.square().sum(dim=(2, 3)).flatten() / 2

    theirs = captum.IntegratedGradients(target).attribute(
        subject.values, subject.baseline("mean").contiguous(), n_steps=64, method="riemann_left"
    )
    ours = attribution(Timing(segments=0, samples=64), model, window)
    torch.testing.assert_close(ours * (64 + EPSILON) / 64, theirs, rtol=1e-9, atol=1e-12)


def test_if_everything_is_always_held_every_grade_is_zero(make_model: Make, explain: Explain, complete: Window) -> None:
    importance = explain(Timing(segments=60, shortest=36, longest=36), make_model(), complete).values
    assert not importance.any()


def test_timing_equals_the_algorithm_written_with_loops(make_model: Make, complete: Window) -> None:
    model, timing = make_model(), Timing(segments=4, shortest=3, longest=9, samples=7, chunk=3)
    batch, look_back, channels = complete.values.shape
    drawn = torch.rand(batch, 7, 4, 3, generator=torch.Generator().manual_seed(5)).double()
    held = timing.draw(drawn.transpose(0, 1), look_back, channels).cells(look_back, channels)
    start = complete.values.mean(dim=1, keepdim=True)
    expected = torch.zeros_like(complete.values)
    with at_rest(model):
        subject = Subject.of(model, complete)
        slopes = []
        for step in range(7):
            point = start + step / 7 * (complete.values - start)
            point[held[step]] = complete.values[held[step]]
            slopes.append(gradient(subject, point[None])[0])
    for row in range(batch):
        for time in range(look_back):
            for channel in range(channels):
                place = (row, time, channel)
                free = [slope[place] for step, slope in enumerate(slopes) if not held[step][place]]
                path = complete.values[place] - start[row, 0, channel]
                expected[place] = path * sum(free) / (len(free) + EPSILON)
    torch.testing.assert_close(attribution(timing, model, complete, seed=5), expected)


def test_gradients_are_averaged_over_the_steps_at_which_a_value_is_free(explain: Explain, complete: Window) -> None:
    """If the gradient is constant along every path, holding a value at some steps does not change its attribution."""
    guest = Guest(lambda values: (values[:, 6:] + 50).sqrt())
    few = explain(Timing(segments=2, shortest=4, longest=9), guest, complete).values
    none = explain(Timing(segments=0), guest, complete).values
    torch.testing.assert_close(few, none, rtol=1e-3, atol=1e-6)


def test_the_variants_are_the_settings_of_the_release_and_two_with_fewer_segments() -> None:
    variants = {name: (one.segments, one.shortest, one.longest, one.samples) for name, one in VARIANTS.items()}
    assert variants == {"defaults": (50, 10, 48, 50), "ten": (10, 6, 24, 50), "twenty": (20, 12, 48, 50)}
    assert VARIANTS["defaults"] == Timing()


def test_another_seed_gives_other_segments(make_model: Make, complete: Window) -> None:
    model, timing = make_model(), replace(VARIANTS["ten"], samples=5)
    assert not torch.equal(attribution(timing, model, complete), attribution(timing, model, complete, seed=1))


@pytest.mark.parametrize(
    "settings", [{"segments": -1}, {"shortest": 0}, {"shortest": 50}, {"samples": 0}, {"chunk": 0}]
)
def test_invalid_settings_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="must"):
        Timing(**settings)  # type: ignore[arg-type]
