"""ibforecast sign: sign an explanation, so that readers can check who issued it."""

from dataclasses import replace
from pathlib import Path

import click

from ibforecast.cli.shared import announce, check_file, deliver, json_option
from ibforecast.cli.verify import read_file
from ibforecast.core.errors import UsageError
from ibforecast.core.files import write_atomically


@click.command("sign")
@click.argument("explanation", type=click.Path(path_type=Path), required=False)
@click.option("--key", type=click.Path(path_type=Path), help="Private key (PEM, Ed25519) to sign with.")
@click.option("--out", type=click.Path(path_type=Path), help="File to write; default: EXPLANATION itself.")
@click.option("--new-key", type=click.Path(path_type=Path), help="Make a key pair: NAME.pem and NAME.pub.pem.")
@json_option
def command(explanation: Path | None, key: Path | None, out: Path | None, new_key: Path | None, as_json: bool) -> None:
    """Sign EXPLANATION (a .json file that `explain` wrote) with a private key.

    A verified explanation is intact and true; a signature also says who issued it. The signature is of the content,
    so any client may write the document again. Keep the private key secret, and give the public key to those who
    verify.

    \b
    ibforecast sign --new-key issuer
    ibforecast sign why.json --key issuer.pem
    ibforecast verify model why.json --key issuer.pub.pem
    """
    from ibforecast.core.explained import ExplainedForecast
    from ibforecast.core.signatures import sign

    if new_key is not None:
        private, public = _new_pair(new_key)
        deliver({"private": str(private), "public": str(public)}, f"{private}\n{public}", as_json)
        return
    if explanation is None or key is None:
        raise UsageError("signing needs an explanation and a private key", "only one of them", "give both")
    path = out or explanation
    check_file(path)
    explained = ExplainedForecast.from_json(read_file(explanation, "an explanation"))
    signed = replace(explained, signature=sign(explained.sha256, read_file(key, "a key")))
    write_atomically(path, signed.to_json().encode())
    announce(f"signed explanation written to {path}")
    deliver({"explanation": str(path), "content": explained.sha256}, str(path), as_json)


def _new_pair(name: Path) -> tuple[Path, Path]:
    """Write a new key pair; neither file may exist, and only the owner may read the private one."""
    from ibforecast.core.signatures import new_keys

    paths = Path(f"{name}.pem"), Path(f"{name}.pub.pem")
    for path in paths:
        check_file(path)
        if path.exists():
            raise UsageError("a key must not replace what is there", path, "choose another name")
    for path, content, mode in zip(paths, new_keys(), (0o600, 0o644), strict=True):
        write_atomically(path, content, mode)
    return paths
