"""The stacked engine: cells of one shape are trained as one batched model, with several stacks at a time."""

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from math import inf
from pathlib import Path
from typing import Any

import torch

from ibforecast.core.errors import IBForecastError
from ibforecast.core.workers import HERE, Processes, until
from ibforecast.zoo.stages import Trained, train_recipes_stacked
from ibforecast_lab.experiments.ledger import Cell, Ledger, Record
from ibforecast_lab.experiments.parts import Parts, parts_of
from ibforecast_lab.experiments.run import missing_from, recipe_of, record_of, run

Report = Callable[[Cell, Record | None, str], None]
Outcome = tuple[Cell, Record | None, str]
"""A cell with its record, or with None and the reason of its failure."""

CPU = torch.device("cpu")


def run_missing_stacked(
    cells: Iterable[Cell],
    packed: Path,
    device: str,
    jobs: int = 1,
    on_cell: Report = lambda cell, record, failure: None,
    minutes: float = inf,
) -> dict[Cell, str]:
    """Run the cells whose record is missing or outdated, in stacks; return the reason of each failure by cell.

    A stack has cells of one network and schedule: seeds, and data sets with equal sizes. A forecaster that cannot be
    stacked is trained on its own. With several `jobs`, as many stacks are trained at the same time, each in a process.
    After some `minutes` no more stacks are handed out, and those that were are finished. If this is killed, the stacks
    that were training are lost.
    """
    engine, failures = Processes(jobs) if jobs > 1 else HERE, dict[Cell, str]()
    groups = until(stacks(missing_from(Ledger(packed), cells)), minutes)
    for stack, outcomes, lost in engine.run(groups, partial(_run, packed=packed, device=device, alone=jobs == 1)):
        for cell, record, failure in outcomes or [(cell, None, lost) for cell in stack]:
            if failure:
                failures[cell] = failure
            on_cell(cell, record, failure)
    return failures


def stacks(cells: Iterable[Cell]) -> Iterator[list[Cell]]:
    """Yield the cells of one network, schedule and number of steps together."""
    count = cache(lambda cell: len(parts_of(cell, CPU, with_calendar=False).training))
    alike: dict[Any, list[Cell]] = {}
    for cell in cells:
        recipe = recipe_of(cell)
        own = "" if recipe.build(cell.seed).stackable else cell.key
        alike.setdefault((recipe.forecaster, repr(recipe.config), repr(recipe.train), own), []).append(cell)
    for group in alike.values():
        if len(group) == 1:
            yield group
            continue
        pace, paced = recipe_of(group[0]).train, dict[Any, list[Cell]]()
        for cell in group:
            try:
                windows = count(Cell(cell.data, cell.horizon, "", 0, look_back=cell.look_back))
            except IBForecastError:  # such as a missing file; the run of the cell reports it
                yield [cell]
            else:
                paced.setdefault((pace.batch_of(windows), pace.steps_of(windows)), []).append(cell)
        yield from paced.values()


def _run(stack: list[Cell], packed: Path, device: str, alone: bool) -> list[Outcome]:
    """Run the cells of a stack, write their records, and return the outcome of each."""
    if not alone:
        torch.set_num_threads(1)  # otherwise the processes compete for the cores
    ledger, outcomes = Ledger(packed), list[Outcome]()
    for outcome in _outcomes(stack, torch.device(device)):
        if outcome[1]:
            ledger.write(outcome[1])
        outcomes.append(outcome)
    return outcomes


def _outcomes(stack: list[Cell], device: torch.device) -> Iterator[Outcome]:
    """Train a stack and yield the outcomes of its cells; no failure stops other cells."""
    recipe = recipe_of(stack[0])
    first = recipe.build(stack[0].seed)
    # The windows of a data set are the same for all its seeds and studies.
    cut = cache(partial(parts_of, device=device, with_calendar=first.reads_calendar, period=recipe.config.period))

    def parts(cell: Cell) -> Parts:
        return cut(replace(cell, seed=0, study=""))

    trained: Sequence[Trained | Exception | None] = [None] * len(stack)
    if first.stackable and len(stack) > 1:
        try:
            windows = [(parts(cell).training, parts(cell).validation) for cell in stack]
            trained = train_recipes_stacked(recipe, windows, [cell.seed for cell in stack])
        except Exception as error:
            trained = [error] * len(stack)
    for cell, outcome in zip(stack, trained, strict=True):
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
