"""Look for known vulnerabilities of the pinned packages: `python .ci/audit.py`.

pip-audit asks the index for the versions in constraints.txt, once a day. Without a network, or without pip-audit, it
says so and the check goes on. A vulnerability ends it with exit code 1.
"""

import json
import subprocess
import sys
import threading
import time
import urllib.request
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PINS = ROOT / "constraints.txt"
AUDITED = Path(sys.prefix) / ".audited"
"""The file with the fingerprint of the pins that were audited last."""

SERVICE = "https://pypi.org/pypi/{name}/{version}/json"
"""A page of the service that pip-audit asks. It lists vulnerabilities; a mirror of the index may not have it."""

REACHED_IN, DAY, LONGEST = 2.0, 86_400, 120
"""Seconds to reach the service, until an audit is repeated, and for an audit."""


def main() -> int:
    """Audit the pins; return the exit code."""
    if _is_recent():
        return 0
    name, _, version = PINS.read_text("utf8").split()[0].partition("==")
    if not is_reachable(SERVICE.format(name=name, version=version)):
        return _skipped("no network, or no service that knows vulnerabilities")
    command = [sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "--requirement", str(PINS)]
    quiet = ["--format", "json", "--progress-spinner", "off", "--timeout", "10"]
    try:
        done = subprocess.run([*command, *quiet], capture_output=True, text=True, timeout=LONGEST, check=False)
        document = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return _skipped(f"it took more than {LONGEST} s")
    except ValueError:  # it has printed no JSON
        return _skipped((done.stderr.strip().splitlines() or ["pip-audit printed nothing"])[-1][:200])
    found = vulnerabilities(document)
    sys.stderr.write("".join(f"{line}\n" for line in found))
    # pip-audit leaves out what the service does not know, and calls the rest free of vulnerabilities.
    if unknown := [package["name"] for package in document["dependencies"] if "skip_reason" in package]:
        _skipped(f"the service does not know {len(unknown)} of them: {', '.join(unknown[:5])}")
    if not found and not unknown:
        AUDITED.write_text(_fingerprint())
    return int(bool(found))


def is_reachable(url: str) -> bool:
    """Return whether a page of the service answers in time, with a list of vulnerabilities."""
    answers: list[Any] = []

    def ask() -> None:
        try:
            with urllib.request.urlopen(url, timeout=REACHED_IN) as page:
                answers.append(json.load(page))
        except (OSError, ValueError):
            pass

    # In a thread, because finding the address of a name has no limit of its own.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(REACHED_IN)
    return bool(answers) and isinstance(answers[0], dict) and "vulnerabilities" in answers[0]


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
