"""Write the bill of materials of the product (CycloneDX 1.6) next to its wheel: `python .ci/sbom.py dist`.

It lists the packages that a plain installation needs, directly or not, in the versions of this environment.
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
    elif (licence := about.get("License")) and "\n" not in licence:
        described["licenses"] = [{"license": {"name": licence}}]
    return described


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
    sys.stdout.write(f"{main(Path(sys.argv[1]))}\n")
