"""An account says what was read, in words, in rows and as JSON: no more, no less, and to the last bit."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields, replace
from math import log2
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ibforecast.core.account import PLAIN, Account, _rendered
from ibforecast.core.errors import DataError
from ibforecast.core.files import sha256, to_json

PATCH_LEN, HORIZON, CYCLE = 4, 3, 6
CHANNELS = ("alpha", "beta", "gamma")


def account(mask: Any, missing: Any = None, **changes: Any) -> Account:
    """An account with this mask (patch x channel) and arbitrary numbers, hour by hour from 2020-01-01 on."""
    mask = np.array(mask, dtype=bool)
    patches, channels = mask.shape
    look_back = patches * PATCH_LEN
    random = np.random.default_rng(7)
    hours = np.datetime64("2020-01-01T00:00") + np.arange(look_back + HORIZON) * np.timedelta64(1, "h")
    evidence = random.normal(size=(look_back, channels)).astype(np.float32)
    told = Account(
        weights_sha256="ab" * 32,
        computed_with={"torch": "1", "threads": "1"},
        budget=0.5,
        patch_len=PATCH_LEN,
        frequency="1h",
        channels=CHANNELS[:channels],
        times=tuple(hour.replace("T", " ") for hour in hours.astype(str).tolist()),
        history=random.normal(10, 3, size=(look_back, channels)),
        forecast=random.normal(10, 3, size=(HORIZON, channels)),
        truth=random.normal(10, 3, size=(HORIZON, channels)),
        mean=random.normal(10, 1, size=channels),
        std=random.uniform(1, 2, size=channels),
        level=random.normal(size=channels).astype(np.float32),
        scale=random.uniform(0.5, 2, size=channels).astype(np.float32),
        phase=(np.arange(look_back + HORIZON) + 2) % CYCLE,
        profile=random.normal(size=(CYCLE, channels)).astype(np.float32),
        mask=mask,
        probability=random.uniform(size=mask.shape).astype(np.float32),
        missing=np.zeros_like(mask) if missing is None else np.array(missing, dtype=bool),
        evidence=np.where(mask.repeat(PATCH_LEN, axis=0), evidence, np.float32(0)),
        prior=0.2,
    )
    return replace(told, **changes)


SOME = [[0, 1, 0], [0, 1, 0], [0, 0, 0], [1, 1, 0]]
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SINGLES = st.floats(allow_nan=False, allow_infinity=False, width=32)


def assert_same_bits(one: Account, other: Account) -> None:
    for field in fields(Account):
        told, kept = getattr(one, field.name), getattr(other, field.name)
        if isinstance(told, np.ndarray):
            assert (told.dtype, told.shape) == (kept.dtype, kept.shape), field.name
            assert told.tobytes() == kept.tobytes(), field.name
        else:
            assert told == kept, field.name


@settings(deadline=None, max_examples=40)
@given(data=st.data(), patches=st.integers(1, 4), channels=st.integers(1, 3), known=st.booleans())
def test_the_json_gives_back_every_field_bit_for_bit(
    data: st.DataObject, patches: int, channels: int, known: bool
) -> None:
    def drawn(dtype: type, elements: st.SearchStrategy[Any], *shape: int) -> np.ndarray:
        return data.draw(hnp.arrays(dtype, shape, elements=elements))

    mask = drawn(np.bool_, st.booleans(), patches, channels)
    look_back, holed = patches * PATCH_LEN, FLOATS | st.just(np.nan)
    evidence = drawn(np.float32, SINGLES, look_back, channels)
    told = account(
        mask,
        missing=drawn(np.bool_, st.booleans(), patches, channels),
        history=drawn(np.float64, holed, look_back, channels),
        forecast=drawn(np.float64, FLOATS, HORIZON, channels),
        truth=drawn(np.float64, holed, HORIZON, channels) if known else None,
        mean=drawn(np.float64, FLOATS, channels),
        std=drawn(np.float64, FLOATS, channels),
        level=drawn(np.float32, SINGLES, channels),
        scale=drawn(np.float32, SINGLES, channels),
        profile=drawn(np.float32, SINGLES, CYCLE, channels),
        probability=drawn(np.float32, st.floats(0, 1, width=32), patches, channels),
        phase=drawn(np.int64, st.integers(0, 2**62), look_back + HORIZON),
        evidence=np.where(mask.repeat(PATCH_LEN, axis=0), evidence, np.float32(0)),
        prior=data.draw(st.none() | st.floats(0.01, 0.99)),
    )
    assert_same_bits(told, Account.from_json(told.to_json()))


def test_the_json_is_strict_versioned_and_the_same_every_time() -> None:
    told = account(SOME, history=np.where(np.eye(16, 3, dtype=bool), np.nan, 1.0))
    document = json.loads(told.to_json(), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert (document["format"], document["format_version"]) == ("ibforecast.explanation", 4)
    assert document["model"]["weights_sha256"] == told.weights_sha256
    assert document["window"]["history"][0] == [None, 1.0, 1.0]
    assert Account.from_json(told.to_json()).to_json() == told.to_json()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | FLOATS | st.text(),
        lambda inner: (
            st.lists(st.text())
            | st.lists(st.none() | FLOATS)
            | st.lists(st.lists(FLOATS | st.integers(), min_size=1))
            | st.lists(st.dictionaries(st.text(), inner))
            | st.dictionaries(st.text(), inner)
        ),
        max_leaves=8,
    )
)
def test_a_document_is_rendered_as_every_other_file_only_sooner(document: Any) -> None:
    assert _rendered(document, PLAIN.encode) + "\n" == to_json(document).decode()


def test_the_json_holds_evidence_for_the_open_tokens_alone() -> None:
    told = account(SOME)
    tokens = json.loads(told.to_json())["explanation"]["evidence"]
    places = [(token["patch"], token["channel"]) for token in tokens]
    assert places == [(0, "beta"), (1, "beta"), (3, "alpha"), (3, "beta")]
    assert tokens[2]["deviation"] == told.evidence[12:16, 0].tolist()


def test_counts_rates_and_the_moment_follow_from_the_mask_and_the_times() -> None:
    told = account(SOME)
    assert (told.look_back, told.horizon, told.open_count, told.open_rate) == (16, 3, 4, 4 / 12)
    assert told.at == told.times[15] == "2020-01-01 15:00"
    assert repr(told) == "Account(at 2020-01-01 15:00, 3 steps of 3 channels, 4 of 12 tokens read)"


def test_the_deviation_is_what_level_scale_and_profile_leave() -> None:
    told = account(SOME)
    for step in range(told.look_back):
        for column in range(3):
            standardised = (told.history[step, column] - told.mean[column]) / told.std[column]
            framed = (standardised - told.level[column]) / told.scale[column]
            left = framed - told.profile[(step + 2) % CYCLE, column]
            assert told.deviation[step, column] == pytest.approx(left, rel=1e-12, abs=1e-12)


def test_there_is_one_row_per_token_channel_by_channel_and_oldest_first() -> None:
    told = account(SOME)
    rows = list(told.tokens())
    assert [row.channel for row in rows] == ["alpha"] * 4 + ["beta"] * 4 + ["gamma"] * 4
    assert [(row.start, row.end) for row in rows[:2]] == [
        ("2020-01-01 00:00", "2020-01-01 03:00"),
        ("2020-01-01 04:00", "2020-01-01 07:00"),
    ]
    assert [row.open for row in rows] == told.mask.T.ravel().tolist()
    assert [row.probability for row in rows] == told.probability.T.ravel().tolist()
    assert [row.values for row in rows] == told.history.T.reshape(12, PATCH_LEN).tolist()


def test_a_row_tells_mean_and_largest_deviation_of_what_was_observed() -> None:
    told = account([[0]], mean=np.zeros(1), std=np.ones(1), profile=np.zeros((CYCLE, 1), dtype=np.float32))
    told = replace(told, level=np.float32([1]), scale=np.float32([2]))
    (row,) = replace(told, history=np.array([[3.0], [np.nan], [-7.0], [1.0]])).tokens()
    assert (row.mean_deviation, row.largest_deviation) == (pytest.approx((1 - 4 + 0) / 3), -4.0)
    assert row.values == [3.0, None, -7.0, 1.0]
    (row,) = replace(told, history=np.full((4, 1), np.nan)).tokens()
    assert np.isnan([row.mean_deviation, row.largest_deviation]).all()
    assert row.values == [None] * 4


# --- Bits ---


def test_bits_are_what_each_gate_tells_beyond_the_prior_and_add_up_to_the_rate() -> None:
    told = account(SOME, missing=[[0, 0, 1], [0, 0, 0], [0, 0, 1], [0, 0, 0]])
    for (patch, column), p in np.ndenumerate(told.probability.astype(np.float64)):
        expected = 0.0 if told.missing[patch, column] else p * log2(p / 0.2) + (1 - p) * log2((1 - p) / 0.8)
        assert told.bits[patch, column] == pytest.approx(expected, rel=1e-9)
    assert told.rate_bits == pytest.approx(told.bits.sum())
    assert [row.bits for row in told.tokens()] == told.bits.T.ravel().tolist()


def test_a_gate_that_is_sure_tells_what_the_prior_did_not_expect_and_one_at_the_prior_nothing() -> None:
    told = account([[1, 0, 0]], probability=np.float32([[1.0, 0.0, 0.25]]), prior=0.25)
    assert told.bits.tolist() == [[pytest.approx(2), pytest.approx(-log2(0.75)), 0]]
    assert account([[1]], probability=np.float32([[1.0]]), missing=[[1]]).rate_bits == 0


def test_without_a_prior_there_are_no_bits() -> None:
    told = account(SOME, prior=None)
    assert told.bits is told.rate_bits is None
    assert all(np.isnan(row.bits) for row in told.tokens())
    assert "bits" not in told.in_words()


def older(told: Account, version: int = 1) -> dict[str, Any]:
    """The document of an account as an earlier version wrote it, without its fingerprint."""
    document = json.loads(replace(told, prior=None if version == 1 else told.prior).to_json())
    gone = {"sha256", "prior", "rate_bits"} if version == 1 else {"sha256"}
    if version < 3:
        del document["window"]["past"], document["context"]["cycles"], document["context"]["known"]
    words = document["in_words"].replace(
        "Nothing was read beyond the disclosed context of:",
        "Taken to follow their pattern at the window's level and scale:",
    )
    document |= {"format_version": version, "in_words": words}
    return {name: value for name, value in document.items() if name not in gone}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_document_of_an_earlier_version_is_read_in_its_own_words_and_written_in_those_of_today(version: int) -> None:
    told = account(SOME)
    document = older(told, version)
    again = Account.from_json(sealed(document))
    assert again.intact
    assert_same_bits(again, replace(told, prior=None) if version == 1 else told)
    written = json.loads(again.to_json())
    assert (written["format_version"], written["in_words"]) == (4, again.in_words(full=True))
    assert_same_bits(Account.from_json(again.to_json()), again)
    for words in (again.in_words(full=True), "It read nothing at all."):
        with pytest.raises(DataError, match=r"must say what its gates say \(got in_words"):
            Account.from_json(sealed(document | {"in_words": words}))


def test_a_document_of_an_earlier_version_that_was_changed_is_not_intact() -> None:
    text = sealed(older(account(SOME)))
    assert not Account.from_json(text.replace("2020-01-01 15:00", "2020-01-01 14:59")).intact


def test_a_document_cannot_count_bits_without_a_prior() -> None:
    document = json.loads(account(SOME, prior=None).to_json())
    with pytest.raises(DataError, match=r"must say what its gates say \(got rate_bits"):
        Account.from_json(sealed(document | {"rate_bits": 0.0}))


def test_a_new_document_cannot_pass_for_an_old_one() -> None:
    with pytest.raises(DataError, match=r"must say what its gates say \(got in_words 'It read .+ bits beyond"):
        Account.from_json(with_change(("format_version",), lambda told: 1))
    without = {name: value for name, value in DOCUMENT.items() if name != "in_words"}
    assert not Account.from_json(json.dumps(without | {"format_version": 1})).intact


@pytest.mark.parametrize("prior", [0.0, 1.0, -1.0, "0.2", [0.2], True])
def test_a_prior_that_cannot_be_is_refused(prior: Any) -> None:
    with pytest.raises(DataError, match="complete and of one shape"):
        Account.from_json(with_change(("prior",), lambda told: prior))


def test_the_rate_must_be_that_of_the_gates_up_to_the_last_bits() -> None:
    assert Account.from_json(with_change(("rate_bits",), lambda told: told * (1 + 1e-12))).rate_bits
    for lie in (lambda told: told + 0.001, lambda told: 0.0):
        with pytest.raises(DataError, match=r"must say what its gates say \(got rate_bits"):
            Account.from_json(with_change(("rate_bits",), lie))
    with pytest.raises(DataError, match=r"must say what its gates say \(got rate_bits"):
        Account.from_json(with_change(("prior",), lambda told: 0.21))


# --- Words ---


def test_the_words_end_the_count_with_the_bits() -> None:
    told = account([[1, 0, 0]], probability=np.float32([[1.0, 0.0, 0.25]]), prior=0.25)
    assert told.in_words().splitlines()[1] == (
        "It read 1 of 3 tokens: 33.3 % of the window, where the budget allows 50 %; "
        "its gates tell 2.4 bits beyond their prior."
    )


def test_nothing_open_is_said_so() -> None:
    assert account(np.zeros((4, 3)), prior=None).in_words().splitlines() == [
        "Forecast of 2020-01-01 16:00 to 2020-01-01 18:00, made at 2020-01-01 15:00.",
        "It read 0 of 12 tokens: 0 % of the window, where the budget allows 50 %.",
        "Read: nothing.",
        "Nothing was read beyond the disclosed context of: alpha, beta, gamma.",
    ]


def test_everything_open_is_one_span_per_channel_and_of_nothing_nothing_was_read() -> None:
    span = "2020-01-01 00:00 to 2020-01-01 15:00"
    assert account(np.ones((4, 3)), budget=1.0, prior=None).in_words().splitlines()[1:] == [
        "It read 12 of 12 tokens: 100 % of the window, where the budget allows 100 %.",
        f"Read: alpha, beta, gamma ({span}).",
    ]


def test_neighbours_are_one_span_and_others_are_not() -> None:
    told = account(SOME, missing=[[0, 0, 1], [0, 0, 0], [0, 0, 1], [0, 0, 0]], prior=None)
    assert told.in_words().splitlines()[1:] == [
        "It read 4 of 12 tokens: 33.3 % of the window, where the budget allows 50 %.",
        "Read: alpha (2020-01-01 12:00 to 2020-01-01 15:00); "
        "beta (2020-01-01 00:00 to 2020-01-01 07:00, 2020-01-01 12:00 to 2020-01-01 15:00).",
        "Nothing was read beyond the disclosed context of: gamma.",
        "Not readable because of missing values: gamma (2 of 4 patches).",
    ]


@settings(deadline=None, max_examples=60)
@given(mask=hnp.arrays(np.bool_, st.tuples(st.integers(1, 6), st.integers(1, 3))))
def test_the_words_name_exactly_the_open_tokens(mask: np.ndarray) -> None:
    told = account(mask)
    lines = told.in_words(full=True).splitlines()
    (read,) = (line for line in lines if line.startswith("Read: "))
    quiet = " ".join(line for line in lines if line.startswith("Nothing was read"))
    found = np.zeros_like(mask)
    for name, spans in re.findall(r"(\w+) \(([^)]*)\)", read):
        for span in spans.split(", "):
            first, last = (told.times.index(time) for time in span.split(" to "))
            found[first // PATCH_LEN : last // PATCH_LEN + 1, CHANNELS.index(name)] = True
    np.testing.assert_array_equal(found, mask)
    assert [name in quiet for name in told.channels] == (~mask.any(axis=0)).tolist()


@pytest.mark.parametrize(
    ("open_patches", "words"),
    [
        (
            (0, 2, 4),
            "2020-01-01 00:00 to 2020-01-01 03:00, 2020-01-01 08:00 to 2020-01-01 11:00, "
            "2020-01-01 16:00 to 2020-01-01 19:00",
        ),
        ((0, 2, 4, 6), "4 of 8 patches, one in 2, 2020-01-01 00:00 to 2020-01-02 03:00"),
        ((0, 2, 3, 5, 7), "5 of 8 patches, 2020-01-01 00:00 to 2020-01-02 07:00"),
    ],
)
def test_many_places_are_counted_and_channels_read_alike_told_together(
    open_patches: tuple[int, ...], words: str
) -> None:
    mask = np.zeros((8, 3))
    mask[open_patches, :2] = 1
    told = account(mask, budget=1.0)
    assert told.in_words().splitlines()[2] == f"Read: alpha, beta ({words})."
    assert told.in_words(full=True).count(" to 2020") == 1 + 2 * len(list(told._spans(list(open_patches))))
    assert json.loads(told.to_json())["in_words"] == told.in_words(full=True)


def test_but_for_the_bits_the_words_come_from_the_mask_and_not_from_the_numbers() -> None:
    told, other = account(SOME, prior=None), np.random.default_rng(1)
    changed = replace(
        told,
        history=other.normal(size=told.history.shape),
        forecast=other.normal(size=told.forecast.shape),
        probability=other.uniform(size=told.mask.shape).astype(np.float32),
        evidence=other.normal(size=told.evidence.shape).astype(np.float32),
        level=told.level + 9,
        profile=-told.profile,
        truth=None,
    )
    assert changed.in_words() == told.in_words()
    assert replace(told, mask=~told.mask).in_words() != told.in_words()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"must be valid JSON \(got .+\); export it again"),
        ('{"format": "ibforecast.explanation",', r"must be valid JSON"),
        ("[" * 100_000, r"must be readable \(got RecursionError: .+\); write it anew"),
        ("[1, 2]", r"must say format 'ibforecast.explanation' \(got 'list'\)"),
        ("{}", r"must say format 'ibforecast.explanation' \(got None\)"),
        ('{"format": "ibforecast.model", "format_version": 1}', r"must say format .+ \(got 'ibforecast.model'\)"),
        ('{"format": "ibforecast.explanation"}', r"format version 4 \(got None\)"),
        ('{"format": "ibforecast.explanation", "format_version": 1}', r"complete and of one shape \(got KeyError"),
        ('{"format": "ibforecast.explanation", "format_version": 2}', r"complete and of one shape \(got KeyError"),
        ('{"format": "ibforecast.explanation", "format_version": "2"}', r"format version 4 \(got '2'\)"),
        ('{"format": "ibforecast.explanation", "format_version": [1]}', r"format version 4 \(got \[1\]\)"),
        (
            '{"format": "ibforecast.explanation", "format_version": 5}',
            r"reads explanations up to format version 4 \(got 5\); use a matching version of ibforecast",
        ),
    ],
)
def test_what_is_no_explanation_is_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Account.from_json(text)


DOCUMENT = json.loads(account(SOME).to_json())


def paths(document: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in document.items():
        yield (*above, key)
        if isinstance(value, dict) and key != "computed_with":
            yield from paths(value, (*above, key))


def with_change(path: tuple[str, ...], change: Callable[[Any], Any]) -> str:
    """The document's text with the value at a path changed, or gone where the change gives None."""
    document = json.loads(json.dumps(DOCUMENT))
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = change(place[path[-1]])
    if place[path[-1]] is None:
        del place[path[-1]]
    return json.dumps(document)


