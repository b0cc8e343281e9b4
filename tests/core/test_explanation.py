"""The field table of an explanation, and conversions between batches and windows, tensors and arrays."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import config
from torch import Tensor

from ibforecast.core.context import Context
from ibforecast.core.errors import DataError
from ibforecast.core.explanation import FIELDS, Explanation, Field
from ibforecast.engine import tensors


def explanation(
    batch: tuple[int, ...] = (2,),
    patches: int = 3,
    patch_len: int = 4,
    horizon: int = 5,
    channels: int = 2,
    cycles: tuple[int, ...] = (6,),
    covariates: int = 0,
) -> Explanation[Tensor]:
    """Return an explanation of tensors with arbitrary numbers; `batch` is empty for a single window."""
    random = torch.Generator().manual_seed(patches * 1000 + channels)
    steps, tokens = patches * patch_len + horizon, (*batch, patches, channels)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random)

    return Explanation(
        mask=normal(*tokens) > 0,
        evidence=normal(*batch, patches * patch_len, channels),
        probability=normal(*tokens).sigmoid(),
        missing=normal(*tokens) > 1,
        context=Context(
            level=normal(*batch, channels),
            scale=normal(*batch, channels).exp(),
            phase=torch.randint(0, 6, (*batch, steps), generator=random),
            profile=normal(sum(cycles), channels),
            cycles=cycles,
            known=normal(*batch, steps, covariates) if covariates else None,
            response=normal(cycles[0], covariates, channels) if covariates else None,
        ),
    )


sizes = st.fixed_dictionaries(
    {
        "patches": st.integers(1, 4),
        "patch_len": st.integers(1, 4),
        "horizon": st.integers(1, 4),
        "channels": st.integers(1, 3),
        "cycles": st.sampled_from([(1,), (6,), (2, 3)]),
        "covariates": st.integers(0, 2),
    }
)


def assert_same(one: Explanation[Any], other: Explanation[Any]) -> None:
    mine, theirs = list(one.arrays()), list(other.arrays())
    assert [row for row, _ in mine] == [row for row, _ in theirs]
    for (row, array), (_, again) in zip(mine, theirs, strict=True):
        assert type(array) is type(again), row
        assert (array.dtype, array.shape) == (again.dtype, again.shape), row
        assert bool((array == again).all()), row
    assert one.context.cycles == other.context.cycles


# --- The field table ---


def test_the_table_lists_every_array_of_the_two_dataclasses_once() -> None:
    arrays = [field.name for field in fields(Explanation) if field.name != "context"]
    context = [field.name for field in fields(Context) if field.name != "cycles"]
    assert [(row.name, row.part) for row in FIELDS] == [
        *((name, "explanation") for name in arrays),
        *((name, "context") for name in context),
    ]


def test_the_table_has_axes_kind_and_optionality() -> None:
    rows = {row.name: row for row in FIELDS}

    def names(kind: str) -> set[str]:
        return {name for name, row in rows.items() if getattr(row, kind)}

    assert rows["mask"].axes == ("*batch", "patch", "channel")
    assert rows["evidence"].axes == ("*batch", "look_back", "channel")
    assert rows["response"].axes == ("first_cycle", "covariate", "channel")
    assert {row.kind for row in FIELDS} == {"bool", "int64", "float32"}
    assert {name for name, row in rows.items() if row.kind == "bool"} == {"mask", "missing"}
    assert {name for name, row in rows.items() if row.part == "explanation"} == {*rows} - {
        *("level", "scale", "phase", "profile", "known", "response", "anchor", "blend")
    }
    assert names("optional") == names("needs") == {"known", "response", "anchor", "blend"}
    assert {*rows} - names("batched") == {"profile", "response", "blend"}
    assert names("given") == {"phase", "known"}
    assert {*rows} - names("written") == {"known"}
    assert {*rows} - names("replayed") == {"probability", "missing"}
    assert names("in_scales") == {"level", "scale", "anchor"}


def test_only_arrays_that_are_present_are_listed() -> None:
    planned = [row.name for row in FIELDS if row.needs in ("", "covariates")]
    assert [row.name for row, _ in explanation(covariates=1).arrays()] == planned
    bare = explanation()
    assert [row.name for row, _ in bare.arrays()] == [row.name for row in FIELDS if not row.optional]
    assert all(array is row.of(bare) for row, array in bare.arrays())


# --- Inverse pairs ---


@given(sizes=sizes)
def test_the_identity_map_gives_the_same_explanation(sizes: dict[str, Any]) -> None:
    whole = explanation(**sizes)
    assert_same(whole.map(lambda _, array: array), whole)


@given(sizes=sizes)
def test_a_map_gets_every_array_with_its_field_and_can_be_inverted(sizes: dict[str, Any]) -> None:
    whole, seen = explanation(**sizes), []

    def turned(row: Field, array: Tensor) -> Tensor:
        seen.append(row.name)
        return ~array if row.kind == "bool" else -array

    again = whole.map(turned).map(turned)
    assert seen == 2 * [row.name for row, _ in whole.arrays()]
    assert_same(again, whole)


@given(sizes=sizes)
def test_a_batch_of_one_window_and_its_window_are_inverse(sizes: dict[str, Any]) -> None:
    one = explanation(batch=(), **sizes)
    assert_same(one.batch().window(0), one)
    whole = explanation(batch=(1,), **sizes)
    assert_same(whole.window(0).batch(), whole)


@given(sizes=sizes, number=st.integers(0, 2))
def test_a_window_is_its_slice_of_the_batch_with_the_models_profile(sizes: dict[str, Any], number: int) -> None:
    whole = explanation(batch=(3,), **sizes)
    for row, array in whole.window(number).arrays():
        own = row.of(whole)
        assert torch.equal(array, own[number] if row.batched else own), row


@given(sizes=sizes)
def test_conversion_between_numpy_and_torch_keeps_every_bit(sizes: dict[str, Any]) -> None:
    one = explanation(batch=(), **sizes)
    plain = one.numpy()
    for row, array in plain.arrays():
        assert isinstance(array, np.ndarray)
        assert array.dtype == row.kind
        assert (array == row.of(one).numpy()).all()
    assert_same(tensors(plain).window(0), one)
    assert_same(tensors(plain).numpy().window(0), plain)


def test_arrays_are_copied_without_gradients() -> None:
    one = explanation()
    one = replace(one, evidence=one.evidence.requires_grad_())
    plain = one.numpy()
    tensors(plain.window(0)).evidence.zero_()
    assert plain.evidence.any()


# --- Derived numbers ---


@given(sizes=sizes)
def test_counts_rates_and_lengths_are_correct_for_windows_and_batches(sizes: dict[str, Any]) -> None:
    whole = explanation(batch=(3,), **sizes)
    tokens = sizes["patches"] * sizes["channels"]
    assert whole.open_count.tolist() == [int(mask.sum()) for mask in whole.mask]
    assert whole.open_rate.tolist() == [int(mask.sum()) / tokens for mask in whole.mask]
    assert float(whole.window(1).numpy().open_rate) == whole.open_rate.tolist()[1]
    assert whole.patch_len == whole.window(0).patch_len == sizes["patch_len"]
    assert int(whole.window(1).numpy().open_count) == int(whole.open_count[1])


# --- Shapes ---


@pytest.mark.parametrize(
    ("name", "axis"),
    [
        ("probability", "patch"),
        ("missing", "patch"),
        ("level", "channel"),
        ("scale", "channel"),
        ("profile", "channel"),
        ("known", "steps"),
        ("response", "covariate"),
    ],
)
def test_arrays_of_inconsistent_shapes_are_refused_with_the_axis(
    monkeypatch: pytest.MonkeyPatch, name: str, axis: str
) -> None:
    whole = explanation(covariates=2)
    monkeypatch.setattr(config, "jaxtyping_disable", True)  # the type checker of the tests would refuse it first
    with pytest.raises(DataError, match=rf"must agree in the axis {axis} \(got "):
        whole.map(lambda row, array: array.narrow(row.axes.index(axis), 0, 1) if row.name == name else array)


def test_arrays_of_batches_of_different_sizes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "jaxtyping_disable", True)
    two, three = explanation(batch=(2,)), explanation(batch=(3,))
    with pytest.raises(DataError, match=r"must agree in the axis batch \(got .*in level"):
        replace(two, context=three.context)
    with pytest.raises(DataError, match="must agree in the axis batch"):
        replace(two, mask=two.mask[0])
