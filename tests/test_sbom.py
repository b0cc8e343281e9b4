"""The bill of materials names every package that a plain installation needs, and the wheel it belongs to."""

import hashlib
import importlib.util
import json
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("packaging", reason="needs the tools of the developers: pip install 'ibforecast[dev]'")
SCRIPT = Path(__file__).parents[1] / ".ci" / "sbom.py"


@pytest.fixture(scope="module")
def sbom() -> ModuleType:
    if not SCRIPT.is_file():
        pytest.skip("needs the sources")
    spec = importlib.util.spec_from_file_location("sbom", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_package_is_named_once_with_its_version(sbom: ModuleType) -> None:
    document = sbom.bill()
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    versions = {one["name"]: one["version"] for one in document["components"]}
    assert len(versions) == len(document["components"])
    for name in ("torch", "numpy", "pyarrow", "safetensors", "narwhals", "click"):
        assert versions[name] == version(name)
    assert not {"pytest", "ruff", "fastapi", "ibforecast"} & set(versions)  # extras and tools are no part of it


def test_dependencies_refer_to_components(sbom: ModuleType) -> None:
    document = sbom.bill()
    own = document["metadata"]["component"]["bom-ref"]
    known = {one["bom-ref"] for one in document["components"]} | {own}
    assert {one["ref"] for one in document["dependencies"]} == known
    needed = {ref for one in document["dependencies"] for ref in one["dependsOn"]}
    assert needed == known - {own}  # each of them is there because another needs it


def test_the_bill_names_the_fingerprint_of_the_wheel(sbom: ModuleType, tmp_path: Path) -> None:
    wheel = tmp_path / f"ibforecast-{version('ibforecast')}-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    document = json.loads(sbom.main(tmp_path).read_text())
    (hashed,) = document["metadata"]["component"]["hashes"]
    assert hashed == {"alg": "SHA-256", "content": hashlib.sha256(b"a wheel").hexdigest()}


def test_every_package_has_a_licence_that_allows_any_use(
    sbom: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sbom.other_licences(sbom.bill()) == {}
    assert "AGPL-3.0-only" not in sbom.ALLOWED
    assert sbom.check() == 0
    printed = capsys.readouterr()
    assert "MPL-2.0 AND MIT: tqdm\n" in printed.out
    assert printed.err == ""
    monkeypatch.setattr(sbom, "ALLOWED", sbom.ALLOWED - {"MPL-2.0"})
    assert sbom.other_licences(sbom.bill()) == {"tqdm": "MPL-2.0 AND MIT"}
    assert sbom.check() == 1
    assert capsys.readouterr().err == "tqdm may not be allowed for any use: MPL-2.0 AND MIT\n"


def test_make_check_verifies_the_licences(sbom: ModuleType) -> None:
    checks = (SCRIPT.parents[1] / "Makefile").read_text("utf8").partition("\ncheck:")[2].partition("\n\n")[0]
    assert "\t$(BIN)/python .ci/sbom.py\n" in checks
