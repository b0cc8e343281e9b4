"""The house itself: its front door, what it imports, its quiet, and the map of the paper."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import ibforecast

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "ibforecast"
MAP = ROOT / "docs" / "paper-map.md"
LABORATORY = ROOT / "lab" / "src" / "ibforecast_lab"
FILES = sorted(SOURCE.rglob("*.py"))
EQUATION = r"(?:Eq\. \d+|Algorithm 1), [^;|`]+?"
"""A place in the paper and the symbol that stands there."""


def test_every_name_at_the_front_door_is_there_and_they_are_sorted() -> None:
    names = ibforecast.__all__
    assert all(hasattr(ibforecast, name) for name in names)
    assert names == sorted(set(names))
    assert {"IBForecaster", "__version__"} <= set(names)


def test_nothing_public_is_left_out_of_the_list_of_names() -> None:
    modules = {path.stem for path in SOURCE.iterdir()}
    public = (
        {name for name in vars(ibforecast) if not name.startswith("_")} - modules - {"jaxtyping"}
    )  # put there by the hook of the tests
    assert public <= set(ibforecast.__all__)


def test_importing_the_library_imports_nothing_optional_and_says_nothing() -> None:
    optional = {"matplotlib", "pandas", "polars", "pooch", "sklearn", "click", "beartype", "captum", "cryptography"}
    optional |= {"fastapi", "uvicorn", "pydantic", "prometheus_client", "sktime", "onnx", "onnxruntime"}
    optional |= {"neuralforecast", "pytorch_lightning", "shap", "optuna", "ray"}
    asked = f"import sys, ibforecast; print(sorted({optional!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", asked], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "[]\n"


def test_what_lives_in_one_room_alone_is_forbidden_to_every_other() -> None:
    rooms = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["tool"]["importlinter"]["contracts"]
    alone = {told[1]: one for one in contracts if (told := re.search(r"in (\w+) alone$", one["name"]))}
    assert alone.keys() == {"serve", "plots"}
    for room, contract in alone.items():
        listed = {name.removeprefix("ibforecast.") for name in contract["source_modules"]}
        assert listed == rooms - {room, "__init__", "_version"}


def calls_in(path: Path) -> set[str]:
    return {ast.unparse(n.func) for n in ast.walk(ast.parse(path.read_text("utf8"))) if isinstance(n, ast.Call)}


def test_outside_the_command_line_nothing_prints_or_silences_warnings() -> None:
    forbidden = {"print", "warnings.filterwarnings", "warnings.simplefilter", "logging.basicConfig"}
    rooms = [path for path in FILES if path.relative_to(SOURCE).parts[0] != "cli"]
    assert [str(path) for path in rooms if calls_in(path) & forbidden] == []


def test_nothing_is_unpickled_or_evaluated_anywhere() -> None:
    for path in FILES:
        tree = ast.parse(path.read_text("utf8"))
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not imported & {"pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}, path
        assert not calls_in(path) & {"torch.load", "torch.save", "eval", "exec"}, path


def places_in(text: str) -> set[str]:
    """What the `Paper:` lines of a file name, such as "Eq. 5, p": one place, or several parted by semicolons."""
    told = re.findall(r"Paper: (.+?)(?:\.?\"\"\"|\.?\s*$)", text, flags=re.MULTILINE)
    named = {place.strip() for line in told for place in line.split(";")}
    return {place for place in named if re.fullmatch(EQUATION, place)}


def test_places_in_the_paper_are_found_where_they_stand() -> None:
    one, two = '"""One. Paper: Eq. 9, (p̄ − ρ)²."""', '"""Two. Paper: Eq. 11, X; Eq. 12, Y.\n\nPaper: Eqs. 3 to 5."""'
    text = f"{one}\n    {two}\n    X = μ        Paper: Eq. 13, M\n"
    assert places_in(text) == {"Eq. 9, (p̄ − ρ)²", "Eq. 11, X", "Eq. 12, Y", "Eq. 13, M"}


def told_in_source() -> dict[str, set[str]]:
    """Return the files of both packages by the place in the paper they name."""
    found: dict[str, set[str]] = {}
    for path in (*FILES, *sorted(LABORATORY.rglob("*.py"))):
        for place in places_in(path.read_text("utf8")):
            found.setdefault(place, set()).add(str(path.relative_to(ROOT)))
    return found


def told_in_map() -> list[tuple[str, str, str]]:
    """Place, name and file of every row of the map whose first column is a place in backticks."""
    rows = []
    for line in MAP.read_text("utf8").splitlines():
        columns = [column.strip() for column in line.strip().strip("|").split("|")]
        place = re.fullmatch(rf"`(?:Paper: )?({EQUATION})`", columns[0])
        if place and len(columns) >= 3:
            rows.append((place[1], columns[1], columns[2]))
    return rows


def test_every_equation_of_the_method_is_somewhere_in_the_source() -> None:
    numbers = {place.split(",")[0] for place in told_in_source()}
    assert {f"Eq. {number}" for number in (2, 3, 5, 6, 7, 8, 9, 11, 12, 13)} | {"Algorithm 1"} <= numbers


def test_every_place_named_in_the_source_is_on_the_map() -> None:
    assert told_in_source().keys() - {place for place, _, _ in told_in_map()} == set()


def test_every_place_on_the_map_is_named_in_the_source() -> None:
    rows = told_in_map()
    assert rows
    assert {place for place, _, _ in rows} - told_in_source().keys() == set()


def defined_in(path: Path) -> set[str]:
    """Functions, classes and methods of a file, methods as Class.method."""
    names = set()
    for node in ast.parse(path.read_text("utf8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return names


def test_every_row_of_the_map_links_to_a_file_that_names_its_place_and_defines_its_names() -> None:
    source = told_in_source()
    for place, names, file in told_in_map():
        link = re.fullmatch(r"\[.+\]\((.+)\)", file)
        assert link, f"{place}: {file} is no link"
        path = (MAP.parent / link[1]).resolve()
        assert str(path.relative_to(ROOT)) in source[place], f"{place}: {path} does not say so"
        told = set(re.findall(r"`([\w.]+)`", names))
        assert told
        assert told <= defined_in(path), f"{place}: {told - defined_in(path)} not in {path}"
