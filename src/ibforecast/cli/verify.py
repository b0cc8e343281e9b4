"""ibforecast verify: is this explanation the truth?"""

from dataclasses import asdict
from pathlib import Path

import click

from ibforecast.cli.main import EXIT_CODES
from ibforecast.cli.shared import deliver, json_option
from ibforecast.core.errors import DataError, VerificationError


@click.command("verify")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("explanation", type=click.Path(path_type=Path))
@json_option
@click.pass_context
def command(ctx: click.Context, model: Path, explanation: Path, as_json: bool) -> None:
    """Check EXPLANATION (a .json file that `explain` wrote) against MODEL; exit code 4 if it is not the truth.

    The forecast is computed again from the explanation and its context alone, then once more with every closed
    token scrambled and the mask held: not a bit may differ. Last, the model is run again on the same history.

    \b
    ibforecast verify model why.json
    """
    from ibforecast.core.account import Account
    from ibforecast.forecaster import IBForecaster

    if not explanation.is_file():
        raise DataError("an explanation must be a file", explanation, "write one with `ibforecast explain --out`")
    verification = IBForecaster.load(model).verify(Account.from_json(explanation.read_text("utf8", "replace")))
    document = {"verified": bool(verification), "checks": [asdict(check) for check in verification.checks]}
    verdict = "verified" if verification else "NOT verified"
    deliver(document, f"{verification}\n{verdict}: {explanation}", as_json)
    if not verification:
        ctx.exit(EXIT_CODES[VerificationError])
