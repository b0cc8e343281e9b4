"""An explanation object cannot be changed in place, and verification detects a change by force."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.forgery.forgeries import Case

from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.signatures import new_keys, sign
from ibforecast.core.verification import Verification, verify


def verified(case: Case, explained: ExplainedForecast, key: bytes | None = None) -> Verification:
    return verify(case.scene.engine, explained, key=key)


def test_every_array_is_read_only(case: Case) -> None:
    explained = replace(case.scene.explained)
    arrays = [array for _, array in explained.explanation.arrays()]
    arrays += [explained.forecast, explained.history, explained.clock.stamps, explained.units.mean, explained.units.std]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_no_memory_is_shared_with_the_model_or_the_source_arrays(case: Case) -> None:
    history = case.scene.explained.history.copy()
    explained = replace(case.scene.explained, history=history)
    history[:] = 0
    assert (explained.history == case.scene.explained.history)[~np.isnan(explained.history)].all()


def changed(explained: ExplainedForecast, name: str, value: Any) -> ExplainedForecast:
    """Return a copy with a field replaced by force, although the class is frozen."""
    other = replace(explained)
    object.__setattr__(other, name, value)
    return other


def test_an_object_changed_by_force_is_refused(case: Case) -> None:
    explained = case.scene.explained
    context = explained.explanation.context
    false = replace(context, phase=(context.phase + 1) % case.scene.engine.facts.period)
    lies = [
        changed(explained, "forecast", explained.forecast + 1.0),
        changed(explained, "explanation", replace(explained.explanation, context=false)),
        changed(explained, "channels", explained.channels[::-1]),
    ]
    assert verified(case, explained)
    assert not any(verified(case, lie) for lie in lies)


def test_a_cached_fingerprint_of_other_content_does_not_count(case: Case) -> None:
    private, public = new_keys()
    explained = case.scene.explained
    signed = replace(explained, signature=sign(explained.sha256, private))
    assert verified(case, signed, public)
    assert signed.sha256 == explained.sha256  # now it is cached
    moved = changed(signed, "truth", None)
    moved.__dict__["sha256"] = signed.sha256
    assert not verified(case, moved, public)
