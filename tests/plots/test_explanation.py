"""The figure of one account, still and interactive."""

import builtins
import struct
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from ibforecast.core.account import Account
from ibforecast.core.errors import MissingExtraError, UsageError
from ibforecast.plots import interactive, static
from ibforecast.plots.explanation import SUFFIXES, draw, figure
from ibforecast.plots.extra import needs


def synthetic_account(
    channels: int = 7,
    *,
    names: tuple[str, ...] | None = None,
    look_back: int = 96,
    horizon: int = 96,
    patch_len: int = 8,
    cycle: int = 24,
    with_truth: bool = True,
    with_missing: bool = True,
    seed: int = 0,
) -> Account:
    """An account of seasonal channels with a bump here and there, which is what the open tokens point at."""
    random = np.random.default_rng(seed)
    names = names or tuple(f"channel {index}" for index in range(channels))
    channels, steps, patches = len(names), look_back + horizon, look_back // patch_len
    phase = np.arange(steps, dtype=np.int64) + 5
    angle = 2 * np.pi * np.arange(cycle)[:, None] / cycle
    strength = random.uniform(0.1, 1.4, channels)
    shift = random.uniform(0, 2 * np.pi, channels)
    profile = strength * (np.sin(angle + shift) + 0.3 * np.sin(2 * angle + 2 * shift))
    level, scale = random.normal(0, 0.5, channels), random.uniform(0.4, 1.2, channels)
    mean, std = 10.0 ** random.integers(-2, 5, channels), 10.0 ** random.integers(-3, 4, channels)
    mask = random.random((patches, channels)) < 0.12
    probability = np.where(mask, random.uniform(0.5, 1, mask.shape), random.uniform(0, 0.5, mask.shape) ** 2)
    missing = ~mask & (random.random(mask.shape) < 0.05) if with_missing else np.zeros_like(mask)
    bump = np.repeat(mask * random.normal(0, 1.6, mask.shape), patch_len, axis=0)
    wander = np.cumsum(random.normal(0, 0.12, (steps, channels)), axis=0) * 0.4
    deviation = random.normal(0, 0.12, (steps, channels)) + wander
    deviation[:look_back] += bump
    seasonal = profile[phase % cycle]
    values = mean + std * (level + scale * (seasonal + deviation))
    guess = mean + std * (level + scale * (seasonal + 0.8 * wander))
    history = values[:look_back].copy()
    history[np.repeat(missing, patch_len, axis=0)] = np.nan
    start = datetime(2018, 6, 24, 5)
    return Account(
        weights_sha256="0" * 64,
        computed_with={"torch": "2"},
        budget=0.15,
        patch_len=patch_len,
        frequency="1h",
        channels=names,
        times=tuple(f"{start + timedelta(hours=step):%Y-%m-%d %H:%M:%S}" for step in range(steps)),
        history=history,
        forecast=guess[look_back:],
        truth=values[look_back:] if with_truth else None,
        mean=mean,
        std=std,
        level=level.astype(np.float32),
        scale=scale.astype(np.float32),
        phase=phase,
        profile=profile.astype(np.float32),
        mask=mask,
        probability=probability.astype(np.float32),
        missing=missing,
        evidence=(np.repeat(mask, patch_len, axis=0) * deviation[:look_back]).astype(np.float32),
    )