@pytest.mark.parametrize("path", [path for path in paths(DOCUMENT) if path != ("in_words",)], ids=".".join)
def test_a_document_without_one_of_its_keys_is_refused(path: tuple[str, ...]) -> None:
    with pytest.raises(DataError):
        Account.from_json(with_change(path, lambda value: None))


ARRAYS = [
    ("window", "channels"),
    ("window", "times"),
    ("window", "history"),
    ("context", "level"),
    ("context", "scale"),
    ("context", "phase"),
    ("context", "standardisation", "mean"),
    ("context", "standardisation", "std"),
    ("explanation", "mask"),
    ("explanation", "probability"),
    ("explanation", "missing"),
    ("forecast",),
    ("truth",),
]
NESTED = [*ARRAYS[2:3], *ARRAYS[8:], ("context", "profile")]


@pytest.mark.parametrize("path", ARRAYS, ids=".".join)
def test_an_array_that_is_one_short_is_refused(path: tuple[str, ...]) -> None:
    with pytest.raises(DataError, match="complete and of one shape"):
        Account.from_json(with_change(path, lambda value: value[:-1]))


@pytest.mark.parametrize("path", NESTED, ids=".".join)
def test_an_array_that_lacks_a_channel_or_is_ragged_is_refused(path: tuple[str, ...]) -> None:
    for change in (lambda rows: [row[:-1] for row in rows], lambda rows: [rows[0][:-1], *rows[1:]]):
        with pytest.raises(DataError, match="complete and of one shape"):
            Account.from_json(with_change(path, change))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("window", "patch_len"), 0),
        (("window", "patch_len"), -4),
        (("window", "patch_len"), "four"),
        (("window", "history"), "long ago"),
        (("model", "computed_with"), 3),
        (("window", "patch_len"), 4.0),
        (("context", "phase"), [2**70] * 19),
        (("forecast",), [[10**400] * 3] * 3),
        (("explanation", "evidence"), [{"patch": 0, "channel": "delta", "deviation": [0.0] * 4}]),
        (("explanation", "evidence"), [{"patch": 4, "channel": "beta", "deviation": [0.0] * 4}]),
        (("explanation", "evidence"), [{"patch": -1, "channel": "beta", "deviation": [0.0] * 4}]),
        (("explanation", "evidence"), [{"patch": 0, "channel": "beta", "deviation": [0.0] * 3}]),
        (("explanation", "evidence"), [{"patch": 0, "channel": "beta"}]),
    ],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else str(value)[:30],
)
def test_a_value_that_cannot_be_is_refused(path: tuple[str, ...], value: Any) -> None:
    with pytest.raises(DataError, match="complete and of one shape"):
        Account.from_json(with_change(path, lambda told: value))


