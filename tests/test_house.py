"""The package itself: public names, imports, no printing, and the map of the paper."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import ibforecast

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "ibforecast"
MAP = ROOT / "docs" / "paper-map.md"
FILES = sorted(SOURCE.rglob("*.py"))
LAB_FILES = sorted((ROOT / "lab" / "src").rglob("*.py"))
EQUATION = r"(?:Eq\. \d+|Algorithm 1), [^;|`]+?"
"""A place in the paper and the symbol that stands there."""


def test_every_public_name_exists_and_the_list_is_sorted() -> None:
    names = ibforecast.__all__
    assert all(hasattr(ibforecast, name) for name in names)
    assert names == sorted(set(names))
    assert {"IBForecaster", "__version__"} <= set(names)


def test_the_list_of_names_is_complete() -> None:
    modules = {path.stem for path in SOURCE.iterdir()}
    public = (
        {name for name in vars(ibforecast) if not name.startswith("_")} - modules - {"jaxtyping"}
    )  # added by the type-checking hook of the tests
    assert public <= set(ibforecast.__all__)


def test_importing_the_library_imports_nothing_optional_and_prints_nothing() -> None:
    optional = {"matplotlib", "pandas", "polars", "pooch", "sklearn", "click", "beartype", "captum", "cryptography"}
    optional |= {"fastapi", "uvicorn", "pydantic", "prometheus_client", "sktime", "onnx", "onnxruntime"}
    optional |= {"neuralforecast", "pytorch_lightning", "shap", "optuna", "ray", "openpyxl", "mlflow"}
    script = f"import sys, ibforecast; print(sorted({optional!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "[]\n"


def test_the_main_class_does_not_wait_for_what_only_some_of_its_methods_need() -> None:
    later = {"narwhals", "pandas", "ibforecast.audit", "ibforecast.check", "ibforecast.dossier", "ibforecast.plots"}
    script = f"import sys; from ibforecast import IBForecaster; print(sorted({later!r} & sys.modules.keys()))"
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "[]\n"


def test_libraries_of_one_room_are_forbidden_in_every_other_room() -> None:
    rooms = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["tool"]["importlinter"]["contracts"]
    confined = {match[1]: one for one in contracts if (match := re.search(r"^Only (\w+) imports", one["name"]))}
    assert confined.keys() == {"serve", "plots"}
    for room, contract in confined.items():
        listed = {name.removeprefix("ibforecast.") for name in contract["source_modules"]}
        assert listed == rooms - {room, "__init__", "__main__", "_version"}


def test_no_test_of_the_product_imports_the_laboratory() -> None:
    tests = sorted((ROOT / "tests").rglob("*.py"))
    assert [str(path) for path in tests if {name.split(".")[0] for name in imports_in(path)} & {"ibforecast_lab"}] == []


def test_the_wheel_of_the_product_contains_only_the_product() -> None:
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["tool"]["hatch"]["build"]["targets"]
    assert targets["wheel"] == {"packages": ["src/ibforecast"]}
    assert not [path for path in FILES if "ibforecast_lab" in {name.split(".")[0] for name in imports_in(path)}]


@pytest.mark.parametrize(
    ("room", "further"),
    [
        ("explain", ("ibforecast.layers",)),
        ("evaluate", ("ibforecast.data", "ibforecast.layers", "numpy")),
        ("train", ("ibforecast.data", "safetensors")),
    ],
)
def test_a_room_that_uses_the_contract_imports_no_concrete_model_and_nothing_optional(
    room: str, further: tuple[str, ...]
) -> None:
    allowed = ("ibforecast.core", f"ibforecast.{room}", "torch", "jaxtyping", *further)
    for path in (SOURCE / room).glob("*.py"):
        for module in imports_in(path):
            known = any(f"{module}.".startswith(f"{name}.") for name in allowed)
            assert known or module.split(".")[0] in sys.stdlib_module_names, (path, module)


def calls_in(path: Path) -> set[str]:
    return {ast.unparse(n.func) for n in ast.walk(ast.parse(path.read_text("utf8"))) if isinstance(n, ast.Call)}


def test_only_the_command_line_prints_and_nothing_silences_warnings() -> None:
    forbidden = {"print", "warnings.filterwarnings", "warnings.simplefilter", "logging.basicConfig"}
    rooms = [path for path in FILES if path.relative_to(SOURCE).parts[0] != "cli"]
    assert [str(path) for path in rooms if calls_in(path) & forbidden] == []


def imports_in(path: Path) -> set[str]:
    """Return the modules that a file imports, at its top or inside a function."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf8"))))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}


