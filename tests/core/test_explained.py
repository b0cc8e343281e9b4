"""Explained forecasts: valid once built, exact as a document, strict when read, and readable as words and rows."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, fields, replace
from math import log2
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from jaxtyping import config
from tests.core.samples import CHANNELS, CYCLE, HORIZON, PATCH_LEN, SOME, assert_same_bits, changed, hourly, sample

from ibforecast.core import document as documents
from ibforecast.core.calendar import Clock, Frequency
from ibforecast.core.errors import DataError, IBForecastError, UsageError, VerificationError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.standardiser import Standardiser
from ibforecast.core.writing import STATEMENTS

LOOK_BACK = PATCH_LEN * len(SOME)
STEPS = LOOK_BACK + HORIZON
FLOATS = st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number + 0.0)
SINGLES = st.floats(allow_nan=False, allow_infinity=False, width=32)
GAP = [[0, 0, 1], [0, 0, 0], [0, 0, 1], [0, 0, 0]]


@pytest.fixture
def library_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch off the type checker of the tests, which would refuse wrong shapes before the library sees them."""
    monkeypatch.setattr(config, "jaxtyping_disable", True)


def put(values: np.ndarray, place: Any, value: Any) -> np.ndarray:
    """Return a copy with another value in one place."""
    copied = values.copy()
    copied[place] = value
    return copied


# --- Valid once built ---


def test_an_explained_forecast_is_frozen() -> None:
    explained = sample()
    for name in (field.name for field in fields(explained)):
        with pytest.raises(FrozenInstanceError):
            setattr(explained, name, None)


def rich(**changes: Any) -> ExplainedForecast:
    """Return a sample with two covariates, two cycles, and a channel that is not forecast."""
    return sample(cycles=(2, 6), past=("gamma",), covariates=2, **changes)


def rows_counted(explained: ExplainedForecast, **changes: Any) -> Clock:
    return replace(hourly(explained.look_back + explained.horizon), by_row=True, **changes)


def double(explained: ExplainedForecast, name: str) -> dict[str, Any]:
    return {name: getattr(explained, name).astype(np.float64)}


