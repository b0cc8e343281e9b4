"""The `ibforecast` command: its verbs, and how it reports errors."""

import gc
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from ibforecast._version import __version__
from ibforecast.cli.shared import announce
from ibforecast.core.errors import (
    DataError,
    IBForecastError,
    ModelFileError,
    UsageError,
    VerificationError,
)
from ibforecast.core.files import is_of_disk, not_usable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

EXIT_CODES: dict[type[Exception], int] = {UsageError: 2, DataError: 3, VerificationError: 4, ModelFileError: 5}
"""0 is success, 1 any other error."""

SOME_FAILED = 6
"""The exit code if some series of a fleet failed."""

MANY_OBJECTS = 100_000
"""New objects between two searches for unused cycles of objects; Python's own number is 700 or 2000."""

VERBS = (
    "demo",
    "check",
    "fit",
    "predict",
    "explain",
    "compare",
    "reads",
    "verify",
    "sign",
    "evaluate",
    "backtest",
    "calibrate",
    "audit",
    "drivers",
    "dossier",
    "fleet",
    "tune",
    "serve",
    "report",
    "recipe",
)

LAB_VERBS = ("datasets", "reproduce", "show")
"""Verbs of ibforecast-lab, which adds them through entry points of the group `ibforecast.verbs`."""


@cache
def _added() -> "EntryPoints":
    """Return the verbs of other packages; finding them reads the metadata of every installed package."""
    from importlib.metadata import entry_points

    return entry_points(group="ibforecast.verbs")


class Verbs(click.Group):
    """The verbs, each imported only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order in which they are usually needed, then those of other packages."""
        return [*VERBS, *sorted(_added().names)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb's file and return its command."""
        if cmd_name in VERBS:
            command: click.Command = import_module(f"ibforecast.cli.{cmd_name}").command
        elif cmd_name in _added().names:
            command = _added()[cmd_name].load()
        elif cmd_name in LAB_VERBS:
            raise UsageError(
                f"{cmd_name!r} is a verb of ibforecast_lab, which is not installed",
                remedy="install it from a clone of the repository: pip install . ./lab",
            )
        else:
            return None
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb in the words of a command; propose one of a similar name if there is none."""
        word = args[0]
        if not word.startswith("-") and self.get_command(ctx, word) is None:
            raise UsageError(
                "a verb must be one that exists",
                repr(word),
                _similar(word, self.list_commands(ctx), "see ibforecast --help"),
            )
        return super().resolve_command(ctx, args)


@click.command(cls=Verbs)
@click.version_option(__version__, prog_name="ibforecast")
def main() -> None:
    """Forecasts that carry their proof.

    \b
    ibforecast demo                                   see everything on embedded data
    ibforecast check load.csv                         look at your own table before a fit
    ibforecast fit load.csv --horizon 24 --out model  fit a model to it
    ibforecast explain model load.csv --out why.json  forecast, and say what was read
    ibforecast verify model why.json                  check that this is the truth
    ibforecast serve model                            the explorer and the service, on this machine
    ibforecast report model load.csv                  the explorer as one file, every explanation verified
    ibforecast audit model load.csv                   can its explanations be relied on? a gate for builds
    ibforecast drivers model load.csv                 what moves which channel
    ibforecast dossier model load.csv                 one document about the model, for auditors
    ibforecast tune load.csv --horizon 24             search for a better recipe, on validation windows
    ibforecast fleet fit meters.parquet --horizon 24 --out fleet    a model for each of many series

    Exit codes: 0 ok, 2 usage, 3 bad data, 4 verification failed, 5 unusable model file, 6 some series of a fleet
    failed, 1 any other error.
    """


def run(arguments: list[str] | None = None) -> None:
    """Run the command; every error becomes one message and an exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    with _few_collections(), _safe_path(), warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: announce(f"warning: {message}")
        code = _guarded(lambda: main(words, standalone_mode=False), "--json" in words)
    sys.exit(code)


@contextmanager
def _few_collections() -> Iterator[None]:
    """Let Python look for unused cycles of objects less often.

    Otherwise it searches all of PyTorch again and again during its import: a seventh of the time of `predict`.
    """
    usual = gc.get_threshold()
    gc.set_threshold(MANY_OBJECTS, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Let the processes that this one starts import nothing from the working directory, as this one does not.

    Python starts them with `-c`, which looks there first, even for modules of the standard library.
    """
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


def _guarded(work: Callable[[], Any], as_json: bool) -> int:
    try:
        return int(work() or 0)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        announce(error.format_message())
        return 2
    except click.ClickException as error:
        return _report(_in_our_words(error), 2, as_json)
    except IBForecastError as error:
        code = next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1)
        return _report(error, code, as_json)
    except (click.Abort, KeyboardInterrupt):
        return _report(IBForecastError("stopped"), 1, as_json)
    except BrokenPipeError:  # the reader of stdout has ended, as in `ibforecast predict … | head`
        return 1
    except Exception as error:
        if os.environ.get("IBFORECAST_DEBUG"):
            raise
        if isinstance(error, OSError) and is_of_disk(error):
            return _report(not_usable(error), 1, as_json)
        remedy = "set IBFORECAST_DEBUG=1 for the traceback, and report it"
        return _report(IBForecastError(f"unexpected {type(error).__name__}: {error}", remedy=remedy), 1, as_json)


def _in_our_words(error: click.ClickException) -> UsageError:
    """Return an error of the command line with rule, value and remedy."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    is_verb = context is not None and context.parent is not None
    verb = f"ibforecast {context.info_name}" if is_verb and context is not None else "ibforecast"
    look = f"see {verb} --help"
    if isinstance(error, click.NoSuchOption) and context is not None:
        options = [option for parameter in context.command.params for option in parameter.opts]
        return UsageError(
            f"an option must be one of {verb}", error.option_name, _similar(error.option_name, options, look)
        )
    if isinstance(error, click.MissingParameter) and error.param is not None:
        needed = error.param.opts[0] if error.param.param_type_name == "option" else error.param.human_readable_name
        return UsageError(f"{verb} must have {needed}", "none", f"add it; {look}")
    if isinstance(error, click.BadParameter) and error.param is not None:
        got = error.message.rstrip(".").replace(" is ", ", which is ", 1)
        return UsageError(f"{error.param.opts[0]} must have a valid value", got, look)
    return UsageError(error.format_message(), remedy=look)


def _similar(word: str, known: list[str], otherwise: str) -> str:
    """Return the remedy for a misspelt word; stricter than `hint`, because short words are easily similar."""
    close = get_close_matches(word, known, n=1, cutoff=0.8)
    return f"did you mean {close[0]!r}?" if close else otherwise


def _report(error: IBForecastError, code: int, as_json: bool) -> int:
    problem, hint = error.error_and_hint()
    if as_json:
        document = {"error": problem, "hint": hint, "rule": error.rule, "got": error.got, "exit_code": code}
        with suppress(OSError):  # stdout may be what is full
            click.echo(json.dumps(document, ensure_ascii=False))
    with suppress(OSError):
        announce(f"error: {problem}")
        if hint:
            announce(f"hint: {hint}")
    return code
