"""The stacked engine: cells of one shape are trained as one batched model, in this process."""

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from ibforecast.zoo.stages import Trained, train_recipes_stacked
from ibforecast_lab.experiments.ledger import Cell, Ledger, Record
from ibforecast_lab.experiments.parts import Parts, parts_of
from ibforecast_lab.experiments.run import missing_from, recipe_of, record_of, run

Report = Callable[[Cell, Record | None, str], None]
PartsOf = Callable[[Cell], Parts]


def run_missing_stacked(
    cells: Iterable[Cell], packed: Path, device: str, on_cell: Report = lambda cell, record, failure: None
) -> dict[Cell, str]:
    """Run the cells whose record is missing or outdated, in stacks; return the reason of each failure by cell.

    A stack has cells of one network and schedule: seeds, and data sets with equal sizes. A forecaster that cannot be
    stacked is trained on its own. If this is killed, the stack that was training is lost.
    """
    ledger, failures = Ledger(packed), dict[Cell, str]()
    for stack, parts in stacks(missing_from(ledger, cells), torch.device(device)):
        for cell, record, failure in _run(stack, parts, torch.device(device)):
            if record is None:
                failures[cell] = failure
            else:
                ledger.write(record)
            on_cell(cell, record, failure)
    return failures


def stacks(cells: Iterable[Cell], device: torch.device) -> Iterator[tuple[list[Cell], PartsOf]]:
    """Yield the cells of one network, schedule and number of steps together, with their windows."""
    alike: dict[Any, list[Cell]] = {}
    for cell in cells:
        recipe = recipe_of(cell)
        own = "" if recipe.build(cell.seed).stackable else cell.key
        alike.setdefault((recipe.forecaster, repr(recipe.config), repr(recipe.train), own), []).append(cell)
    for group in alike.values():
        recipe = recipe_of(group[0])
        calendar = recipe.build(group[0].seed).reads_calendar
        # The windows of a data set are the same for all its seeds and studies, and are kept for one group only.
        cut = cache(partial(parts_of, device=device, with_calendar=calendar))

        def parts(cell: Cell, cut: PartsOf = cut) -> Parts:
            return cut(replace(cell, seed=0, study=""))

        paced: dict[Any, list[Cell]] = {}
        for cell in group:
            count = len(parts(cell).training)
            paced.setdefault((recipe.train.batch_of(count), recipe.train.steps_of(count)), []).append(cell)
        yield from ((stack, parts) for stack in paced.values())


def _run(stack: list[Cell], parts: PartsOf, device: torch.device) -> Iterator[tuple[Cell, Record | None, str]]:
    """Yield each cell with its record, or with None and the reason of its failure; no failure stops other cells."""
    recipe = recipe_of(stack[0])
    outcomes: Sequence[Trained | Exception | None] = [None] * len(stack)
    if recipe.build(stack[0].seed).stackable:
        windows = [(parts(cell).training, parts(cell).validation) for cell in stack]
        try:
            outcomes = train_recipes_stacked(recipe, windows, [cell.seed for cell in stack])
        except Exception as error:
            outcomes = [error] * len(stack)
    for cell, outcome in zip(stack, outcomes, strict=True):
        try:
            if isinstance(outcome, Exception):
                raise outcome
            if outcome is None:
                record = run(cell, device)
            else:
                seconds = outcome.training.seconds
                record = record_of(cell, recipe_of(cell), outcome, seconds, parts(cell), device, len(stack))
        except Exception as error:
            yield cell, None, "".join(traceback.format_exception_only(error)).strip()
        else:
            yield cell, record, ""
