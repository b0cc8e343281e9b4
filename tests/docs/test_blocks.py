"""What the pages show is what happens: every Python block runs, every command line exists."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pandas as pd
import pytest
from matplotlib import pyplot

import ibforecast.fitting
from ibforecast import IBForecaster, MissingExtraError, demo_table
from ibforecast.cli.main import main
from ibforecast.train.loop import train

ROOT = Path(__file__).parents[2]
PAGES = {str(path.relative_to(ROOT)): path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
ROWS = 1200


def fenced(page: Path, *kinds: str) -> Iterator[tuple[int, str]]:
    """The blocks of these kinds, each with the number of its first line."""
    text = page.read_text("utf8")
    for block in FENCED.finditer(text):
        if block[1] in kinds:
            yield text.count("\n", 0, block.start()) + 2, block[2]


OTHERS_WARNINGS = {
    "docs/interop.md": ["ignore"],  # shap's, about matplotlib and numba
    "docs/neuralforecast.md": [  # Lightning's, about itself
        "ignore:.*LeafSpec.*is deprecated",
        "ignore:The '.*_dataloader' does not have many workers",
        "ignore:Starting from v1.9.0",
    ],
}
SPEAKING = [
    pytest.param(name, marks=[pytest.mark.filterwarnings(warning) for warning in OTHERS_WARNINGS.get(name, [])])
    for name, page in PAGES.items()
    if any(fenced(page, "python"))
]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """The demo's autumn: what pages call load.csv, or town.csv."""
    return pd.DataFrame(demo_table().columns())[-ROWS - 1200 : -1200]


@pytest.fixture(scope="module")
def model(table: pd.DataFrame) -> IBForecaster:
    return IBForecaster(horizon=24, recipe="quick", epochs=2, device="cpu").fit(table)


@pytest.fixture
def _a_place_to_work(tmp_path: Path, table: pd.DataFrame, model: IBForecaster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the table; nobody waits for weights, so that one epoch has to do."""

    def train_once(network: Any, training: Any, validation: Any, settings: Any, *more: Any) -> Any:
        return train(network, training, validation, replace(settings, epochs=1), *more)

    (tmp_path / "docs" / "images").mkdir(parents=True)
    for name in ("load.csv", "town.csv"):
        table.to_csv(tmp_path / name, index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ibforecast.fitting, "train", train_once)
    yield
    pyplot.close("all")


@pytest.mark.usefixtures("_a_place_to_work")
@pytest.mark.parametrize("name", SPEAKING)
def test_the_python_of_a_page_runs_from_top_to_bottom(name: str, tmp_path: Path, model: IBForecaster) -> None:
    page = PAGES[name]
    if 'load("model")' in page.read_text("utf8"):
        model.save(tmp_path / "model")
    namespace: dict[str, Any] = {"__name__": "page"}
    for line, code in fenced(page, "python"):
        try:
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)
        except MissingExtraError as error:
            pytest.skip(str(error))
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("ibforecast"):
                raise
            pytest.skip(f"{name}, line {line}: {error}")


def command_lines(page: Path) -> Iterator[tuple[int, list[str]]]:
    """Every `ibforecast …` of a page, in blocks and between backticks, as words; comments are left out."""
    for line, block in fenced(page, "", "sh", "bash", "console"):
        for number, text in enumerate(block.replace("\\\n", " ").splitlines()):
            if found := re.match(r"(?:\w+=\S+ )*ibforecast (.+)", text.strip()):
                yield line + number, shlex.split(found[1], comments=True)
    outside = FENCED.sub(lambda block: "\n" * block[0].count("\n"), page.read_text("utf8"))
    for found in re.finditer(r"`ibforecast\s([^`]+)`", outside):
        yield outside.count("\n", 0, found.start()) + 1, found[1].replace("\\|", "|").split()


def problem(words: list[str]) -> str | None:
    """Say what a command line has that the command has not."""
    command: click.Command = main
    while isinstance(command, click.Group) and words:
        if not re.fullmatch("[a-z]+", words[0]):
            return None  # prose, such as `ibforecast VERB`
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            return f"there is no {words[0]!r}"
        command, words = found, words[1:]
    known = {name for option in command.params for name in option.opts}
    strange = [word for word in words if word.startswith("--") and word.partition("=")[0] not in known | {"--help"}]
    return f"{command.name} has no {', '.join(strange)}" if strange else None


@pytest.mark.parametrize("name", PAGES)
def test_every_command_line_of_a_page_exists(name: str) -> None:
    wrong = [(line, words, problem(words)) for line, words in command_lines(PAGES[name]) if problem(words)]
    assert wrong == []


def test_command_lines_are_found_and_judged() -> None:
    assert len(list(command_lines(ROOT / "README.md"))) >= 6
    assert problem(["fit", "load.csv", "--horizon", "24", "--out=model"]) is None
    assert problem(["fleet", "fit", "meters.csv", "--horizon", "24"]) is None
    assert problem(["fit", "load.csv", "--horizn", "24"]) == "fit has no --horizn"
    assert problem(["fits", "load.csv"]) == "there is no 'fits'"
