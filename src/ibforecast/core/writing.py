"""Writing an explanation as a document: its sections, and what is said for people. The inverse is `reading`."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from ibforecast.core.explanation import FIELDS
from ibforecast.core.standardiser import Standardiser

if TYPE_CHECKING:
    from ibforecast.core.explained import ExplainedForecast

STATEMENTS = ("open_count", "open_rate", "rate_bits", "in_words")
"""The parts of a document that are written for people and follow from the rest."""


def written(explained: "ExplainedForecast") -> dict[str, Any]:
    """Return everything that a document contains, as JSON needs it; of the evidence only the open tokens."""
    sections, explanation = content(explained), explained.explanation
    patches, channels = explanation.mask.shape
    tokens = explanation.evidence.reshape(patches, -1, channels).swapaxes(1, 2)
    sections["explanation"]["evidence"] = [
        {"patch": patch, "channel": explained.channels[column], "deviation": deviation}
        for (patch, column), deviation in zip(
            np.argwhere(explanation.mask).tolist(), tokens[explanation.mask].tolist(), strict=True
        )
    ]
    signature = {} if explained.signature is None else {"signature": explained.signature}
    return {**statements(explained), **_plain(sections), **signature}


def statements(explained: "ExplainedForecast") -> dict[str, Any]:
    """Return the statements for people by their names."""
    values = (explained.open_count, explained.open_rate, explained.rate_bits, explained.in_words(full=True))
    return dict(zip(STATEMENTS, values, strict=True))


def content(explained: "ExplainedForecast") -> dict[str, Any]:
    """Return everything an explanation states, in the sections of a document: what its fingerprint is of."""
    limits = explained.limits
    sections: dict[str, dict[str, Any]] = {"explanation": {}, "context": {}}
    for row in FIELDS:
        if row.written:
            sections[row.part][row.name] = row.of(explained.explanation)
    sections["context"]["cycles"] = list(explained.explanation.context.cycles)
    return {
        "weights_sha256": explained.weights_sha256,
        "budget": explained.budget,
        "prior": explained.prior,
        "sealed": explained.sealed,
        "window": {
            "channels": list(explained.channels),
            "past": list(explained.past),
            "covariates": list(explained.covariates),
            "frequency": explained.frequency,
            "zone": explained.clock.zone,
            "row": explained.clock.row,
            "times": list(explained.times),
            "history": explained.history,
            "known": explained.known,
            **({"zero_at": list(explained.zero_at)} if explained.zero_at else {}),
        },
        "units": _units(explained.units),
        "known_units": None if explained.known_units is None else _units(explained.known_units),
        **sections,
        "forecast": explained.forecast,
        "truth": explained.truth,
        # Left out if there are none, so that a document without them has the fingerprint it always had.
        **({} if limits is None else {"limits": limits.document(), "unlimited": explained.unlimited}),
        **({"receipts": [each.document() for each in explained.receipts]} if explained.receipts else {}),
    }


def nullable(values: Float64[np.ndarray, "..."]) -> Any:
    """Return nested lists with None for NaN, which JSON does not have."""
    if not np.isnan(values).any():
        return values.tolist()
    return np.where(np.isnan(values), None, values.astype(object)).tolist()  # type: ignore[call-overload]


def _units(units: Standardiser) -> dict[str, Any]:
    return {"mean": units.mean, "std": units.std}


def _plain(value: Any) -> Any:
    """Return content as JSON needs it: arrays as lists, None for NaN."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, np.ndarray):
        return nullable(value) if value.dtype == np.float64 else value.tolist()
    return value
