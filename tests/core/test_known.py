"""An account of a forecast with covariates and several cycles: in words, in rows and as JSON."""

import json
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ibforecast.core.account import Account, Known
from ibforecast.core.errors import DataError

PATCH_LEN, HORIZON, CYCLES, LOOK_BACK = 4, 3, (2, 6), 8
CHANNELS, PAST = ("alpha", "beta", "gamma"), ("gamma",)
STEPS = LOOK_BACK + HORIZON


def known(covariates: int = 2) -> Known:
    random = np.random.default_rng(1)
    return Known(
        names=("holiday", "plan", "price")[:covariates],
        values=random.normal(20, 5, size=(STEPS, covariates)),
        usual=random.normal(20, 1, size=covariates),
        std=random.uniform(1, 2, size=covariates),
        response=random.normal(size=(CYCLES[0], covariates, 3)).astype(np.float32),
    )


def account(**changes: Any) -> Account:
    """An account with arbitrary numbers, hour by hour from 2020-01-01 on; gamma is read and not forecast."""
    random = np.random.default_rng(7)
    mask = np.array([[1, 0, 0], [0, 0, 1]], dtype=bool)
    evidence = random.normal(size=(LOOK_BACK, 3)).astype(np.float32)
    forecast = random.normal(10, 3, size=(HORIZON, 3))
    forecast[:, 2] = np.nan
    told = Account(
        weights_sha256="ab" * 32,
        computed_with={"torch": "1", "threads": "1"},
        budget=0.5,
        patch_len=PATCH_LEN,
        frequency="1h",
        channels=CHANNELS,
        times=tuple(f"2020-01-01 {hour:02}:00" for hour in range(STEPS)),
        history=random.normal(10, 3, size=(LOOK_BACK, 3)),
        forecast=forecast,
        truth=random.normal(10, 3, size=(HORIZON, 3)),
        mean=random.normal(10, 1, size=3),
        std=random.uniform(1, 2, size=3),
        level=random.normal(size=3).astype(np.float32),
        scale=random.uniform(0.5, 2, size=3).astype(np.float32),
        phase=(np.arange(STEPS) + 2) % 6,
        profile=random.normal(size=(sum(CYCLES), 3)).astype(np.float32),
        mask=mask,
        probability=random.uniform(size=mask.shape).astype(np.float32),
        missing=np.zeros_like(mask),
        evidence=np.where(mask.repeat(PATCH_LEN, axis=0), evidence, np.float32(0)),
        prior=0.2,
        cycles=CYCLES,
        past=PAST,
        known=known(),
    )
    return replace(told, **changes)


def arrays_of(told: Account) -> dict[str, np.ndarray]:
    held = [(field.name, getattr(told, field.name)) for field in fields(told)]
    held += [] if told.known is None else [(f"known.{name}", value) for name, value in vars(told.known).items()]
    return {name: value for name, value in held if isinstance(value, np.ndarray)}


@settings(deadline=None, max_examples=30)
@given(
    data=st.data(),
    covariates=st.integers(1, 3),
    values=hnp.arrays(np.float64, (STEPS, 3), elements=st.floats(allow_nan=False, allow_infinity=False)),
    response=hnp.arrays(np.float32, (2, 3, 3), elements=st.floats(allow_nan=False, allow_infinity=False, width=32)),
)
def test_the_json_gives_back_cycles_past_and_what_is_known_bit_for_bit(
    data: st.DataObject, covariates: int, values: np.ndarray, response: np.ndarray
) -> None:
    ahead = replace(known(covariates), values=values[:, :covariates].copy(), response=response[:, :covariates].copy())
    told = account(known=data.draw(st.sampled_from([None, ahead])))
    again = Account.from_json(told.to_json())
    assert again.intact
    assert (again.cycles, again.past) == (CYCLES, PAST)
    assert (again.known is None) == (told.known is None)
    if told.known is not None:
        assert again.known.names == told.known.names
    one, other = arrays_of(told), arrays_of(again)
    assert one.keys() == other.keys()
    assert all(one[name].tobytes() == other[name].tobytes() for name in one)
    assert again.to_json() == told.to_json()