Change = Callable[[ExplainedForecast], dict[str, Any]]
INVALID: dict[str, tuple[Change, str]] = {
    "a batch": (lambda it: {"explanation": it.explanation.batch()}, "the mask .* be of one window"),
    "a patch that does not divide": (
        lambda it: {
            "mask": np.zeros((3, 3), bool),
            "probability": np.zeros((3, 3), np.float32),
            "missing": np.zeros((3, 3), bool),
        },
        "patches .* divide the look-back",
    ),
    "no horizon": (
        lambda it: {
            "explanation": replace(
                it.explanation,
                context=replace(it.context, phase=it.phase[:LOOK_BACK], known=it.context.known[:LOOK_BACK]),
            )
        },
        "the horizon .* have a step",
    ),
    "a history too short": (lambda it: {"history": it.history[1:]}, r"history .* have the shape \(16, 3\)"),
    "a forecast too short": (lambda it: {"forecast": it.forecast[1:]}, r"forecast .* have the shape \(3, 3\)"),
    "a truth too short": (lambda it: {"truth": it.truth[1:]}, r"truth .* have the shape \(3, 3\)"),
    "a channel too few": (lambda it: {"channels": ("alpha", "beta")}, r"channels .* have the shape \(3,\)"),
    "a time too few": (lambda it: {"clock": hourly(STEPS - 1)}, r"times .* have the shape \(19,\)"),
    "a mean too few": (
        lambda it: {"units": Standardiser(it.units.mean[1:], it.units.std)},
        r"mean .* have the shape \(3,\)",
    ),
    "a spread too few": (
        lambda it: {"units": Standardiser(it.units.mean, it.units.std[1:])},
        r"std .* have the shape \(3,\)",
    ),
    "a covariate too few": (lambda it: {"known": it.known[:, :1]}, r"known .* have the shape \(19, 2\)"),
    "a double evidence": (lambda it: double(it, "evidence"), "evidence .* have the type float32"),
    "a double profile": (lambda it: double(it, "profile"), "profile .* have the type float32"),
    "a name twice": (lambda it: {"channels": ("alpha", "alpha", "gamma")}, "names .* differ from each other"),
    "a covariate with the name of a channel": (
        lambda it: {"covariates": ("alpha", "plan")},
        "names .* differ from each other",
    ),
    "a past that is not last": (lambda it: {"past": ("alpha",)}, "past .* name the last channels"),
    "nothing but past": (
        lambda it: {"past": CHANNELS, "forecast": np.full((HORIZON, 3), np.nan)},
        "past .* leave a channel to forecast",
    ),
    "weights without a fingerprint": (lambda it: {"weights_sha256": "AB" * 32}, "weights_sha256 .* be a SHA-256"),
    "no budget": (lambda it: {"budget": 0.0}, r"budget .* lie in \(0, 1\]"),
    "a budget above one": (lambda it: {"budget": 1.5}, r"budget .* lie in \(0, 1\]"),
    "a budget that is no number": (lambda it: {"budget": float("nan")}, r"budget .* lie in \(0, 1\]"),
    "a prior of one": (lambda it: {"prior": 1.0}, r"prior .* lie in \(0, 1\)"),
    "an infinite history": (lambda it: {"history": put(it.history, (0, 0), np.inf)}, "history .* be finite"),
    "an infinite truth": (lambda it: {"truth": put(it.truth, (0, 0), -np.inf)}, "truth .* be finite"),
    "a forecast without a number": (lambda it: {"forecast": put(it.forecast, (0, 0), np.nan)}, "forecast .* be finite"),
    "an infinite forecast": (lambda it: {"forecast": put(it.forecast, (0, 0), np.inf)}, "forecast .* be finite"),
    "a forecast of a past channel": (lambda it: {"forecast": put(it.forecast, (0, 2), 1.0)}, "forecast .* be finite"),
    "no spread": (
        lambda it: {"units": Standardiser(it.units.mean, put(it.units.std, 0, 0.0))},
        "std .* be positive",
    ),
    "no scale": (lambda it: {"scale": put(it.scale, 0, 0.0)}, "scale .* be positive"),
    "a covariate without a spread": (
        lambda it: {"known_units": Standardiser(it.known_units.mean, put(it.known_units.std, 0, -1.0))},
        "known_units.std .* be positive",
    ),
    "a level that is no number": (lambda it: {"level": put(it.level, 0, np.nan)}, "level .* be finite"),
    "an infinite profile": (lambda it: {"profile": put(it.profile, (0, 0), np.inf)}, "profile .* be finite"),
    "an infinite evidence": (lambda it: {"evidence": put(it.evidence, (0, 1), np.inf)}, "evidence .* be finite"),
    "a mean that is no number": (
        lambda it: {"units": Standardiser(put(it.units.mean, 0, np.nan), it.units.std)},
        "mean .* be finite",
    ),
    "an infinite spread": (
        lambda it: {"units": Standardiser(it.units.mean, put(it.units.std, 0, np.inf))},
        "std .* be finite",
    ),
    "cycles that are too short": (lambda it: {"cycles": (2, 5)}, "cycles .* add up to 8 rows"),
    "a cycle of no steps": (lambda it: {"cycles": (0, 8)}, "cycles .* add up to 8 rows"),
    "rows that are counted from nowhere": (lambda it: {"clock": rows_counted(it)}, "row .* be given"),
    "a row where none is counted": (lambda it: {"clock": replace(it.clock, row=0)}, "row .* be given"),
    "times that are uneven": (
        lambda it: {"clock": replace(it.clock, stamps=put(it.clock.stamps, 3, it.clock.stamps[4]))},
        "times must follow each other in even steps",
    ),
    "a phase that is not that of its time": (
        lambda it: {"phase": put(it.phase, 3, 5)},
        "phase .* follow from the times",
    ),
    "another moment": (
        lambda it: {"clock": replace(it.clock, stamps=it.clock.stamps + np.timedelta64(1, "h"))},
        "phase .* follow from the times",
    ),
    "another row": (lambda it: {"clock": rows_counted(it, row=1)}, "phase .* follow from the times"),
    "a token said to be missing": (
        lambda it: {"missing": put(it.missing, (0, 0), True)},
        "missing .* mark the patches",
    ),
    "a gap that is not marked": (
        lambda it: {"history": put(it.history, (0, 0), np.nan)},
        "missing .* mark the patches",
    ),
    "an open token with a gap": (
        lambda it: {"history": put(it.history, (0, 1), np.nan), "missing": put(it.missing, (0, 1), True)},
        "mask .* leave patches with a missing value closed",
    ),
    "evidence of a closed token": (lambda it: {"evidence": put(it.evidence, (0, 0), 1.0)}, "evidence .* be zero"),
    "a probability above one": (
        lambda it: {"probability": put(it.probability, (0, 0), 1.5)},
        r"probability .* lie in \[0, 1\]",
    ),
    "covariates without values": (lambda it: {"known": None}, "known .* be given"),
    "covariates without units": (lambda it: {"known_units": None}, "known .* be given"),
    "covariates without a response": (lambda it: {"response": None}, "known .* be given"),
    "units of too few covariates": (
        lambda it: {"known_units": Standardiser(it.known_units.mean[:1], it.known_units.std[:1])},
        "known_units .* fit the covariates",
    ),
    "spreads of too few covariates": (
        lambda it: {"known_units": Standardiser(it.known_units.mean, it.known_units.std[:1])},
        "known_units .* fit the covariates",
    ),
    "a covariate with a gap": (lambda it: {"known": put(it.known, (0, 0), np.nan)}, "known .* be finite"),
    "other values known ahead": (lambda it: {"known": it.known + 1}, "known .* follow from the table's values"),
    "a response to another cycle": (
        lambda it: {"response": np.zeros((6, 2, 3), np.float32)},
        "response .* cover the first cycle",
    ),
}


@pytest.mark.usefixtures("library_alone")
@pytest.mark.parametrize("name", INVALID)
def test_contradictory_fields_are_refused_by_name(name: str) -> None:
    change, message = INVALID[name]
    explained = rich()
    with pytest.raises(DataError, match=message.replace(" .* ", " of an explanation must ")):
        changed(explained, **change(explained))


@pytest.mark.usefixtures("library_alone")
def test_an_explanation_without_covariates_has_nothing_known_ahead() -> None:
    bare, ahead = sample(cycles=(2, 6), past=("gamma",)), rich()
    for change in (
        {"known_units": ahead.known_units},
        {"response": ahead.response},
        {"known": np.empty((STEPS, 0))},
        {"explanation": replace(bare.explanation, context=replace(bare.context, known=ahead.context.known))},
    ):
        with pytest.raises(DataError, match="known of an explanation must be given"):
            changed(bare, **change)