def test_nothing_is_unpickled_or_evaluated_anywhere() -> None:
    for path in FILES:
        assert not imports_in(path) & {"pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}, path
        assert not calls_in(path) & {"torch.load", "torch.save", "eval", "exec"}, path


def places_in(text: str) -> set[str]:
    """Return the places in the `Paper:` lines of a file, such as "Eq. 5, p"; semicolons separate several."""
    lines = re.findall(r"Paper: (.+?)(?:\.?\"\"\"|\.?\s*$)", text, flags=re.MULTILINE)
    named = {place.strip() for line in lines for place in line.split(";")}
    return {place for place in named if re.fullmatch(EQUATION, place)}


def test_paper_lines_are_parsed() -> None:
    one, two = '"""One. Paper: Eq. 9, (p̄ − ρ)²."""', '"""Two. Paper: Eq. 11, X; Eq. 12, Y.\n\nPaper: Eqs. 3 to 5."""'
    text = f"{one}\n    {two}\n    X = μ        Paper: Eq. 13, M\n"
    assert places_in(text) == {"Eq. 9, (p̄ − ρ)²", "Eq. 11, X", "Eq. 12, Y", "Eq. 13, M"}


def places_in_source() -> dict[str, set[str]]:
    """Return the files that name each place in the paper."""
    files: dict[str, set[str]] = {}
    for path in (*FILES, *LAB_FILES):
        for place in places_in(path.read_text("utf8")):
            files.setdefault(place, set()).add(str(path.relative_to(ROOT)))
    return files


def places_in_map() -> list[tuple[str, str, str]]:
    """Return place, name and file of every row of the map whose first column is a place in backticks."""
    rows = []
    for line in MAP.read_text("utf8").splitlines():
        columns = [column.strip() for column in line.strip().strip("|").split("|")]
        place = re.fullmatch(rf"`(?:Paper: )?({EQUATION})`", columns[0])
        if place and len(columns) >= 3:
            rows.append((place[1], columns[1], columns[2]))
    return rows


def test_every_equation_of_the_method_is_named_in_the_source() -> None:
    numbers = {place.split(",")[0] for place in places_in_source()}
    assert {f"Eq. {number}" for number in (2, 3, 5, 6, 7, 8, 9, 11, 12, 13)} | {"Algorithm 1"} <= numbers


def test_every_place_named_in_the_source_is_on_the_map() -> None:
    assert places_in_source().keys() - {place for place, _, _ in places_in_map()} == set()


def test_every_place_on_the_map_is_named_in_the_source() -> None:
    rows = places_in_map()
    assert rows
    assert {place for place, _, _ in rows} - places_in_source().keys() == set()


def defined_in(path: Path) -> set[str]:
    """Return the functions, classes and methods of a file, methods as Class.method."""
    names = set()
    for node in ast.parse(path.read_text("utf8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return names


def test_every_row_of_the_map_links_to_a_file_that_names_its_place_and_defines_its_names() -> None:
    source = places_in_source()
    for place, names, file in places_in_map():
        link = re.fullmatch(r"\[.+\]\((.+)\)", file)
        assert link, f"{place}: {file} is not a link"
        path = (MAP.parent / link[1]).resolve()
        assert str(path.relative_to(ROOT)) in source[place], f"{place}: {path} does not say so"
        defined = set(re.findall(r"`([\w.]+)`", names))
        assert defined
        assert defined <= defined_in(path), f"{place}: {defined - defined_in(path)} not in {path}"


@pytest.mark.xdist_group("house")
def test_tests_of_a_group_share_a_worker(request: pytest.FixtureRequest) -> None:
    """pytest-xdist marks the names of grouped tests; from pytest 9.2 on its mark has no effect, and says nothing."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("needs pytest -n with --dist loadgroup")
    assert request.node.nodeid.endswith("@house")