def test_a_document_says_so_where_there_are_no_covariates_and_one_cycle() -> None:
    told = account(cycles=(), past=(), known=None, forecast=np.ones((HORIZON, 3)))
    document = json.loads(told.to_json())
    assert document["window"]["past"] == document["context"]["known"] == []
    assert document["context"]["cycles"] == [len(told.profile)]


def test_the_words_say_what_is_not_forecast_and_what_is_known_ahead() -> None:
    assert account().in_words().splitlines()[-2:] == [
        "Not forecast: gamma.",
        "Known ahead, up to 2020-01-01 10:00, and part of the context: holiday, plan.",
    ]
    plain = account(past=(), known=None, forecast=np.ones((HORIZON, 3))).in_words()
    assert "Not forecast" not in plain
    assert "ahead" not in plain


def test_the_baseline_is_level_and_all_profiles_and_all_effects() -> None:
    told = account()
    for step, column in np.ndindex(STEPS, 3):
        phase = (step + 2) % 6
        seasonal = told.profile[phase % 2, column] + told.profile[2 + phase, column]
        moved = sum(
            (told.known.values[step, number] - told.known.usual[number])
            / told.known.std[number]
            * told.known.response[phase % 2, number, column]
            for number in range(2)
        )
        framed = told.level[column] + told.scale[column] * seasonal + moved
        assert told.expected[step, column] == pytest.approx(told.mean[column] + told.std[column] * framed, rel=1e-5)


def test_there_is_a_row_for_every_step_covariate_and_channel_that_is_forecast() -> None:
    told = account()
    rows = list(told.known_steps())
    assert len(rows) == STEPS * 2 * 2
    assert {row.channel for row in rows} == {"alpha", "beta"}
    assert [row.time for row in rows[:: 2 * 2]] == list(told.times)
    baseline = told.expected - replace(told, known=None).expected
    for step, time in enumerate(told.times):
        effects = [row.effect for row in rows if row.time == time and row.channel == "beta"]
        assert sum(effects) == pytest.approx(baseline[step, 1])
    assert [row.value for row in rows if row.covariate == "plan"][::2] == told.known.values[:, 1].tolist()
    assert list(account(known=None).known_steps()) == []


def changed(path: tuple[str | int, ...], change: Callable[[Any], Any]) -> str:
    document = json.loads(account().to_json())
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = change(place[path[-1]])
    return json.dumps(document)


@pytest.mark.parametrize(
    ("path", "change"),
    [
        (("context", "cycles"), lambda cycles: [*cycles, 1]),
        (("context", "cycles"), lambda cycles: []),
        (("context", "cycles"), lambda cycles: [8.0]),
        (("context", "cycles"), lambda cycles: [-1, 9]),
        (("context", "known", 0, "values"), lambda values: values[:-1]),
        (("context", "known", 1, "response"), lambda rows: rows[:-1]),
        (("context", "known", 0, "response"), lambda rows: [row[:-1] for row in rows]),
        (("context", "known", 0, "std"), lambda std: "wide"),
        (("window", "past"), lambda past: ["delta"]),
        (("window", "past"), lambda past: list(CHANNELS)),
        (("window", "past"), lambda past: []),
        (("forecast",), lambda rows: [[*row[:2], 1.0] for row in rows]),
        (("forecast",), lambda rows: [[None, *row[1:]] for row in rows]),
    ],
)
def test_what_does_not_go_together_is_refused(path: tuple[str | int, ...], change: Callable[[Any], Any]) -> None:
    with pytest.raises(DataError, match="complete and of one shape"):
        Account.from_json(changed(path, change))


def test_what_was_known_can_not_be_changed_unnoticed() -> None:
    text = changed(("context", "known", 0, "values"), lambda values: [values[0] + 1, *values[1:]])
    assert not Account.from_json(text).intact