def test_counted_rows_need_not_be_even() -> None:
    explained = sample()
    uneven = explained.clock.stamps + (np.arange(STEPS) // 5) * np.timedelta64(7, "h")
    clock = Clock(uneven, Frequency(3600), by_row=True, row=12)
    counted = changed(explained, clock=clock)
    assert counted.clock.row == 12
    assert_same_bits(ExplainedForecast.from_json(counted.to_json()), counted)


def test_negative_zero_becomes_zero() -> None:
    explained = sample(forecast=np.full((HORIZON, 3), -0.0), history=np.full((LOOK_BACK, 3), -0.0))
    assert not np.signbit(explained.forecast).any()
    assert not np.signbit(explained.history).any()


def test_arrays_of_the_explanation_and_its_context_are_attributes() -> None:
    explained = rich()
    assert explained.mask is explained.explanation.mask
    assert explained.level is explained.explanation.context.level
    assert explained.cycles == (2, 6)
    assert explained.patch_len == PATCH_LEN
    assert explained.known is not explained.explanation.context.known
    with pytest.raises(AttributeError, match="an ExplainedForecast has no attribute 'colour'"):
        explained.colour  # noqa: B018


# --- Derived numbers ---


def test_counts_rates_and_the_moment_follow_from_the_mask_and_the_times() -> None:
    explained = sample()
    assert (explained.look_back, explained.horizon, explained.open_count, explained.open_rate) == (16, 3, 4, 4 / 12)
    assert explained.at == explained.times[15] == "2020-01-01 15:00"
    assert explained.frequency == "1h"
    assert repr(explained) == (
        "ExplainedForecast(at='2020-01-01 15:00', horizon=3, channels=3; "
        "read 4 of 12 tokens: 33.3 % of the window (budget 50 %))"
    )
    assert rich().is_forecast.tolist() == [True, True, False]


def test_the_deviation_is_the_history_minus_level_scale_and_profile() -> None:
    explained = sample()
    for step, column in np.ndindex(LOOK_BACK, 3):
        standardised = (explained.history[step, column] - explained.units.mean[column]) / explained.units.std[column]
        framed = (standardised - explained.level[column]) / explained.scale[column]
        left = framed - explained.profile[explained.phase[step] % CYCLE, column]
        assert explained.deviation[step, column] == pytest.approx(left, rel=1e-12, abs=1e-12)


def test_the_baseline_is_the_level_plus_all_profiles_and_effects() -> None:
    explained = rich()
    assert explained.known is not None
    assert explained.known_units is not None
    for step, column in np.ndindex(STEPS, 3):
        phase = explained.phase[step]
        seasonal = explained.profile[phase % 2, column] + explained.profile[2 + phase, column]
        moved = sum(
            (explained.known[step, number] - explained.known_units.mean[number])
            / explained.known_units.std[number]
            * explained.response[phase % 2, number, column]
            for number in range(2)
        )
        framed = explained.level[column] + explained.scale[column] * seasonal + moved
        expected = explained.units.mean[column] + explained.units.std[column] * framed
        assert explained.expected[step, column] == pytest.approx(expected, rel=1e-5)


# --- Tokens and known steps ---


def test_tokens_are_listed_by_channel_with_the_oldest_first() -> None:
    explained = sample()
    rows = list(explained.tokens())
    assert [row.channel for row in rows] == ["alpha"] * 4 + ["beta"] * 4 + ["gamma"] * 4
    assert [(row.start, row.end) for row in rows[:2]] == [
        ("2020-01-01 00:00", "2020-01-01 03:00"),
        ("2020-01-01 04:00", "2020-01-01 07:00"),
    ]
    assert [row.open for row in rows] == explained.mask.T.ravel().tolist()
    assert [row.probability for row in rows] == explained.probability.T.ravel().tolist()
    assert [row.values for row in rows] == explained.history.T.reshape(12, PATCH_LEN).tolist()


def test_a_token_row_has_the_mean_and_largest_observed_deviation() -> None:
    plain = {
        "units": Standardiser(np.zeros(1), np.ones(1)),
        "profile": np.zeros((CYCLE, 1), dtype=np.float32),
        "level": np.float32([1]),
        "scale": np.float32([2]),
    }
    (row,) = sample([[0]], [[1]], **plain, history=np.array([[3.0], [np.nan], [-7.0], [1.0]])).tokens()
    assert row.missing
    assert (row.mean_deviation, row.largest_deviation) == (pytest.approx((1 - 4 + 0) / 3), -4.0)
    assert row.values == [3.0, None, -7.0, 1.0]
    (row,) = sample([[0]], [[1]], **plain, history=np.full((4, 1), np.nan)).tokens()
    assert np.isnan([row.mean_deviation, row.largest_deviation]).all()
    assert row.values == [None] * 4


def test_there_is_a_row_per_step_covariate_and_forecast_channel() -> None:
    explained, bare = rich(), sample(cycles=(2, 6), past=("gamma",))
    rows = list(explained.known_steps())
    assert len(rows) == STEPS * 2 * 2
    assert {row.channel for row in rows} == {"alpha", "beta"}
    assert [row.time for row in rows[:: 2 * 2]] == list(explained.times)
    context = replace(explained.context, known=None, response=None)
    without = {"covariates": (), "known": None, "known_units": None}
    unmoved = changed(explained, explanation=replace(explained.explanation, context=context), **without)
    baseline = explained.expected - unmoved.expected
    for step, time in enumerate(explained.times):
        effects = [row.effect for row in rows if row.time == time and row.channel == "beta"]
        assert sum(effects) == pytest.approx(baseline[step, 1])
    assert explained.known is not None
    assert [row.value for row in rows if row.covariate == "plan"][::2] == explained.known[:, 1].tolist()
    assert list(bare.known_steps()) == []
    assert bare.effects is None


# --- Bits ---


def test_the_bits_of_the_gates_add_up_to_the_rate() -> None:
    explained = sample(missing=GAP)
    for (patch, column), p in np.ndenumerate(explained.probability.astype(np.float64)):
        expected = 0.0 if explained.missing[patch, column] else p * log2(p / 0.2) + (1 - p) * log2((1 - p) / 0.8)
        assert explained.bits[patch, column] == pytest.approx(expected, rel=1e-9)
    assert explained.rate_bits == pytest.approx(explained.bits.sum(), abs=1e-6)
    assert [row.bits for row in explained.tokens()] == explained.bits.T.ravel().tolist()


def test_a_certain_gate_costs_its_surprise_and_one_at_the_prior_costs_nothing() -> None:
    explained = sample([[1, 0, 0]], probability=np.float32([[1.0, 0.0, 0.25]]), prior=0.25)
    assert explained.bits.tolist() == [[pytest.approx(2), pytest.approx(-log2(0.75)), 0]]
    assert sample([[0]], [[1]], probability=np.float32([[1.0]])).rate_bits == 0


# --- Words ---


def test_nothing_open_is_stated() -> None:
    explained = sample(np.zeros((4, 3)))
    assert explained.in_words().splitlines() == [
        "Forecast of 2020-01-01 16:00 to 2020-01-01 18:00, made at 2020-01-01 15:00.",
        "It read 0 of 12 tokens: 0 % of the window, where the budget allows 50 %; "
        f"its gates carry {explained.rate_bits:.1f} bits beyond their prior.",
        "Read: nothing.",
        "Nothing was read beyond the disclosed context of: alpha, beta, gamma.",
    ]


def test_the_count_of_open_tokens_ends_with_the_bits() -> None:
    explained = sample([[1, 0, 0]], probability=np.float32([[1.0, 0.0, 0.25]]), prior=0.25)
    assert explained.in_words().splitlines()[1] == (
        "It read 1 of 3 tokens: 33.3 % of the window, where the budget allows 50 %; "
        "its gates carry 2.4 bits beyond their prior."
    )


def test_everything_open_is_one_span_for_all_channels() -> None:
    lines = sample(np.ones((4, 3)), budget=1.0).in_words().splitlines()
    assert lines[1].startswith("It read 12 of 12 tokens: 100 % of the window, where the budget allows 100 %; ")
    assert lines[2:] == ["Read: alpha, beta, gamma (2020-01-01 00:00 to 2020-01-01 15:00)."]


def test_neighbours_are_one_span_and_others_are_not() -> None:
    assert sample(missing=GAP).in_words().splitlines()[2:] == [
        "Read: alpha (2020-01-01 12:00 to 2020-01-01 15:00); "
        "beta (2020-01-01 00:00 to 2020-01-01 07:00, 2020-01-01 12:00 to 2020-01-01 15:00).",
        "Nothing was read beyond the disclosed context of: gamma.",
        "Not readable because of missing values: gamma (2 of 4 patches).",
    ]


def test_the_words_name_channels_not_forecast_and_covariates_known_ahead() -> None:
    assert rich().in_words().splitlines()[-2:] == [
        "Not forecast: gamma.",
        "Known ahead, up to 2020-01-01 18:00, and part of the context: holiday, plan.",
    ]
    plain = sample().in_words()
    assert "Not forecast" not in plain
    assert "ahead" not in plain


@settings(max_examples=60)
@given(mask=hnp.arrays(np.bool_, st.tuples(st.integers(1, 6), st.integers(1, 3))))
def test_the_words_name_exactly_the_open_tokens(mask: np.ndarray) -> None:
    explained = sample(mask)
    lines = explained.in_words(full=True).splitlines()
    (read,) = (line for line in lines if line.startswith("Read: "))
    unread = " ".join(line for line in lines if line.startswith("Nothing was read"))
    named = np.zeros_like(mask)
    for name, spans in re.findall(r"(\w+) \(([^)]*)\)", read):
        for span in spans.split(", "):
            first, last = (explained.times.index(time) for time in span.split(" to "))
            named[first // PATCH_LEN : last // PATCH_LEN + 1, CHANNELS.index(name)] = True
    np.testing.assert_array_equal(named, mask)
    assert [name in unread for name in explained.channels] == (~mask.any(axis=0)).tolist()


def test_channels_with_equally_many_places_in_the_same_span_are_grouped() -> None:
    mask = np.zeros((8, 3))
    mask[[0, 2, 3, 5, 7], 0] = mask[[0, 2, 4, 5, 7], 1] = mask[[0, 2, 5, 7], 2] = 1
    assert sample(mask, budget=1.0).in_words().splitlines()[2] == (
        "Read: alpha, beta (5 of 8 patches, 2020-01-01 00:00 to 2020-01-02 07:00); "
        "gamma (4 of 8 patches, 2020-01-01 00:00 to 2020-01-02 07:00)."
    )


@pytest.mark.parametrize(
    ("open_patches", "spans", "words"),
    [
        (
            (0, 2, 4),
            3,
            "2020-01-01 00:00 to 2020-01-01 03:00, 2020-01-01 08:00 to 2020-01-01 11:00, "
            "2020-01-01 16:00 to 2020-01-01 19:00",
        ),
        ((0, 2, 4, 6), 4, "4 of 8 patches, one in 2, 2020-01-01 00:00 to 2020-01-02 03:00"),
        ((0, 2, 3, 5, 7), 4, "5 of 8 patches, 2020-01-01 00:00 to 2020-01-02 07:00"),
    ],
)
def test_many_spans_are_counted_and_channels_with_equal_spans_are_grouped(
    open_patches: tuple[int, ...], spans: int, words: str
) -> None:
    mask = np.zeros((8, 3))
    mask[open_patches, :2] = 1
    explained = sample(mask, budget=1.0)
    assert explained.in_words().splitlines()[2] == f"Read: alpha, beta ({words})."
    assert explained.in_words(full=True).count(" to 2020") == 1 + 2 * spans
    assert json.loads(explained.to_json())["in_words"] == explained.in_words(full=True)


def test_the_words_depend_on_the_gates_and_not_on_the_values() -> None:
    explained, other = sample(), np.random.default_rng(1)
    renumbered = changed(
        explained,
        history=other.normal(size=explained.history.shape),
        forecast=other.normal(size=explained.forecast.shape),
        evidence=explained.evidence * 3,
        level=explained.level + 9,
        profile=-explained.profile,
        truth=None,
    )
    assert renumbered.in_words() == explained.in_words()
    assert sample(~explained.mask).in_words() != explained.in_words()


# --- Documents ---


@settings(max_examples=40)
@given(data=st.data(), patches=st.integers(1, 4), channels=st.integers(1, 3))
def test_every_field_survives_the_document_bit_for_bit(data: st.DataObject, patches: int, channels: int) -> None:
    def drawn(dtype: type, elements: st.SearchStrategy[Any], *shape: int) -> np.ndarray:
        return data.draw(hnp.arrays(dtype, shape, elements=elements))

    tokens, positive = (patches, channels), st.floats(1e-300, 1e300)
    missing = drawn(np.bool_, st.booleans(), *tokens)
    mask = drawn(np.bool_, st.booleans(), *tokens) & ~missing
    look_back = patches * PATCH_LEN
    history = drawn(np.float64, FLOATS, look_back, channels)
    history[2::PATCH_LEN][missing] = np.nan
    evidence = drawn(np.float32, SINGLES, look_back, channels)
    explained = sample(
        mask,
        missing,
        covariates=data.draw(st.integers(0, 3)),
        cycles=data.draw(st.sampled_from([(1,), (6,), (2, 6), (4, 3)])),
        history=history,
        forecast=drawn(np.float64, FLOATS, HORIZON, channels),
        truth=data.draw(st.none() | hnp.arrays(np.float64, (HORIZON, channels), elements=FLOATS | st.just(np.nan))),
        units=Standardiser(drawn(np.float64, FLOATS, channels), drawn(np.float64, positive, channels)),
        level=drawn(np.float32, SINGLES, channels),
        scale=drawn(np.float32, st.floats(2.0**-126, 2.0**100, width=32), channels),
        probability=drawn(np.float32, st.floats(0, 1, width=32), *tokens),
        evidence=np.where(mask.repeat(PATCH_LEN, axis=0), evidence, np.float32(0)),
        budget=data.draw(st.floats(0, 1, exclude_min=True)),
        prior=data.draw(st.floats(0.01, 0.99)),
        signature=data.draw(
            st.none()
            | st.just("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==")
        ),
    )
    again = ExplainedForecast.from_json(explained.to_json())
    assert_same_bits(again, explained)
    assert again.to_json() == explained.to_json()
    assert again.sha256 == explained.sha256


@settings(max_examples=30)
@given(
    covariates=st.integers(1, 3),
    values=hnp.arrays(np.float64, (STEPS, 3), elements=st.floats(-1e30, 1e30)),
    response=hnp.arrays(np.float32, (2, 3, 3), elements=SINGLES),
)
def test_cycles_past_channels_and_covariates_survive_the_document_bit_for_bit(
    covariates: int, values: np.ndarray, response: np.ndarray
) -> None:
    original = rich() if covariates == 2 else sample(cycles=(2, 6), past=("gamma",), covariates=covariates)
    assert original.known_units is not None
    known = values[:, :covariates].copy()
    context = replace(
        original.context,
        known=original.known_units.standardise(known + 0.0).astype(np.float32),
        response=response[:, :covariates].copy(),
    )
    explained = replace(original, known=known, explanation=replace(original.explanation, context=context))
    again = ExplainedForecast.from_json(explained.to_json())
    assert (again.cycles, again.past) == ((2, 6), ("gamma",))
    assert_same_bits(again, explained)


def test_the_document_is_plain_json_with_the_documented_sections() -> None:
    explained = sample(missing=GAP)
    document = json.loads(explained.to_json(), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert list(document) == [
        "format",
        "version",
        *STATEMENTS,
        "weights_sha256",
        "budget",
        "prior",
        "sealed",
        "window",
        "units",
        "known_units",
        "explanation",
        "context",
        "forecast",
        "truth",
        "sha256",
    ]
    assert (document["format"], document["version"]) == ("ibforecast.explanation", 1)
    assert document["weights_sha256"] == explained.weights_sha256
    assert document["window"]["history"][1][2] is None
    assert document["explanation"]["mask"] == explained.mask.tolist()
    assert document["explanation"]["missing"] == explained.missing.tolist()
    assert document["sha256"] == explained.sha256
    assert (document["window"]["past"], document["window"]["known"], document["known_units"]) == ([], None, None)
    assert document["context"]["cycles"] == [CYCLE]


def test_the_document_contains_evidence_for_exactly_the_open_tokens() -> None:
    explained = sample()
    tokens = json.loads(explained.to_json())["explanation"]["evidence"]
    places = [(token["patch"], token["channel"]) for token in tokens]
    assert places == [(0, "beta"), (1, "beta"), (3, "alpha"), (3, "beta")]
    assert tokens[2]["deviation"] == explained.evidence[12:16, 0].tolist()


def test_the_fingerprint_covers_the_content_but_not_the_signature() -> None:
    explained = rich()
    assert (
        replace(
            explained,
            signature="AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==",
        ).sha256
        == explained.sha256
    )
    signed = ExplainedForecast.from_json(
        replace(
            explained,
            signature="AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==",
        ).to_json()
    )
    assert (
        signed.signature == "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw=="
    )
    for change in (
        {"forecast": explained.forecast + 1},
        {"truth": None},
        {"budget": 0.51},
        {"prior": 0.21},
        {"weights_sha256": "cd" * 32},
        {"channels": ("alpha", "delta", "gamma")},
        {"level": explained.level + np.float32(1)},
        {"evidence": explained.evidence * 2},
        {"probability": explained.probability / 2},
    ):
        assert changed(explained, **change).sha256 != explained.sha256, change


# --- Rewritten by another client ---


def as_javascript(value: Any) -> str:
    """Return the text of JSON.stringify: whole numbers without a point, no negative zero, other exponents."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{as_javascript(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(as_javascript, value)) + "]"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return re.sub(r"e-0(\d)$", r"e-\1", json.dumps(value))


RENDERED: dict[str, Callable[[dict[str, Any]], str]] = {
    "other spaces": lambda document: json.dumps(document, indent=3),
    "no spaces": lambda document: json.dumps(document, separators=(",", ":")),
    "sorted keys": lambda document: json.dumps(document, sort_keys=True),
    "keys backwards": lambda document: json.dumps(dict(reversed(document.items()))),
    "escaped letters": lambda document: json.dumps(document, ensure_ascii=True),
    "JavaScript": as_javascript,
    "more digits": lambda document: re.sub(r"(?<=\d\.)(\d+)(?=[,\]}])", r"\g<1>000", json.dumps(document)),
    "every number with a point": lambda document: json.dumps(json.loads(json.dumps(document), parse_int=float)),
}


@pytest.mark.parametrize("client", RENDERED)
def test_another_client_may_rewrite_a_document(client: str) -> None:
    explained = rich(
        channels=("größe", "beta", "gamma"),
        forecast=np.array([[1.0, 1e-7, np.nan], [-0.0, 5e21, np.nan], [12.0, 0.1, np.nan]]),
        truth=np.array([[1.0, 2.0, np.nan], [np.nan, 4.0, 5.0], [1e15, 1e17, 1e-300]]),
    )
    text = RENDERED[client](json.loads(explained.to_json()))
    assert text != explained.to_json()
    again = ExplainedForecast.from_json(text)
    assert_same_bits(again, explained)
    assert again.to_json() == explained.to_json()
    assert_same_bits(ExplainedForecast.from_json(text.encode()), explained)


# --- Read strictly ---


DOCUMENT = json.loads(rich().to_json())


def with_change(path: tuple[str | int, ...], change: Callable[[Any], Any]) -> str:
    """Return the document's text with the value at a path changed, or omitted if the change returns Ellipsis."""
    document = json.loads(json.dumps(DOCUMENT))
    place = document
    for key in path[:-1]:
        place = place[key]
    value = change(place[path[-1]])
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return json.dumps(document)


def paths(document: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in document.items():
        yield (*above, key)
        if isinstance(value, dict):
            yield from paths(value, (*above, key))


@pytest.mark.parametrize("path", list(paths(DOCUMENT)), ids=".".join)
def test_a_missing_member_is_refused_by_name(path: tuple[str, ...]) -> None:
    error = VerificationError if path[0] in STATEMENTS else DataError
    with pytest.raises(error, match=path[-1]):
        ExplainedForecast.from_json(with_change(path, lambda value: ...))


@pytest.mark.parametrize(
    "path", [(), ("window",), ("units",), ("known_units",), ("explanation",), ("context",)], ids=".".join
)
def test_an_unknown_member_is_refused_by_name(path: tuple[str, ...]) -> None:
    document = json.loads(json.dumps(DOCUMENT))
    place = document
    for key in path:
        place = place[key]
    place["note"] = 1
    where = path[-1] if path else "an explanation"
    with pytest.raises(DataError, match=rf"^{where} must have no other members.*'note'"):
        ExplainedForecast.from_json(json.dumps(document))


ROW_BY_ROW = (
    ("window", "history"),
    ("window", "known"),
    ("explanation", "mask"),
    ("explanation", "probability"),
    ("explanation", "missing"),
    ("context", "profile"),
    ("context", "response"),
    ("forecast",),
    ("truth",),
)
ARRAYS = (
    *ROW_BY_ROW,
    ("window", "channels"),
    ("window", "times"),
    ("context", "level"),
    ("context", "scale"),
    ("context", "phase"),
    ("units", "mean"),
    ("units", "std"),
    ("known_units", "mean"),
    ("known_units", "std"),
    ("explanation", "evidence"),
)


@pytest.mark.usefixtures("library_alone")
@pytest.mark.parametrize("path", ARRAYS, ids=".".join)
def test_a_list_that_is_too_short_or_empty_is_refused(path: tuple[str, ...]) -> None:
    for change in (lambda value: value[:-1], lambda value: []):
        with pytest.raises(IBForecastError):
            ExplainedForecast.from_json(with_change(path, change))


@pytest.mark.usefixtures("library_alone")
@pytest.mark.parametrize("path", ROW_BY_ROW, ids=".".join)
def test_rows_of_different_lengths_are_refused_by_name(path: tuple[str, ...]) -> None:
    with pytest.raises(DataError, match=rf"{'.'.join(path)} must have the type and shape of this field .got rows of"):
        ExplainedForecast.from_json(with_change(path, lambda rows: [rows[0][:-1], *rows[1:]]))
    with pytest.raises(IBForecastError):
        ExplainedForecast.from_json(with_change(path, lambda rows: [row[:-1] for row in rows]))


@pytest.mark.parametrize(
    ("path", "value", "got"),
    [
        (("weights_sha256",), 5, "5"),
        (("weights_sha256",), "\ud800", "ud800"),
        (("budget",), "half", "half"),
        (("budget",), True, "True"),
        (("budget",), None, "None"),
        (("prior",), [0.2], "0.2"),
        (("window",), [], r"\[\]"),
        (("window", "channels"), ["alpha", "beta", 3], "3"),
        (("window", "channels"), "alpha", "alpha"),
        (("window", "past"), [None], "None"),
        (("window", "covariates"), {}, "{}"),
        (("window", "frequency"), 1, "1"),
        (("window", "zone"), 1, "1"),
        (("window", "row"), 1.5, "1.5"),
        (("window", "row"), True, "True"),
        (("window", "row"), 2**70, str(2**70)),
        (("window", "times"), list(range(STEPS)), "0"),
        (("window", "history"), "long ago", "long ago"),
        (("window", "history"), [["1"] * 3] * LOOK_BACK, "'1'"),
        (("window", "known"), [[None] * 2] * STEPS, "None"),
        (("units",), 1, "1"),
        (("units", "mean"), [1.0, None, 1.0], "None"),
        (("known_units", "std"), [True, 1.0], "True"),
        (("explanation", "mask"), [[1, 0, 0]] * 4, "1"),
        (("explanation", "missing"), [[None] * 3] * 4, "None"),
        (("explanation", "probability"), [[0.1] * 3] * 4, "0.1, which single precision cannot represent"),
        (("explanation", "probability"), [[1e300] * 3] * 4, "single precision cannot represent"),
        (("context", "level"), [10**400] * 3, "too large"),
        (("context", "phase"), [0.5] * STEPS, "0.5"),
        (("context", "phase"), [2**70] * STEPS, str(2**70)),
        (("context", "phase"), [True] * STEPS, "True"),
        (("context", "cycles"), [], "no cycle"),
        (("context", "cycles"), [2.5, 6], "2.5"),
        (("context", "cycles"), 8, "8"),
        (("context", "response"), [[[None] * 3] * 2] * 2, "None"),
        (("forecast",), None, "None"),
        (("forecast",), [[10**400] * 3] * HORIZON, "too large"),
        (("truth",), [[True] * 3] * HORIZON, "True"),
        (("signature",), 5, "5"),
    ],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else str(value)[:24],
)
def test_a_value_of_the_wrong_type_is_refused_with_its_field(path: tuple[str, ...], value: Any, got: str) -> None:
    document = json.loads(json.dumps(DOCUMENT | {"signature": None}))
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    rule = "must have the type and shape of this field"
    with pytest.raises(DataError, match=rf"^{'.'.join(path)} {rule} \(got .*({got})"):
        ExplainedForecast.from_json(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "got"),
    [
        (lambda tokens: tokens[:-1], "3 tokens where 4 are open"),
        (lambda tokens: [*tokens, tokens[-1]], "5 tokens where 4 are open"),
        (lambda tokens: tokens[::-1], "patch 3 of 'beta' where patch 0 of 'beta' is open"),
        (lambda tokens: [tokens[0], *tokens[:3]], "patch 0 of 'beta' where patch 1"),
        (lambda tokens: [tokens[0] | {"patch": 4}, *tokens[1:]], "patch 4 of 'beta'"),
        (lambda tokens: [tokens[0] | {"patch": -4}, *tokens[1:]], "patch -4 of 'beta'"),
        (lambda tokens: [tokens[0] | {"patch": False}, *tokens[1:]], "False"),
        (lambda tokens: [tokens[0] | {"channel": "delta"}, *tokens[1:]], "patch 0 of 'delta'"),
        (lambda tokens: [tokens[0] | {"deviation": [0.0] * 3}, *tokens[1:]], "3 numbers for a patch of 4 steps"),
        (lambda tokens: [tokens[0] | {"deviation": [0.1] * 4}, *tokens[1:]], "single precision"),
        (lambda tokens: [tokens[0] | {"deviation": [None] * 4}, *tokens[1:]], "None"),
        (lambda tokens: [tokens[0] | {"note": 1}, *tokens[1:]], "'note'"),
        (lambda tokens: [{"patch": 0, "channel": "beta"}, *tokens[1:]], "none"),
        (lambda tokens: [0, *tokens[1:]], "0"),
        (lambda tokens: "all", "all"),
    ],
)
def test_evidence_must_list_exactly_the_open_tokens_in_order(change: Callable[[Any], Any], got: str) -> None:
    with pytest.raises(DataError, match=rf"^explanation\.evidence must .*\(got .*{got}"):
        ExplainedForecast.from_json(with_change(("explanation", "evidence"), change))


@pytest.mark.usefixtures("library_alone")
@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("window", "frequency"), "60min", r"window\.times: a frequency must be written as this library writes it"),
        (("window", "frequency"), "often", r"window\.times: a frequency must be a count and a unit"),
        (("window", "zone"), "Europe/Atlantis", r"window\.times: a time zone must be one of the IANA list"),
        (("window", "zone"), "+99:00", r"window\.times: a time zone must be one of the IANA list"),
        (("window", "times"), ["then"] * STEPS, r"window\.times: times must be ISO times"),
        (("window", "times"), [], r"window\.times"),
        (("context", "cycles"), [8], "response of an explanation must cover the first cycle|phase of an explanation"),
        (("known_units", "mean"), [1.0], "known_units"),
        (("known_units", "std"), [1.0] * 3, "known_units"),
    ],
)
def test_an_invalid_value_is_refused_with_the_name_of_its_field(
    path: tuple[str, ...], value: Any, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        ExplainedForecast.from_json(with_change(path, lambda _: value))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"must be valid JSON \(got .+\); write it again"),
        ('{"format": "ibforecast.explanation",', r"must be valid JSON"),
        ("[" * 100_000, r"must be valid JSON"),
        ("[1, 2]", r"must have the format 'ibforecast.explanation' \(got 'list'\)"),
        ("{}", r"must have the format 'ibforecast.explanation' \(got None\)"),
        ('{"format": "ibforecast.model", "version": 1}', r"must have the format .+ \(got 'ibforecast.model'\)"),
        ('{"format": "ibforecast.explanation"}', r"up to version 1 \(got version None\)"),
        ('{"format": "ibforecast.explanation", "version": "1"}', r"up to version 1 \(got version '1'\)"),
        ('{"format": "ibforecast.explanation", "version": 2}', r"up to version 1 \(got version 2\); upgrade"),
        ('{"format": "ibforecast.explanation", "version": 1}', r"must name its fingerprint"),
        ('{"format": "ibforecast.explanation", "version": 1, "sha256": ""}', r"must have the member weights_sha256"),
    ],
)
def test_a_text_that_is_not_an_explanation_is_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        ExplainedForecast.from_json(text)