class _Resources(HTMLParser):
    """Everything a page would fetch."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.found += [value for name, value in attrs if name in {"src", "href"} and value]


def png_size(path: Path) -> tuple[int, int]:
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    return width, height


def without(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """Make a library look as if it had never been installed."""
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    real = builtins.__import__

    def refuse(name: str, *rest: object, **more: object) -> object:
        if name.partition(".")[0] == library:
            raise ModuleNotFoundError(f"No module named {library!r}", name=name)
        return real(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", refuse)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("with_truth", [True, False])
@pytest.mark.parametrize("with_missing", [True, False])
def test_a_file_is_written_for_every_suffix(tmp_path: Path, suffix: str, with_truth: bool, with_missing: bool) -> None:
    account = synthetic_account(3, with_truth=with_truth, with_missing=with_missing)
    draw(account, tmp_path / f"window{suffix}")
    assert [path.name for path in tmp_path.iterdir()] == [f"window{suffix}"]
    assert (tmp_path / f"window{suffix}").stat().st_size > 1000


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_account_gives_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    for name in ("one", "other"):
        draw(synthetic_account(2), tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"other{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_drawing_leaves_the_account_and_matplotlib_as_they_were(tmp_path: Path, suffix: str) -> None:
    account = synthetic_account(2)
    before, settings = account.to_json(), dict(matplotlib.rcParams)
    draw(account, tmp_path / f"window{suffix}")
    assert account.to_json() == before
    assert dict(matplotlib.rcParams) == settings


def test_a_users_matplotlib_settings_do_not_change_the_picture(tmp_path: Path) -> None:
    draw(synthetic_account(2), tmp_path / "plain.png")
    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 30, "savefig.bbox": "tight"}):
        draw(synthetic_account(2), tmp_path / "styled.png")
        assert matplotlib.rcParams["font.size"] == 30
    assert (tmp_path / "plain.png").read_bytes() == (tmp_path / "styled.png").read_bytes()


def test_more_channels_make_a_taller_picture_of_the_same_width_with_slimmer_rows(tmp_path: Path) -> None:
    sizes = {}
    for channels in (7, 50):
        draw(synthetic_account(channels, seed=1), tmp_path / f"{channels}.png")
        sizes[channels] = png_size(tmp_path / f"{channels}.png")
    assert sizes[7][0] == sizes[50][0] == 1600
    assert 0.75 < sizes[7][1] / sizes[7][0] < 1
    assert 2.5 < sizes[50][1] / sizes[50][0] < 3.5
    assert sizes[50][1] / 50 > 80


def test_a_very_tall_picture_stays_within_what_png_can_hold() -> None:
    sheet = static._Sheet(rows=2000, names=1.0, numbers=1.0)
    assert sheet.height * min(static._DPI, static._TALLEST / sheet.height) < 2**16


def test_an_svg_names_every_channel_as_text(tmp_path: Path) -> None:
    account = synthetic_account(names=("HUFL", "a & b", "cost $x_1$ in $", "naïve"))
    draw(account, tmp_path / "window.svg")
    text = (tmp_path / "window.svg").read_text(encoding="utf-8")
    for name in ("HUFL", "a &amp; b", "cost $x_1$ in $", "naïve"):
        assert f">{name}</text>" in text
    assert account.at in text
    assert "budget 15 %" in text


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_a_still_picture_carries_no_date(tmp_path: Path, suffix: str) -> None:
    draw(synthetic_account(1), tmp_path / f"window{suffix}")
    content = (tmp_path / f"window{suffix}").read_bytes()
    assert b"<dc:date>" not in content
    assert b"tEXt" not in content


def test_a_page_fetches_nothing_and_says_it_all_in_words_too(tmp_path: Path) -> None:
    account = synthetic_account(3)
    draw(account, tmp_path / "window.html")
    page = (tmp_path / "window.html").read_text(encoding="utf-8")
    resources = _Resources(page)
    assert resources.found == []
    assert not resources.tags & {"link", "iframe", "img"}
    assert account.in_words().splitlines()[1] in page
    assert "sendDataToCloud" not in page[page.index("Plotly.newPlot(") :]


def test_a_page_treats_names_as_text_and_not_as_markup(tmp_path: Path) -> None:
    draw(synthetic_account(names=("<script src='http://evil'></script>", "<b>bold</b>")), tmp_path / "window.html")
    page = (tmp_path / "window.html").read_text(encoding="utf-8")
    assert _Resources(page).found == []
    assert "<b>bold</b>" not in page


def test_hovering_tells_time_value_deviation_and_probability() -> None:
    account = synthetic_account(2)
    traces = {trace.name: trace for trace in interactive.figure(account).data}
    text = traces["look-back"].hovertext[account.look_back + 1 + 3]
    assert account.channels[1] in text
    assert account.times[3] in text
    assert f"value {account.history[3, 1]:.5g}" in text
    assert f"deviation {account.deviation[3, 1]:+.3g}" in text
    assert f"probability {account.probability[0, 1]:.3f}" in text
    assert len(traces["open (read)"].hovertext) == account.open_count


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_channel_without_a_single_value_is_still_drawn(tmp_path: Path, suffix: str) -> None:
    account = synthetic_account(2, with_missing=False)
    history, mask, missing = account.history.copy(), account.mask.copy(), account.missing.copy()
    history[:, 0], mask[:, 0], missing[:, 0] = np.nan, False, True
    draw(replace(account, history=history, mask=mask, missing=missing), tmp_path / f"window{suffix}")
    assert (tmp_path / f"window{suffix}").exists()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_horizon_of_one_step_and_a_cycle_of_one_are_still_drawn(tmp_path: Path, suffix: str) -> None:
    draw(synthetic_account(1, horizon=1, cycle=1), tmp_path / f"window{suffix}")
    assert (tmp_path / f"window{suffix}").exists()


def test_the_figure_has_a_row_and_a_profile_per_channel_on_shared_axes_and_one_legend() -> None:
    account = synthetic_account(7)
    drawing = figure(account)
    assert len(drawing.axes) == 14
    assert len(drawing.legends) == 1
    rows, profiles = drawing.axes[:7], drawing.axes[7:]
    assert {axes.get_xlim() for axes in rows} == {(-0.5, len(account.times) - 0.5)}
    assert {axes.get_ylim() for axes in profiles} == {profiles[0].get_ylim()}
    assert all(2 <= len(axes.get_yticks()) <= 3 for axes in rows)


def test_every_open_and_missing_token_is_shaded_where_it_lies() -> None:
    account = synthetic_account(7)
    for row, axes in enumerate(figure(account).axes[:7]):
        for cells, hatched in ((account.mask, False), (account.missing, True)):
            starts = sorted(patch.get_x() for patch in axes.patches if bool(patch.get_hatch()) == hatched)
            assert starts == [patch * account.patch_len - 0.5 for patch in np.flatnonzero(cells[:, row])]


def test_no_number_beside_the_profiles_leaves_the_sheet() -> None:
    account = synthetic_account(3)
    drawing = figure(replace(account, profile=(0.006 * account.profile / np.abs(account.profile).max())))
    renderer = drawing.canvas.get_renderer()  # type: ignore[attr-defined]
    numbers = [label for axes in drawing.axes[3:] for label in axes.get_yticklabels()]
    assert "−0.005" in {label.get_text() for label in numbers}
    assert all(label.get_window_extent(renderer).x1 < drawing.bbox.x1 - 4 for label in numbers)


def test_no_text_in_the_left_margin_leaves_the_sheet_or_touches_another() -> None:
    long = tuple(f"plant_03_building_{index}_floor_2_temperature_sensor" for index in range(9))
    drawing = figure(synthetic_account(names=(*long, "OT", "WWWWWWWWWWWWWWWWW", "zone 12 electricity"), seed=1))
    renderer = drawing.canvas.get_renderer()  # type: ignore[attr-defined]
    for axes in drawing.axes[:12]:
        (name,) = axes.texts
        numbers = [label.get_window_extent(renderer) for label in axes.get_yticklabels()]
        box = name.get_window_extent(renderer)
        assert box.x0 >= 0
        assert all(box.x1 <= number.x0 for number in numbers)
        assert not any(one.overlaps(other) for one, other in pairwise(numbers))


@pytest.mark.parametrize("name", ["window.pdf", "window", "window.png.bak"])
def test_an_unknown_suffix_is_refused_with_the_allowed_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"\.png, \.svg or \.html \(got 'window") as refusal:
        draw(synthetic_account(1), tmp_path / name)
    assert name in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


def test_a_suffix_may_be_written_in_capitals_and_a_path_as_a_string(tmp_path: Path) -> None:
    draw(synthetic_account(1), str(tmp_path / "window.PNG"))
    assert png_size(tmp_path / "window.PNG")[0] == 1600


@pytest.mark.parametrize(("suffix", "library"), [(".png", "matplotlib"), (".svg", "matplotlib"), (".html", "plotly")])
def test_a_missing_library_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, library: str
) -> None:
    account = synthetic_account(1)
    with monkeypatch.context() as patched:
        without(patched, library)
        with pytest.raises(MissingExtraError, match=rf"needs {library}.*pip install 'ibforecast\[plot\]'"):
            draw(account, tmp_path / f"window{suffix}")
    assert list(tmp_path.iterdir()) == []


def test_a_library_that_is_there_but_broken_speaks_for_itself() -> None:
    with pytest.raises(ModuleNotFoundError, match="kiwisolver") as error, needs("matplotlib"):
        raise ModuleNotFoundError("No module named 'kiwisolver'", name="kiwisolver")
    assert not isinstance(error.value, MissingExtraError)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_failure_leaves_an_older_file_whole_and_nothing_beside_it(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"window{suffix}"
    path.write_bytes(b"older")
    broken = replace(synthetic_account(2), phase=np.arange(3, dtype=np.int64))
    with pytest.raises(ValueError):
        draw(broken, path)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"older"]
