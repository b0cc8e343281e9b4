"""The figure of an explained forecast as a file of any format."""

import builtins
import json
import re
import struct
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from tests.core.samples import changed

from ibforecast.core.errors import MissingExtraError, UsageError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.verdict import Check, Verification
from ibforecast.plots import explanation, static
from ibforecast.plots.explanation import SUFFIXES, draw, figure
from ibforecast.plots.extra import needs
from ibforecast.plots.scene import scene_of
from ibforecast.plots.sheet import Sheet, sheet_of

PICTURES = (".png", ".svg")
Samples = Callable[..., ExplainedForecast]


def png_size(path: Path) -> tuple[int, int]:
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    return width, height


def without(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """Make a library look as if it were not installed."""
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    real = builtins.__import__

    def refuse(name: str, *rest: object, **more: object) -> object:
        if name.partition(".")[0] == library:
            raise ModuleNotFoundError(f"No module named {library!r}", name=name)
        return real(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", refuse)


def content_of(path: Path) -> dict[str, Any]:
    """Return the data embedded in a page."""
    embedded = re.search(r'<script type="application/json" id="report">(.*?)</script>', path.read_text("utf8"))
    assert embedded
    content: dict[str, Any] = json.loads(embedded[1])
    return content


@pytest.mark.parametrize("suffix", PICTURES)
@pytest.mark.parametrize("with_truth", [True, False])
@pytest.mark.parametrize("with_missing", [True, False])
def test_a_file_is_written_for_every_suffix(
    tmp_path: Path, synthetic: Samples, suffix: str, with_truth: bool, with_missing: bool
) -> None:
    draw(synthetic(3, with_truth=with_truth, with_missing=with_missing), tmp_path / f"window{suffix}")
    assert [path.name for path in tmp_path.iterdir()] == [f"window{suffix}"]
    assert (tmp_path / f"window{suffix}").stat().st_size > 1000


@pytest.mark.parametrize("suffix", PICTURES)
def test_the_same_explanation_gives_the_same_bytes(tmp_path: Path, synthetic: Samples, suffix: str) -> None:
    for name in ("one", "other"):
        draw(synthetic(2), tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"other{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", PICTURES)
def test_drawing_leaves_the_explanation_and_matplotlib_unchanged(
    tmp_path: Path, synthetic: Samples, suffix: str
) -> None:
    explained = synthetic(2)
    before, settings = explained.to_json(), dict(matplotlib.rcParams)
    draw(explained, tmp_path / f"window{suffix}")
    assert explained.to_json() == before
    assert dict(matplotlib.rcParams) == settings


def test_a_users_matplotlib_settings_do_not_change_the_picture(tmp_path: Path, synthetic: Samples) -> None:
    draw(synthetic(2), tmp_path / "plain.png")
    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 30, "savefig.bbox": "tight"}):
        draw(synthetic(2), tmp_path / "styled.png")
        assert matplotlib.rcParams["font.size"] == 30
    assert (tmp_path / "plain.png").read_bytes() == (tmp_path / "styled.png").read_bytes()


def test_more_channels_make_a_taller_picture_of_the_same_width_with_slimmer_rows(
    tmp_path: Path, synthetic: Samples
) -> None:
    sizes = {}
    for channels in (7, 50):
        draw(synthetic(channels, seed=1), tmp_path / f"{channels}.png")
        sizes[channels] = png_size(tmp_path / f"{channels}.png")
    assert sizes[7][0] == sizes[50][0] == 1600
    assert 0.75 < sizes[7][1] / sizes[7][0] < 1
    assert 2.5 < sizes[50][1] / sizes[50][0] < 3.5
    assert sizes[50][1] / 50 > 80


def test_a_very_tall_picture_stays_within_the_png_limit(synthetic: Samples) -> None:
    sheet: Sheet = replace(sheet_of(scene_of(synthetic(1))), rows=2000)
    assert sheet.height / 72 * static.resolution(sheet) < 2**16


@pytest.mark.parametrize("suffix", PICTURES)
def test_a_picture_contains_no_date(tmp_path: Path, synthetic: Samples, suffix: str) -> None:
    draw(synthetic(1), tmp_path / f"window{suffix}")
    content = (tmp_path / f"window{suffix}").read_bytes()
    assert b"<dc:date>" not in content
    assert b"tEXt" not in content


@pytest.mark.parametrize("suffix", PICTURES)
def test_a_channel_without_a_single_value_is_still_drawn(tmp_path: Path, synthetic: Samples, suffix: str) -> None:
    explained = synthetic(2, with_missing=False)
    arrays = {name: getattr(explained, name).copy() for name in ("history", "mask", "missing", "evidence")}
    for name, value in {"history": np.nan, "mask": False, "missing": True, "evidence": 0.0}.items():
        arrays[name][:, 0] = value
    draw(changed(explained, **arrays), tmp_path / f"window{suffix}")
    assert (tmp_path / f"window{suffix}").exists()


@pytest.mark.parametrize("suffix", PICTURES)
def test_a_horizon_of_one_step_and_a_cycle_of_one_are_still_drawn(
    tmp_path: Path, synthetic: Samples, suffix: str
) -> None:
    draw(synthetic(1, horizon=1, cycle=1), tmp_path / f"window{suffix}")
    assert (tmp_path / f"window{suffix}").exists()


def test_the_figure_has_a_row_and_a_profile_per_channel_on_shared_axes(synthetic: Samples) -> None:
    explained = synthetic(7)
    drawing = figure(explained)
    assert len(drawing.axes) == 14
    rows, profiles = drawing.axes[:7], drawing.axes[7:]
    assert {axes.get_xlim() for axes in rows} == {(-0.5, len(explained.times) - 0.5)}
    assert {axes.get_ylim() for axes in profiles} == {profiles[0].get_ylim()}
    assert all(2 <= len(axes.get_yticks()) <= 3 for axes in rows)