@pytest.mark.parametrize(
    ("name", "lie"),
    [
        ("open_count", 3),
        ("open_count", "4"),
        ("open_rate", 0.25),
        ("rate_bits", 0.0),
        ("rate_bits", DOCUMENT["rate_bits"] + 1e-6),
        ("in_words", "It read nothing at all."),
        ("in_words", DOCUMENT["in_words"] + "\nAnd it was right."),
        ("in_words", ""),
        ("in_words", None),
        ("in_words", [DOCUMENT["in_words"]]),
    ],
)
def test_the_statements_of_a_document_must_follow_from_its_content(name: str, lie: Any) -> None:
    with pytest.raises(VerificationError, match=rf"{name} must follow from the rest of an explanation \(got "):
        ExplainedForecast.from_json(with_change((name,), lambda _: lie))


def test_the_number_one_is_not_true() -> None:
    document = json.loads(sample([[1]]).to_json())
    assert (document["open_count"], document["open_rate"]) == (1, 1.0)
    for name in ("open_count", "open_rate"):
        with pytest.raises(VerificationError, match=f"{name} must follow from the rest"):
            ExplainedForecast.from_json(json.dumps(document | {name: True}))


def test_a_wrong_line_of_the_words_is_named() -> None:
    words = DOCUMENT["in_words"].replace("Read: alpha", "Read: gamma")
    with pytest.raises(VerificationError, match=r"in_words must follow .*\(got 'Read: gamma"):
        ExplainedForecast.from_json(with_change(("in_words",), lambda _: words))


