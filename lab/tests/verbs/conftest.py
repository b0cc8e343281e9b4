"""A function that runs a command in this process."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from ibforecast.cli.main import run


@dataclass(frozen=True)
class Outcome:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON document on stdout."""
        return json.loads(self.out)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    def call(*words: Any) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            run([str(word) for word in words])
        printed = capsys.readouterr()
        return Outcome(int(stop.value.code or 0), printed.out, printed.err)

    return call
