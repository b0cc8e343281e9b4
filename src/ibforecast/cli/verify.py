"""ibforecast verify: check that an explanation is true."""

from dataclasses import asdict
from pathlib import Path
from shlex import quote

import click

from ibforecast.cli.main import EXIT_CODES
from ibforecast.cli.shared import deliver, future_option, json_option
from ibforecast.core.errors import DataError, UsageError, VerificationError


@click.command("verify")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("explanation", type=click.Path(path_type=Path))
@click.argument("others", nargs=-1, metavar="")
@click.option("--table", help="Also compare history, times and truth with the rows of this table.")
@future_option
@click.option("--exact", is_flag=True, help="Allow no difference at all, not even in the last digits.")
@click.option("--key", type=click.Path(path_type=Path), help="Public key (PEM) of the expected signer.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    model: Path,
    explanation: Path,
    others: tuple[str, ...],
    table: str | None,
    future: str | None,
    exact: bool,
    key: Path | None,
    as_json: bool,
) -> None:
    """Check EXPLANATION (a .json file that `explain` wrote) with MODEL; exit code 4 if it is not true.

    The forecast is computed again from only the explanation and its context, then once more with every closed token
    scrambled and the mask held fixed: not a bit may differ. Then the model is run again on the same history. A sealed
    model also runs with every unread value replaced and nothing held fixed, a choosing model with only its mask held
    fixed. Without --table, an explanation of a made-up table would pass as well.

    EXPLANATION may also be a report (.html file that `report` wrote), with its --table: it is made again, and every
    byte must be the same.

    \b
    ibforecast verify model why.json
    ibforecast verify model why.json --table load.csv --exact
    ibforecast verify model why.json --key issuer.pub.pem
    ibforecast verify model report.html --table load.csv
    """
    from ibforecast.forecaster import IBForecaster

    if others:
        words = " ".join(map(quote, others))
        raise UsageError("verify needs a model and an explanation, and no more", words, f"a table? add --table {words}")
    _check_order(model, explanation)
    content = read_file(explanation, "an explanation")
    if explanation.suffix.lower() in (".html", ".htm"):
        from ibforecast.report import verify_html

        if table is None or key is not None:
            raise UsageError("a report is verified with its table, and has no signature", "others", "give only --table")
        verification = verify_html(IBForecaster.load(model), content, table, future)
    else:
        signer = None if key is None else read_file(key, "a key")
        verification = IBForecaster.load(model).verify(content, table, future=future, exact=exact, key=signer)
    document = {
        "verified": bool(verification),
        "checks": [asdict(check) for check in verification.checks],
        "notes": list(verification.notes),
    }
    verdict = "verified" if verification else "NOT verified"
    deliver(document, f"{verification}\n{verdict}: {explanation}", as_json)
    if not verification:
        ctx.exit(EXIT_CODES[VerificationError])


def _check_order(model: Path, explanation: Path) -> None:
    """Refuse arguments that are most likely swapped, or a table in place of an explanation."""
    from ibforecast.data.sources import SUFFIXES

    if model.is_file() and model.suffix == ".json":
        swapped = f"; swapped? ibforecast verify {quote(str(explanation))} {quote(str(model))}"
        raise UsageError(
            "the first argument must be the folder of a model",
            f"{model}, a file",
            f"name the model, then its explanation{swapped if explanation.is_dir() else ''}",
        )
    if explanation.name.lower().endswith(SUFFIXES):
        raise UsageError(
            "the second argument must be an explanation, a .json file that explain wrote",
            f"{explanation}, a table",
            f"name the explanation, and add --table {quote(str(explanation))} to compare it with the table",
        )


def read_file(path: Path, what: str) -> bytes:
    """Return the content of a file; refuse a path without one."""
    if not path.is_file():
        raise DataError(f"{what} must be a file", path, "check the path")
    return path.read_bytes()
