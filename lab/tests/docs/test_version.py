"""The laboratory imports internals of the product, so it depends on the same version."""

import tomllib
from pathlib import Path

import ibforecast


def test_the_laboratory_depends_on_the_version_of_the_product() -> None:
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf8"))
    assert f"ibforecast[plot]=={ibforecast.__version__}" in settings["project"]["dependencies"]