@pytest.mark.parametrize(
    ("path", "value", "odd"),
    [
        (("model", "weights_sha256"), 5, "5"),
        (("model", "computed_with"), [[1, 2]], "1"),
        (("model", "computed_with"), {"torch": 2}, "2"),
        (("window", "frequency"), 1, "1"),
        (("window", "channels"), ["alpha", "beta", 3], "3"),
        (("window", "times"), list(range(19)), "0"),
    ],
)
def test_what_is_no_text_where_text_belongs_is_refused(path: tuple[str, ...], value: Any, odd: str) -> None:
    with pytest.raises(
        DataError, match=rf"\(got TypeError: {path[-1]} has {odd} where text belongs\); export it again"
    ):
        Account.from_json(with_change(path, lambda told: value))


@pytest.mark.parametrize("budget", ["half", [0.5], True])
def test_a_budget_that_is_no_number_is_refused(budget: Any) -> None:
    with pytest.raises(DataError, match=r"\(got TypeError: budget has .+ where a number belongs\); export it again"):
        Account.from_json(with_change(("budget",), lambda told: budget))


@pytest.mark.parametrize("depth", range(700, 1000, 10))
def test_a_document_so_deep_that_it_can_be_read_but_not_written_is_refused(depth: int) -> None:
    text = json.dumps(DOCUMENT | {"remark": None}).replace("null", "[" * depth + "]" * depth)
    with suppress(DataError):
        assert not Account.from_json(text).intact