def test_every_open_and_missing_token_is_shaded_at_its_place(synthetic: Samples) -> None:
    explained = synthetic(7)
    for row, axes in enumerate(figure(explained).axes[:7]):
        for cells, hatched in ((explained.mask, False), (explained.missing, True)):
            starts = sorted(patch.get_x() for patch in axes.patches if bool(patch.get_hatch()) == hatched)
            assert starts == [patch * explained.patch_len - 0.5 for patch in np.flatnonzero(cells[:, row])]


def test_no_number_next_to_the_profiles_leaves_the_sheet(synthetic: Samples) -> None:
    explained = synthetic(3)
    drawing = figure(changed(explained, profile=0.006 * explained.profile / np.abs(explained.profile).max()))
    renderer = drawing.canvas.get_renderer()  # type: ignore[attr-defined]
    numbers = [label for axes in drawing.axes[3:] for label in axes.get_yticklabels()]
    assert "−0.005" in {label.get_text() for label in numbers}
    assert all(label.get_window_extent(renderer).x1 < drawing.bbox.x1 - 4 for label in numbers)


def test_no_text_in_the_left_margin_leaves_the_sheet_or_touches_another(synthetic: Samples) -> None:
    long = tuple(f"plant_03_building_{index}_floor_2_temperature_sensor" for index in range(9))
    drawing = figure(synthetic(names=(*long, "OT", "WWWWWWWWWWWWWWWWW", "zone 12 electricity"), seed=1))
    renderer = drawing.canvas.get_renderer()  # type: ignore[attr-defined]
    for axes in drawing.axes[:12]:
        (name,) = axes.texts
        numbers = [label.get_window_extent(renderer) for label in axes.get_yticklabels()]
        box = name.get_window_extent(renderer)
        assert box.x0 >= 0
        assert all(box.x1 <= number.x0 for number in numbers)
        assert not any(one.overlaps(other) for one, other in pairwise(numbers))


def test_no_text_of_the_legend_leaves_the_sheet_or_touches_another(with_covariates: ExplainedForecast) -> None:
    drawing = figure(with_covariates)
    renderer = drawing.canvas.get_renderer()  # type: ignore[attr-defined]
    boxes = [text.get_window_extent(renderer) for text in drawing.texts]
    assert all(box.x0 >= 0 and box.x1 < drawing.bbox.x1 for box in boxes)
    assert not any(one.overlaps(other) for at, one in enumerate(boxes) for other in boxes[:at])


@pytest.mark.parametrize("name", ["window.pdf", "window", "window.png.bak"])
def test_an_unknown_suffix_is_refused_with_the_allowed_ones(tmp_path: Path, synthetic: Samples, name: str) -> None:
    with pytest.raises(UsageError, match=r"\.png, \.svg or \.html \(got 'window") as refusal:
        draw(synthetic(1), tmp_path / name)
    assert name in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


def test_a_suffix_may_be_written_in_capitals_and_a_path_as_a_string(tmp_path: Path, synthetic: Samples) -> None:
    draw(synthetic(1), str(tmp_path / "window.PNG"))
    assert png_size(tmp_path / "window.PNG")[0] == 1600


def test_without_matplotlib_a_png_is_refused_with_the_install_command_and_an_svg_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synthetic: Samples
) -> None:
    explained = synthetic(1)
    with monkeypatch.context() as patched:
        without(patched, "matplotlib")
        with pytest.raises(MissingExtraError, match=r"needs matplotlib.*pip install 'ibforecast\[plot\]'"):
            draw(explained, tmp_path / "window.png")
        draw(explained, tmp_path / "window.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["window.svg"]


def test_a_broken_library_raises_its_own_error() -> None:
    with pytest.raises(ModuleNotFoundError, match="kiwisolver") as error, needs("matplotlib"):
        raise ModuleNotFoundError("No module named 'kiwisolver'", name="kiwisolver")
    assert not isinstance(error.value, MissingExtraError)


@pytest.mark.parametrize("suffix", PICTURES)
def test_a_failure_leaves_an_older_file_intact_and_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synthetic: Samples, suffix: str
) -> None:
    def fail(*_: Any) -> Any:
        raise IndexError("out of the picture")

    path = tmp_path / f"window{suffix}"
    path.write_bytes(b"older")
    monkeypatch.setattr(explanation, "scene_of", fail)
    with pytest.raises(IndexError, match="out of the picture"):
        draw(synthetic(2), path)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"older"]


def test_a_page_without_a_model_is_a_report_without_checks(tmp_path: Path, synthetic: Samples) -> None:
    explained = synthetic(2)
    draw(explained, tmp_path / "why.html")
    content = content_of(tmp_path / "why.html")
    (moment,) = content["moments"]
    assert (moment["verified"], moment["checks"]) == (None, [])
    assert (moment["document"], moment["scene"]) == (explained.to_json(), scene_of(explained).document())
    assert content["model"]["channels"] == content["table"]["channels"] == list(explained.channels)


def test_a_page_with_a_model_is_a_report_with_checks(tmp_path: Path, synthetic: Samples) -> None:
    def doubt(explained: ExplainedForecast) -> Verification:
        return Verification((Check("replay", False, "differs"),))

    draw(synthetic(2), tmp_path / "why.html", doubt)
    (moment,) = content_of(tmp_path / "why.html")["moments"]
    assert moment["verified"] is False
    assert moment["checks"] == [{"name": "replay", "passed": False, "detail": "differs"}]


def test_the_suffixes_are_those_of_pictures_and_the_page() -> None:
    assert (*PICTURES, ".html") == SUFFIXES
