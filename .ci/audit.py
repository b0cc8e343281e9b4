"""Look for known vulnerabilities of the pinned packages: `python .ci/audit.py`.

pip-audit asks the index for the versions in constraints.txt, once a day. Without a network, or without pip-audit, it
says so and the check goes on. A vulnerability ends it with exit code 1.
"""

import json
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
PINS = ROOT / "constraints.txt"
AUDITED = Path(sys.prefix) / ".audited"
"""The file with the fingerprint of the pins that were audited last."""

PROBED_IN, DAY, LONGEST = 10.0, 86_400.0, 120.0
"""Seconds for the first package, until an audit is repeated, and for an audit."""

QUIET = ("--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off", "--timeout", "5")


def main() -> int:
    """Audit the pins; return the exit code."""
    if _is_recent():
        return 0
    pins = PINS.read_text("utf8").split()
    # One package first: without a network every other one would only take its time to fail.
    first = audited(pins[:1], PROBED_IN)
    if isinstance(first, str):
        return _skipped(first)
    document = first if _unknown(first) else audited(pins, LONGEST)
    if isinstance(document, str):
        return _skipped(document)
    found, unknown = vulnerabilities(document), _unknown(document)
    sys.stderr.write("".join(f"{line}\n" for line in found))
    # pip-audit leaves out what the service does not know, and calls the rest free of vulnerabilities.
    if unknown:
        _skipped(f"the service does not know {', '.join(unknown[:5])}")
    if not found and not unknown:
        AUDITED.write_text(_fingerprint())
    return int(bool(found))


def audited(pins: list[str], seconds: float) -> dict[str, Any] | str:
    """Return what pip-audit says of some pins, or why it says nothing."""
    with TemporaryDirectory() as folder:
        listed = Path(folder) / "pins.txt"
        listed.write_text("\n".join(pins), "utf8")
        command = [sys.executable, "-m", "pip_audit", *QUIET, "--requirement", str(listed)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
            document: dict[str, Any] = json.loads(done.stdout)
        except subprocess.TimeoutExpired:
            return f"it took more than {seconds:.0f} s"
        except ValueError:  # it has printed no JSON
            return (done.stderr.strip().splitlines() or ["pip-audit printed nothing"])[-1][:200]
    return document


def _unknown(document: dict[str, Any]) -> list[str]:
    return [package["name"] for package in document["dependencies"] if "skip_reason" in package]


def vulnerabilities(document: dict[str, Any]) -> list[str]:
    """Return a line for each vulnerability in a document of pip-audit: package, version, advisory, fixed version."""
    return [
        f"{package['name']} {package['version']}: {' = '.join([found['id'], *found.get('aliases', [])])}, "
        f"fixed in {' or '.join(found['fix_versions']) or 'no version'}"
        for package in document["dependencies"]
        for found in package.get("vulns", [])
    ]


def _skipped(why: str) -> int:
    sys.stderr.write(f"not all packages were checked for vulnerabilities: {why}\n")
    return 0


def _is_recent() -> bool:
    """Return whether the same pins were audited within a day."""
    if not AUDITED.is_file() or time.time() - AUDITED.stat().st_mtime > DAY:
        return False
    return AUDITED.read_text() == _fingerprint()


def _fingerprint() -> str:
    return sha256(PINS.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