def test_a_patch_of_no_steps_is_refused_even_where_nothing_was_read() -> None:
    document = json.loads(account(np.zeros((4, 3))).to_json())
    document["window"]["patch_len"] = 0
    with pytest.raises(DataError, match="complete and of one shape"):
        Account.from_json(json.dumps(document))


@pytest.mark.parametrize(("name", "lie"), [("open_count", 3), ("open_rate", 0.25)])
def test_what_a_document_says_first_must_be_what_its_gates_say(name: str, lie: Any) -> None:
    with pytest.raises(DataError, match=rf"must say what its gates say \(got {name} .+\); export it again"):
        Account.from_json(with_change((name,), lambda told: lie))


def sealed(document: dict[str, Any]) -> str:
    """The text of a document with a fingerprint that fits."""
    bare = {name: value for name, value in document.items() if name != "sha256"}
    return to_json(bare | {"sha256": sha256(to_json(bare))}).decode()


@pytest.mark.parametrize("words", ["It read nothing at all.", "", 5, None, ["Read: nothing."]])
def test_the_sentences_must_be_those_of_the_gates_whatever_the_fingerprint(words: Any) -> None:
    for text in (sealed(DOCUMENT | {"in_words": words}), json.dumps(DOCUMENT | {"in_words": words})):
        with pytest.raises(DataError, match=r"must say what its gates say \(got in_words .+\); export it again"):
            Account.from_json(text)


def test_times_that_the_sentences_do_not_name_are_refused() -> None:
    window = DOCUMENT["window"]
    with pytest.raises(DataError, match=r"got in_words 'Read: alpha .+ beta \(2020-01-01 00:00 to"):
        Account.from_json(sealed(DOCUMENT | {"window": window | {"times": ["then", *window["times"][1:]]}}))


def test_a_document_without_sentences_tells_no_lie() -> None:
    without = {name: value for name, value in DOCUMENT.items() if name != "in_words"}
    assert Account.from_json(sealed(without)).intact


def test_a_document_that_was_changed_is_no_longer_intact() -> None:
    assert Account.from_json(json.dumps(DOCUMENT)).intact
    assert not Account.from_json(json.dumps(DOCUMENT | {"remark": "none"})).intact
    changed = with_change(("window", "times"), lambda told: [*told[:1], "then", *told[2:]])
    assert not Account.from_json(changed).intact
