"""The checks of what is installed: known vulnerabilities, and the fingerprints of every pinned file."""

import importlib.util
import json
import re
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("packaging", reason="needs the tools of the developers: pip install 'ibforecast[dev]'")
ROOT = Path(__file__).parents[1]

REPORT = {
    "dependencies": [
        {"name": "sound", "version": "1.0", "vulns": []},
        {
            "name": "holey",
            "version": "2.1",
            "vulns": [{"id": "PYSEC-1", "aliases": ["CVE-2"], "fix_versions": ["2.2", "3.0"], "description": "…"}],
        },
    ]
}

NOT_ALL = "not all packages were checked for vulnerabilities:"


def script(name: str) -> ModuleType:
    path = ROOT / ".ci" / name
    if not path.is_file():
        pytest.skip("needs the sources")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The check for vulnerabilities, of which no audit is stored."""
    module = script("audit.py")
    monkeypatch.setattr(module, "AUDITED", tmp_path / "audited")
    return module


def reporting(monkeypatch: pytest.MonkeyPatch, out: str, err: str = "") -> list[Any]:
    """Let pip-audit print this; return a list of its runs."""
    runs: list[Any] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        runs.append(command)
        return subprocess.CompletedProcess(command, 1, out, err)

    monkeypatch.setattr(subprocess, "run", run)
    return runs


def test_a_vulnerability_fails_with_package_version_advisory_and_fixed_version(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = reporting(monkeypatch, json.dumps(REPORT))
    assert (audit.main(), audit.main()) == (1, 1)
    assert len(runs) == 4, "an audit with findings is repeated; each asks about one package first"
    assert capsys.readouterr().err == "holey 2.1: PYSEC-1 = CVE-2, fixed in 2.2 or 3.0\n" * 2


def test_an_audit_without_findings_is_repeated_only_if_the_pins_changed(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs = reporting(monkeypatch, json.dumps({"dependencies": REPORT["dependencies"][:1]}))
    assert (audit.main(), audit.main()) == (0, 0)
    assert len(runs) == 2
    (tmp_path / "pins.txt").write_text("other==1.0\n")
    monkeypatch.setattr(audit, "PINS", tmp_path / "pins.txt")
    assert audit.main() == 0
    assert len(runs) == 4


def test_without_network_or_pip_audit_the_check_goes_on_and_says_why(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reporting(monkeypatch, "", "Traceback\nNo module named pip_audit\n")
    assert audit.main() == 0
    assert capsys.readouterr().err == f"{NOT_ALL} No module named pip_audit\n"

    def late(command: list[str], timeout: float, **_: Any) -> None:
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(subprocess, "run", late)
    assert audit.main() == 0
    assert capsys.readouterr().err == f"{NOT_ALL} it took more than 10 s\n"


def test_packages_that_the_service_does_not_know_are_named_and_audited_again(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = {"name": "unknown", "skip_reason": "not on the index"}
    runs = reporting(monkeypatch, json.dumps({"dependencies": [REPORT["dependencies"][0], unknown]}))
    assert (audit.main(), audit.main()) == (0, 0)
    assert len(runs) == 2, "if the first package is unknown, the others are not asked about"
    assert capsys.readouterr().err == f"{NOT_ALL} the service does not know unknown\n" * 2


# --- Fingerprints ---

PAGE = "".join(
    f'<a href="https://files.example/{number:x}/{file}#sha256={number:064x}" data-yanked="">{file}</a><br/>\n'
    for number, file in enumerate(
        [
            "fast_thing-1.2.0.tar.gz",
            "fast_thing-1.2.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
            "fast_thing-1.2.0-cp39-abi3-win_amd64.whl",
            "fast_thing-1.2.0-py2.py3-none-any.whl",
            "fast_thing-1.2.0-cp310-cp310-win_amd64.whl",
            "fast_thing-1.2.0-pp310-pypy310_pp73-win_amd64.whl",
            "fast_thing-1.2.1-cp311-cp311-win_amd64.whl",
            "fast_thing_more-1.2.0-py3-none-any.whl",
            "fast_thing-1.2.0-py3.11.egg",
        ]
    )
)


def test_the_fingerprints_of_a_version_are_those_of_its_files_for_supported_pythons() -> None:
    found = script("lock.py").fingerprints(PAGE, "Fast.Thing", "1.2")
    assert found == [f"{number:064x}" for number in range(4)]


def test_every_pinned_package_is_locked_in_its_version() -> None:
    lock = script("lock.py")
    pins = dict(lock.pins_in((ROOT / "constraints.txt").read_text("utf8")))
    lines = [line.split() for line in lock.LOCKED.read_text("utf8").splitlines()]
    assert [line[0] for line in lines] == [f"{name}=={version}" for name, version in pins.items()]
    assert "torch" not in pins
    assert all(re.fullmatch("--hash=sha256:[0-9a-f]{64}", each) for line in lines for each in line[1:])
    assert min(map(len, lines)) > 1


def test_a_lock_with_a_package_without_files_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = script("lock.py")
    (tmp_path / "pins.txt").write_text("fast-thing==1.2\nfast-thing-more==1.3\ntorch==1.0\n")
    monkeypatch.setattr(lock, "PINS", tmp_path / "pins.txt")
    monkeypatch.setattr(lock, "LOCKED", tmp_path / "locked.txt")
    monkeypatch.setattr(lock, "page_of", lambda name: PAGE)
    assert lock.main() == 1
    assert capsys.readouterr().err == "the index has no file of fast-thing-more in the pinned versions\n"
    assert not (tmp_path / "locked.txt").exists()
    (tmp_path / "pins.txt").write_text("fast-thing-more==1.2\ntorch==1.0\n")
    assert lock.main() == 0
    assert (tmp_path / "locked.txt").read_text() == f"fast-thing-more==1.2 --hash=sha256:{7:064x}\n"
