"""Write the bill of materials of the product (CycloneDX 1.6) next to its wheel: `python .ci/sbom.py dist`.

It lists the packages that a plain installation needs, directly or not, in the versions of this environment. Without a
folder it prints their licences, which needs no network, and ends with exit code 1 if one of them is not in `ALLOWED`.
"""

import hashlib
import json
import re
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

PRODUCT = "ibforecast"
ALLOWED = frozenset(
    """0BSD; Apache License; Apache Software License; Apache-2.0; Apache-2.0 WITH LLVM-exception; BSD; BSD License;
    BSD-2-Clause; BSD-3-Clause; BSL-1.0; CC0-1.0; MIT; MIT License; MPL-2.0; PSF-2.0; Zlib""".replace(
        "\n    ", " "
    ).split("; ")
)
"""Licences under which a package may be installed with a product of any kind."""


def needed_by(package: Distribution, extras: frozenset[str] = frozenset()) -> list[Requirement]:
    """Return what a package needs here: with these extras, on this system and Python."""
    requirements = [Requirement(line) for line in package.requires or ()]
    chosen = extras or {""}
    return [
        each
        for each in requirements
        if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in chosen)
    ]


def normal(name: str) -> str:
    """Return the name of a package as the index writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def component(package: Distribution) -> dict[str, Any]:
    """Return one package as CycloneDX describes it."""
    name, about = normal(package.metadata["Name"]), package.metadata
    purl = f"pkg:pypi/{name}@{package.version}"
    described: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": package.version,
        "purl": purl,
    }
    if expression := about.get("License-Expression"):
        described["licenses"] = [{"expression": expression}]
    elif licence := licence_of(package):
        described["licenses"] = [{"license": {"name": licence}}]
    return described


def licence_of(package: Distribution) -> str:
    """Return the licence that a package states, in one line; empty if it states none."""
    about = package.metadata
    if (licence := about.get("License-Expression") or about.get("License") or "") and "\n" not in licence:
        return licence
    classifiers = about.get_all("Classifier") or []
    named = [each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License :: OSI Approved :: ")]
    return " AND ".join(named)


def other_licences(document: dict[str, Any]) -> dict[str, str]:
    """Return the packages whose licence is not known to allow any use, each with what it states."""
    stated = {each["name"]: licence_of(distribution(each["name"])) for each in document["components"]}
    return {
        name: licence
        for name, licence in stated.items()
        if not licence or not all(part.strip(" ()") in ALLOWED for part in re.split(" AND | OR ", licence))
    }


def bill(root: str = PRODUCT) -> dict[str, Any]:
    """Return the bill of materials: the same for the same environment."""
    packages: dict[str, Distribution] = {normal(root): distribution(root)}
    edges: dict[str, set[str]] = {}
    waiting: list[tuple[str, frozenset[str]]] = [(normal(root), frozenset())]
    done: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        name, extras = waiting.pop()
        done.add((name, extras))
        for each in needed_by(packages[name], extras):
            other = normal(each.name)
            packages[other] = distribution(each.name)
            edges.setdefault(name, set()).add(other)
            following = (other, frozenset(each.extras))
            if following not in done:
                waiting.append(following)
    described = {name: component(packages[name]) for name in sorted(packages)}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": described[normal(root)]},
        "components": [one for name, one in described.items() if name != normal(root)],
        "dependencies": [
            {
                "ref": one["bom-ref"],
                "dependsOn": [described[other]["bom-ref"] for other in sorted(edges.get(name, ()))],
            }
            for name, one in described.items()
        ],
    }


def check() -> int:
    """Print the licences and the packages that state them; return the exit code."""
    document, packages = bill(), dict[str, list[str]]()
    for each in document["components"]:
        packages.setdefault(licence_of(distribution(each["name"])) or "none stated", []).append(each["name"])
    for licence, names in sorted(packages.items()):
        sys.stdout.write(f"{licence}: {', '.join(names)}\n")
    others = other_licences(document)
    for name, licence in others.items():
        sys.stderr.write(f"{name} may not be allowed for any use: {licence or 'no licence stated'}\n")
    return int(bool(others))


def main(folder: Path) -> Path:
    """Write the bill of the wheel in a folder, with the wheel's fingerprint; return its path."""
    document = bill()
    about = document["metadata"]["component"]
    (wheel,) = folder.glob(f"{PRODUCT}-{about['version']}-*.whl")
    about["hashes"] = [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}]
    path = folder / f"{PRODUCT}-{about['version']}.cdx.json"
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return path


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(check())
    sys.stdout.write(f"{main(Path(sys.argv[1]))}\n")
