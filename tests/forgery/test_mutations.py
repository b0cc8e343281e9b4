"""Random edits of true documents with recomputed fingerprints: every change of the content is refused."""

import random

from tests.forgery.forgeries import Case
from tests.forgery.mutations import edits

EDITS = 100
"""Edits of each kind of model; `python -m benchmarks mutations` makes 20,000 in all."""


def test_every_edit_that_changes_the_content_is_refused(case: Case) -> None:
    made = edits(case.scene.explained, random.Random(case.kind), EDITS)
    assert not [(edit.place, edit.before, edit.after) for edit in made if case.verifies(edit.text)]
