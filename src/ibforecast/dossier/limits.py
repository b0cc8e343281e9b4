"""The weaknesses that follow from the facts of a dossier, and those that every model has."""

from collections.abc import Iterator

from ibforecast.audit import MIN_FIDELITY
from ibforecast.core.words import count_of, percent
from ibforecast.dossier.facts import Facts
from ibforecast.evaluate.conformal import FEW_WINDOWS as FEW_CALIBRATED

MISS = 0.02
"""By how much coverage may stay below its level before a dossier names the channel."""

FEW_WINDOWS = 100
"""Errors on fewer windows are called uncertain."""


def weaknesses(facts: Facts) -> tuple[str, ...]:
    """Return what was measured on this model and table and speaks against relying on it."""
    return (*_of_accuracy(facts), *_of_coverage(facts), *_of_reading(facts), *_of_data(facts), *_of_training(facts))


def general(facts: Facts) -> tuple[str, ...]:
    """Return the limits that no measurement in a dossier removes."""
    claim = {
        "sealed": "The model reads the same places in every window. It cannot look for an event anywhere else.",
        "choosing": "The model looks at the whole window to choose what it reads. Unread values can change the "
        "forecast "
        "through that choice.",
        "conditional": "The model looks at the whole window for its mask, level and scale. Unread values can change "
        "the "
        "forecast through them.",
    }
    return (
        claim[facts.use.claim],
        "An explanation says what the model used. It does not say what causes what in the world.",
        "All measurements are of the past. Intervals and errors hold for later data only if these are alike.",
        "Neighbouring windows overlap, so the number of windows overstates how much independent evidence there is.",
        "A fingerprint shows damage and careless edits. Only a signature shows who issued an explanation.",
    )


def _of_accuracy(facts: Facts) -> Iterator[str]:
    accuracy = facts.accuracy
    for row in accuracy.channels:
        if row.worse:
            yield f"{row.channel}: the model is worse than repeating {', '.join(row.worse)}."
    if accuracy.split != "test":
        purpose = "trained" if accuracy.split == "train" else "selected and calibrated"
        yield f"The errors are of the {accuracy.split} part, on which the model was {purpose}: expect larger ones."
    if accuracy.windows < FEW_WINDOWS:
        yield f"Only {accuracy.windows} windows were measured, so the errors are uncertain."


def _of_coverage(facts: Facts) -> Iterator[str]:
    coverage = facts.coverage
    if coverage is None:
        yield "The model is not calibrated, so it gives no intervals at the usual levels."
        return
    if coverage.calibrated_on < FEW_CALIBRATED:
        windows = count_of(coverage.calibrated_on, "window")
        yield f"The intervals were calibrated on only {windows}, so their levels are rough."
    if coverage.same_windows:
        yield "Coverage was measured on the windows that the intervals were calibrated on, which flatters them."
    for row in coverage.channels:
        if row.covered < row.level / 100 - MISS:
            inside = percent(row.covered)
            yield f"{row.channel}: intervals of {row.level:g} % contained the truth in only {inside} of cases."


def _of_reading(facts: Facts) -> Iterator[str]:
    audit = facts.audit
    for shortfall in audit.shortfalls(MIN_FIDELITY):
        yield f"Audit: {shortfall.rule} (measured {shortfall.value})."
    if not audit.sealed and audit.relative > 0:
        yield (
            f"Other values in closed places cause {percent(audit.relative)} of the squared shift of forecasts that "
            "deleting "
            f"everything causes, and {percent(audit.masks_changed)} of masks change."
        )
    unread = [row.channel for row in facts.reading if not row.places]
    if unread:
        yield f"Nothing is read of: {', '.join(unread)}."
    error = facts.example.receipt.error
    if error:  # 0 if the values that were read have only one order, or none
        yield f"The amounts of the receipt are sampled: their largest standard error is {error:.3g}, in table units."
    if not facts.example.verification:
        yield "The worked example did not pass every check."


def _of_data(facts: Facts) -> Iterator[str]:
    data = facts.data
    for row in data.channels:
        if row.missing:
            yield f"{row.channel}: {row.missing:,} of {data.rows:,} values are missing, {row.longest_gap:,} at once."
        if row.constant:
            yield f"{row.channel}: the training rows have only one value, so nothing could be learned from them."
    for part in data.parts:
        if part.usable < part.windows:
            unusable = part.windows - part.usable
            yield f"{part.part}: {unusable:,} of {part.windows:,} windows have too many gaps to be used."


def _of_training(facts: Facts) -> Iterator[str]:
    training = facts.training
    if training.best_epoch == training.epochs:
        yield f"The best epoch, {training.best_epoch}, was the last one: longer training may give smaller errors."
