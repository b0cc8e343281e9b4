"""The recipes for a container and for systemd fit the repository and the options of `ibforecast serve`."""

import ast
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

from ibforecast.cli.serve import command
from ibforecast.serve.run import GRACE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "service.md").read_text("utf8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
UNPACKED = "/source/"
"""Where the container's recipe puts the clone."""


def block(kind: str) -> str:
    (text,) = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    return str(text)


@pytest.fixture(scope="module")
def recipe() -> dict[str, list[str]]:
    """Return the arguments of each instruction of the container's recipe."""
    instructions: dict[str, list[str]] = {}
    for line in block("dockerfile").splitlines():
        name, _, arguments = line.partition(" ")
        instructions.setdefault(name, []).append(arguments)
    return instructions


@pytest.fixture(scope="module")
def unit() -> dict[str, list[str]]:
    """Return the values of each key of the unit."""
    keys: dict[str, list[str]] = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", block("ini"), flags=re.MULTILINE):
        keys.setdefault(name, []).append(value)
    return keys


def options_of(arguments: list[str]) -> dict[str, Any]:
    """Return the options that `ibforecast serve` reads from these arguments; refuse what it would refuse."""
    return dict(command.make_context("serve", arguments).params)


def test_the_container_installs_an_extra_of_the_project_from_files_of_the_project(recipe: dict[str, list[str]]) -> None:
    assert recipe["COPY"] == [f". {UNPACKED.rstrip('/')}"]
    (install, *_) = recipe["RUN"]
    (extra,) = re.findall(rf'"{UNPACKED.rstrip("/")}\[(\w+)\]"', install)
    assert extra in PROJECT["optional-dependencies"]
    named = re.findall(rf"{UNPACKED}(\S+)", install)
    assert named
    rules = (ROOT / ".dockerignore").read_text("utf8").splitlines()
    copied = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    assert "*" in rules
    assert copied == {*named, "pyproject.toml", "src", PROJECT["readme"], *PROJECT["license-files"]}
    for name in copied:
        assert (ROOT / name).exists(), name


def test_the_container_has_a_python_that_the_project_supports(recipe: dict[str, list[str]]) -> None:
    (python,) = re.findall(r"python:(\d+\.\d+)-slim", *recipe["FROM"])
    assert SpecifierSet(PROJECT["requires-python"]).contains(python)


def test_the_container_starts_the_service_as_a_user_without_rights(recipe: dict[str, list[str]]) -> None:
    program, verb, *arguments = ast.literal_eval(recipe["ENTRYPOINT"][-1])
    assert program in PROJECT["scripts"]
    assert verb == command.name
    params = options_of([*arguments, *ast.literal_eval(recipe["CMD"][-1])])
    assert [str(params["port"])] == recipe["EXPOSE"]
    (user,) = recipe["USER"]
    assert int(user) > 0
    assert f"--uid {user} " in recipe["RUN"][-1]


def test_the_container_checks_the_health_of_the_service(recipe: dict[str, list[str]], make: Any, listen: Any) -> None:
    _, program = recipe["HEALTHCHECK"][-1].split(" ", 1)
    python, option, code = ast.literal_eval(program)
    assert (python, option) == ("python", "-c")
    with listen(make()) as (_, url):
        here = code.replace(f"http://127.0.0.1:{recipe['EXPOSE'][-1]}", url)
        ended = [
            subprocess.run([sys.executable, option, each], stderr=subprocess.DEVNULL, check=False).returncode
            for each in (here, here.replace("/health", "/nothing"))
        ]
    assert ended == [0, 1]


def test_the_container_is_run_with_options_that_the_service_reads_from_the_environment() -> None:
    line = next(text for text in PAGE.replace("\\\n", " ").splitlines() if text.startswith("$ docker run"))
    words = shlex.split(line.removeprefix("$ "))
    variables = [words[place + 1].partition("=")[0] for place, word in enumerate(words) if word == "-e"]
    known = {f"IBFORECAST_{str(option.name).upper()}" for option in command.params}
    assert variables
    assert set(variables) <= known
    stop = int(words[words.index("--stop-timeout") + 1])
    assert stop > GRACE


def test_the_unit_starts_the_service_and_leaves_it_time_and_files_enough(unit: dict[str, list[str]]) -> None:
    path, verb, *arguments = shlex.split(unit["ExecStart"][-1])
    assert Path(path).name in PROJECT["scripts"]
    assert verb == command.name
    params = options_of(arguments)
    assert int(unit["TimeoutStopSec"][-1]) > GRACE
    assert int(unit["LimitNOFILE"][-1]) > params["max_waiting"] + 2 * params["max_concurrent"]