@pytest.mark.parametrize(
    "path",
    [("forecast", 0, 0), ("truth", 0, 0), ("window", "history", 0, 0), ("context", "level", 0), ("units", "mean", 0)],
)
def test_a_changed_number_does_not_match_the_fingerprint(path: tuple[str | int, ...]) -> None:
    with pytest.raises(VerificationError, match="an explanation must match its fingerprint"):
        ExplainedForecast.from_json(with_change(path, lambda number: number + 1 if path[0] != "context" else 0.5))


def test_a_wrong_fingerprint_is_refused() -> None:
    with pytest.raises(VerificationError, match="must match its fingerprint"):
        ExplainedForecast.from_json(with_change(("sha256",), lambda _: documents.fingerprint("something else")))


# --- Without its model ---


@pytest.mark.parametrize(
    ("use", "remedy"),
    [
        (lambda it: it.verify(), r"verifying needs the model .*use model\.verify\(explanation\)"),
        (lambda it: it.to_table(), r"making a table needs the model .*use tokens\(\)"),
        (lambda it: it.known_to_table(), r"making a table needs the model .*use known_steps\(\)"),
        (lambda it: it.plot("why.svg"), r"drawing needs the model .*use ibforecast\.plots\.explanation\.draw"),
    ],
)
def test_an_explanation_without_its_model_says_what_to_do(use: Callable[[Any], Any], remedy: str) -> None:
    with pytest.raises(UsageError, match=remedy):
        use(sample())
    assert sample()._repr_html_() is None


def test_a_patch_of_one_step_is_named_by_its_only_time() -> None:
    explained = sample()
    thin = np.zeros((LOOK_BACK, len(CHANNELS)), dtype=bool)
    thin[[5, 7, 8], 1] = True
    explanation = replace(
        explained.explanation,
        mask=thin,
        evidence=np.where(thin, np.float32(1), np.float32(0)),
        probability=np.full(thin.shape, 0.5, dtype=np.float32),
        missing=np.zeros_like(thin),
    )
    words = replace(explained, explanation=explanation).in_words(full=True)
    assert "Read: beta (2020-01-01 05:00, 2020-01-01 07:00 to 2020-01-01 08:00)." in words
