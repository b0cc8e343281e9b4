"""From records to figures and to everything under results/."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from ibforecast import IBForecaster, demo_table
from ibforecast.cli.main import main, run
from ibforecast_lab.experiments import render
from ibforecast_lab.experiments.figures import FIGURES, channels, drawn, overview
from ibforecast_lab.experiments.ledger import Cell, Ledger, Record, Scores
from ibforecast_lab.experiments.tables import TABLES
from ibforecast_lab.plots.overview import draw

RESULTS = Path(__file__).parents[3] / "results"
SCORES = {"native": (1.0, 0.1), "occlusion": (0.9, 0.2), "extremal_mask": (0.6, 0.4)}
GATES: list[dict[str, Any]] = [
    {"measure": "gate_frequency", "windows": 512, "frequency": [[0.1, 0.9], [0.25, 0.75]]},
    {"measure": "gate_map", "window": 7, "probability": [[0.2, 0.8], [0.3, 0.6]], "mask": [[0, 1], [0, 1]]},
]
KNOBS = {"rate_weight": 0.02, "prior": 0.2, "budget_weight": 0.0, "contiguity_weight": 0.0}
CONFIG = {"budget": 0.2, "objective": KNOBS}
CHANNELS = {"step_seconds_137": 0.01, "step_seconds_862": 0.06, "peak_bytes_137": 2.0**30, "peak_bytes_862": 6e9}


def record(study: str, measurements: list[dict[str, Any]], recipe: str = "choosing") -> Record:
    scores, numbers = Scores(10, 0.3, 0.4, 0.2, 0.2), (10, 0, 1, 2, 1, 1.0, 10.0)
    proof = ("r", "d", 1, "c", "CPU", {}, "now")
    cell = Cell("ETTh1", 96, recipe, 2024, study=study)
    return Record(cell, "ibforecast", scores, scores, *numbers, {"config": CONFIG}, *proof, measurements)


def measured() -> list[Record]:
    way = {"gating": "regated", "space": "frame", "shift": "squared", "aggregate": "ratio_of_means", "left_out": 0}
    numbers = {
        name: {"comprehensiveness": comp, "clipped_comprehensiveness": comp, "sufficiency": suff}
        for name, (comp, suff) in SCORES.items()
    }
    fidelity = [{"measure": "fidelity", "explainer": name, **way, **values} for name, values in numbers.items()]
    taken = {"forward_equivalents": 3.0, "forwards": 3.0, "backwards": 0.0}
    costs = [
        {"measure": "cost", "explainer": name, "device": device, **taken}
        for name in (*SCORES, "saliency")
        for device in ("cuda", "cpu")
    ]
    turned = [record("native", fidelity[:1], recipe) for recipe in ("choosing", "paper-sparse+prior=0.5")]
    reach = record("reach", [{"measure": "reach", "values": 134.0, "beyond": 0.0}], "default")
    return [record("explanations", [*fidelity, *GATES]), record("cost", costs), *turned, reach]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "ledger" / "ledger.jsonl.zst")
    for one in measured():
        ledger.write(one)
    return ledger


def bench(folder: Path, name: str, measures: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps({"device": f"the device of {name}", "measures": measures}))


def texts(svg: bytes) -> set[str]:
    return set(re.findall(r"<text[^>]*>([^<]*)</text>", svg.decode()))


# --- Figures ---


@pytest.mark.parametrize("label", list(FIGURES))
def test_a_figure_is_always_the_same_and_none_without_records(label: str) -> None:
    assert drawn(label, measured(), "svg") == drawn(label, measured(), "svg")
    assert drawn(label, measured(), "png").startswith(b"\x89PNG")
    assert FIGURES[label]([], "png") is None


def test_the_cost_figure_names_the_explainers_whose_cost_and_fidelity_are_known() -> None:
    shown = texts(drawn("cost", measured(), "svg"))
    assert {"native", "occlusion", "extremal mask", "timed on a GPU", "ETTh1, choosing, horizon 96"} <= shown
    assert "saliency" not in shown


def test_the_gate_figures_show_their_values_and_windows() -> None:
    where, many = "512 test windows of ETTh1, horizon 96, seed 2024", "choosing: how often each gate opens"
    assert {"0.10", "0.75", "channel 2", where, many} <= texts(drawn("gate_frequency", measured(), "svg"))
    one = texts(drawn("gate_map", measured(), "svg"))
    assert {"0.80", "−48 to −1", "test window 7 of ETTh1, horizon 96, seed 2024"} <= one
    assert "choosing: gate probabilities of one test window; outlined: open" in one


def test_the_gate_figures_have_a_panel_for_each_recipe_that_was_run() -> None:
    other = [GATES[0] | {"frequency": [[0.0, 0.44]] * 2}, GATES[1] | {"probability": [[0.0, 0.44]] * 2}]
    both = [*measured(), record("explanations", other, "paper-sparse")]
    titles = {"gate_map": "gate probabilities of one test window; outlined: open"}
    titles["gate_frequency"] = "how often each gate opens"
    for label, title in titles.items():
        assert {f"choosing: {title}", f"paper-sparse: {title}", "0.44"} <= texts(drawn(label, both, "svg"))
        assert not {f"paper-sparse: {title}", "0.44"} & texts(drawn(label, measured(), "svg"))
        assert {f"paper-sparse: {title}", "0.44"} <= texts(drawn(label, both[-1:], "svg"))
        assert f"choosing: {title}" not in texts(drawn(label, both[-1:], "svg"))


@pytest.fixture(scope="module")
def model() -> IBForecaster:
    """A model of the overview, trained for one epoch."""
    return overview.fitted(epochs=1)


def test_the_stages_of_the_overview_end_at_the_forecast_of_the_model(model: IBForecaster) -> None:
    shown = overview.overview_of(model)
    explained = model.explain(pa.table(demo_table().columns()), at=overview.MOMENT)
    assert np.array_equal(shown.forecast, explained.forecast)
    assert np.array_equal(shown.mask, explained.mask)
    assert np.array_equal(shown.evidence, explained.evidence)
    assert np.allclose(shown.context, explained.expected, rtol=1e-6)
    assert np.allclose(shown.deviation, explained.deviation, atol=1e-5)
    assert np.allclose(shown.probability, 1 / (1 + np.exp(-shown.logits)), atol=1e-6)
    assert shown.mask.sum() <= shown.allowance == 4


def test_the_overview_names_every_stage_channel_and_line(model: IBForecaster) -> None:
    shown = overview.overview_of(model)
    picture = draw(shown, "svg")
    stages = {"look-back X", "Decompose", "Score", "Gate", "Read out", "forecast Ŷ"}
    lines = {"read from the table", "context μ + σQ", "read by the readout", "forecast", "what followed"}
    assert {*stages, *lines, *overview.CHANNELS, "⌊ρPC⌋ = ⌊0.2·8·3⌋ = 4; here " + str(shown.mask.sum())} <= texts(
        picture
    )
    assert draw(shown, "svg") == picture
    assert draw(shown, "png").startswith(b"\x89PNG")


def test_the_overview_outlines_the_open_gates_and_shades_what_they_let_through(model: IBForecaster) -> None:
    shown = overview.overview_of(model)
    closed = replace(shown, mask=np.zeros_like(shown.mask))
    opened = replace(shown, mask=np.ones_like(shown.mask))
    outlined = [draw(each, "svg").decode().count("stroke: #d55e00; stroke-width: 1.8") for each in (closed, opened)]
    assert outlined == [0, shown.mask.size]


def test_show_draws_the_overview_without_records(tmp_path: Path, model: IBForecaster) -> None:
    out, expected = tmp_path / "overview.svg", draw(overview.overview_of(model), "svg")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overview, "fitted", lambda: model)
        words = ["show", "overview", "--format", "svg", "--out", str(out), "--ledger", str(tmp_path / "none")]
        outcome = CliRunner().invoke(main, words)
    assert outcome.exit_code == 0, outcome.output
    assert out.read_bytes() == expected


def test_growth_with_the_channels_comes_from_the_benchmarks_that_measured_it(tmp_path: Path) -> None:
    bench(tmp_path, "one.json", {"training": {}})
    assert channels.figure(tmp_path, "svg") is None
    bench(tmp_path, "two.json", {"channels": CHANNELS})
    shown = texts(channels.figure(tmp_path, "svg") or b"")
    assert {"10 ms", "60 ms", "1.00 GiB", "the device of two.json", "137", "862"} <= shown
    assert "the device of one.json" not in shown


# --- Show ---


@pytest.mark.parametrize("form", ["png", "svg"])
def test_show_draws_into_a_file(ledger: Ledger, tmp_path: Path, form: str) -> None:
    out = tmp_path / "new" / f"cost.{form}"
    out.parent.mkdir()
    words = ["show", "cost", "--format", form, "--out", str(out), "--ledger", str(ledger.packed)]
    outcome = CliRunner().invoke(main, words)
    assert outcome.exit_code == 0, outcome.output
    assert outcome.stdout == ""
    assert out.read_bytes() == drawn("cost", measured(), form)
    assert [path.name for path in out.parent.iterdir()] == [out.name]


def test_show_writes_a_table_into_a_file_as_it_would_print_it(ledger: Ledger, tmp_path: Path) -> None:
    out, words = tmp_path / "cost.md", ["show", "cost", "--ledger", str(ledger.packed)]
    printed = CliRunner().invoke(main, words).stdout
    CliRunner().invoke(main, [*words, "--out", str(out)])
    assert out.read_text("utf8") == printed


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (["cost", "--format", "png"], "hint: add --out cost.png", 2),
        (["accuracy", "--format", "svg", "--out", "a.svg"], "hint: use --format md, csv, tex or json", 2),
        (["gate_map", "--format", "png", "--out", "a.png"], "hint: run: ibforecast reproduce gate_map", 3),
        (["overview"], "hint: add --format png --out overview.png, or svg", 2),
        (["overview", "--format", "svg"], "hint: add --out overview.svg", 2),
        (["fidelty"], "hint: did you mean 'fidelity'?", 2),
    ],
)
def test_a_label_that_cannot_be_shown_is_refused_with_a_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str, code: int
) -> None:
    with pytest.raises(SystemExit) as stop:
        run(["show", *words, "--ledger", str(tmp_path / "ledger.jsonl.zst")])
    assert stop.value.code == code
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


# --- Results ---


def test_rendering_writes_every_table_and_every_figure_with_records(ledger: Ledger, tmp_path: Path) -> None:
    out = tmp_path / "results"
    out.mkdir()
    bench(out / "bench", "one.json", {"channels": CHANNELS})
    render.main(["--ledger", str(ledger.packed), "--out", str(out)])
    tables = {path.name for path in (out / "tables").iterdir()}
    assert tables == {f"{label}.{form}" for label in TABLES for form in ("md", "json")}
    figures = {path.name: path.read_bytes() for path in (out / "figures").iterdir()}
    assert set(figures) == {f"{name}.{form}" for name in (*FIGURES, "channels") for form in ("png", "svg")}
    assert figures["gate_map.svg"] == drawn("gate_map", measured(), "svg")


def test_a_figure_without_records_is_deleted(tmp_path: Path) -> None:
    stale = tmp_path / "figures" / "cost.png"
    stale.parent.mkdir()
    stale.write_bytes(b"old")
    written = render.render(tmp_path / "none", tmp_path / "none", tmp_path)
    assert not stale.exists()
    assert stale not in written
    assert (tmp_path / "tables" / "cost.md").exists()


def test_the_guide_to_the_results_names_every_table_and_figure() -> None:
    guide = (RESULTS / "README.md").read_text("utf8")
    assert [label for label in (*TABLES, "channels") if f"`{label}`" not in guide] == []
