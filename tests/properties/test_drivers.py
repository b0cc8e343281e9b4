"""Properties of drivers for any amounts: a source is the sum of its places, so places that cancel move nothing."""

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import Bool, Float64

from ibforecast import ExplainedForecast, IBForecaster, receipts
from ibforecast.core.receipt import Amounts
from ibforecast.drivers import Drivers, drivers_of
from ibforecast.engine import TorchEngine

HORIZON, WINDOWS = 4, 3
CHANNELS = ("load", "wind")
TINY = 'extends = "choosing"\n[model.readout]\nwidth = 8\n[train]\nepochs = 1\nbatch = 64\n'

Of = Callable[..., Drivers]
Read = Float64[np.ndarray, "open horizon"]
Mask = Bool[np.ndarray, "patch channel"]


@pytest.fixture(scope="module")
def explained(tmp_path_factory: pytest.TempPathFactory) -> tuple[TorchEngine, list[ExplainedForecast]]:
    """Three explanations of a small model that is not sealed and has a covariate."""
    recipe = tmp_path_factory.mktemp("recipe") / "tiny.toml"
    recipe.write_text(TINY)
    values = np.random.default_rng(0).normal(size=(300, 3))
    times = pd.date_range("2024-01-01", periods=300, freq="h")
    table = pd.DataFrame(values, columns=[*CHANNELS, "price"]).assign(time=times)
    model = IBForecaster(HORIZON, 24, 0.5, future=("price",), recipe=str(recipe), device="cpu").fit(table)
    moments = [times[row] for row in (200, 231, 262)]
    return TorchEngine(model.fitted), [model.explain(table, at) for at in moments]


@pytest.fixture(scope="module")
def measured(explained: tuple[TorchEngine, list[ExplainedForecast]]) -> Iterator[Of]:
    """Return drivers of the explanations, with drawn amounts instead of their own.

    `change` makes the amounts of the places that are read from drawn ones and the mask.
    """
    engine, windows = explained
    with pytest.MonkeyPatch.context() as patch:

        def of(seed: int, change: Callable[[Read, Mask], Read]) -> Drivers:
            random = np.random.default_rng(seed)

            def amounts(_: TorchEngine, one: ExplainedForecast, columns: list[int]) -> Iterator[Amounts]:
                for _column in columns:
                    calendar, unread, known = random.normal(size=(3, HORIZON))
                    read = change(random.normal(size=(one.open_count, HORIZON)), one.explanation.mask)
                    yield Amounts(calendar, read, known[None], unread)

            patch.setattr(receipts, "amounts", amounts)
            return drivers_of(engine, windows)

        yield of


def cancelled(read: Read, mask: Mask) -> Read:
    """Let the amounts of two neighbouring places of a source cancel; the last one of an odd number adds nothing."""
    result, channels = np.zeros_like(read), np.nonzero(mask)[1]
    for channel in range(mask.shape[1]):
        (own,) = np.nonzero(channels == channel)
        pairs = len(own) // 2
        result[own[0 : 2 * pairs : 2]], result[own[1 : 2 * pairs : 2]] = read[own[:pairs]], -read[own[:pairs]]
    return result


def one_place(read: Read, mask: Mask) -> Read:
    """Let only one place of each source add something."""
    channels = np.nonzero(mask)[1]
    newest = [np.flatnonzero(channels == channel)[-1:] for channel in range(mask.shape[1])]
    kept = np.zeros((len(read), 1))
    kept[np.concatenate(newest)] = 1
    return read * kept


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_source_whose_places_cancel_has_size_zero(measured: Of, seed: int) -> None:
    drivers = measured(seed, cancelled)
    for source in drivers.sources():
        places = [row for row in drivers.of(source.channel) if row.source == source.source]
        assert any(row.size for row in places)
        assert (source.size == 0) == (source.source in CHANNELS)
    words = "\n".join(drivers.in_words().splitlines()[1:])
    assert "its own past" not in words
    assert words.count("price (known ahead)") == words.count(": from outside ") == len(CHANNELS)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_source_with_one_place_is_as_large_as_this_place(measured: Of, seed: int) -> None:
    drivers = measured(seed, one_place)
    for source in drivers.sources():
        sizes = [row.size for row in drivers.of(source.channel) if row.source == source.source]
        # The newest place that is read may differ between windows; the others have the size 0 there.
        assert source.size == pytest.approx(sum(sizes))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), scale=st.floats(1e-6, 1e6))
def test_shares_add_up_to_one_and_sizes_to_no_more_than_those_of_places(measured: Of, seed: int, scale: float) -> None:
    drivers = measured(seed, lambda read, mask: scale * read)
    for grouped in (None, drivers.by("event")):
        document = drivers.document(grouped)
        for channel in CHANNELS:
            rows, sources, groups = (
                [row for row in document[name] if row["channel"] == channel] for name in ("rows", "sources", "groups")
            )
            assert sum(row["share"] for row in rows) == pytest.approx(1)
            assert sum(row["share"] for row in sources) == pytest.approx(1)
            for group in {row["group"] for row in groups}:
                assert sum(row["share"] for row in groups if row["group"] == group) == pytest.approx(1)
            for source in sources:
                assert source["size"] <= sum(row["size"] for row in rows if row["source"] == source["source"]) + 1e-9
