"""Figures of gates, cost and growth: the same bytes every time."""

import re
from collections.abc import Callable

import matplotlib
import pytest

from ibforecast_lab.plots import channels, cost, gates
from ibforecast_lab.plots.records import FORMS, Form

EXPLAINERS = {
    "native": (1.02, 0.93),
    "occlusion": (46.0, 0.81),
    "timing_ten": (148.0, 0.65),
    "timing_two": (149.0, 0.64),
}
POINTS = [
    cost.CostPoint(name, device, taken * factor, score, emphasised=name == "native")
    for name, (taken, score) in EXPLAINERS.items()
    for device, factor in (("GPU", 1.0), ("CPU", 1.3))
]
GATES = gates.GatePicture(
    title="Gates of one window",
    where="somewhere",
    meaning="probability",
    patches=["-4 to -3", "-2 to -1"],
    channels=["channel 1", "channel 2", "channel 3"],
    values=[[0.0, 0.5, 0.98], [0.12, 0.25, 1.0]],
    mask=[[0, 0, 1], [0, 0, 1]],
)
TIME = channels.Growth("NVIDIA H200", [137, 862], [0.01, 0.06], ["10 ms", "60 ms"], [0.01, 0.063])
MEMORY = channels.Growth("NVIDIA H200", [137, 862], [1e9, 7e9], ["1 GiB", "7 GiB"], [1e9, 6.3e9])

PICTURES: dict[str, Callable[[Form], bytes]] = {
    "cost": lambda form: cost.draw({"ETTh1": POINTS, "Weather": POINTS[:3]}, form),
    "gates": lambda form: gates.draw([GATES], form),
    "channels": lambda form: channels.draw([TIME], [MEMORY], form),
}


def texts(svg: bytes) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg.decode())


@pytest.mark.parametrize("name", list(PICTURES))
@pytest.mark.parametrize("form", FORMS)
def test_a_picture_has_the_requested_form_and_ignores_the_users_settings(name: str, form: Form) -> None:
    first = PICTURES[name](form)
    assert first.startswith(b"\x89PNG" if form == "png" else b"<?xml")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path"}):
        assert PICTURES[name](form) == first


def test_every_explainer_is_named_once_in_each_panel_and_every_device_in_the_legend() -> None:
    shown = texts(PICTURES["cost"]("svg"))
    assert shown.count("native") == 2
    assert shown.count("timing ten") == shown.count("timing two") == 1
    assert {"timed on a GPU", "timed on a CPU", "ETTh1", "Weather"} <= set(shown)


def test_names_of_close_points_touch_neither_each_other_nor_a_point() -> None:
    places = [(100.0, 100.0), (102.0, 101.0), (101.0, 99.0), (100.0, 103.0)]
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in places]
    for x, y in places:
        box, _ = cost._free_place(x, y, 60.0, 10.0, taken, (0.0, 0.0, 300.0, 200.0))
        assert not any(cost._touch(box, other) for other in taken)
        taken.append(box)


def test_a_single_explainer_and_equal_scores_can_be_drawn() -> None:
    assert "native" in texts(cost.draw({"ETTh1": POINTS[:1]}, "svg"))
    assert cost.draw({"ETTh1": [cost.CostPoint("chance", "mps", 0.01, 0.0)] * 2}, "png")


def test_gates_are_drawn_with_their_values_channels_and_lags() -> None:
    shown = texts(PICTURES["gates"]("svg"))
    assert {"0.12", "0.98", "1.00", "channel 3", "−4 to −3", "probability", "somewhere"} <= set(shown)
    assert "Gates of one window" in shown


def test_only_open_gates_are_outlined() -> None:
    outline = "stroke: #d55e00"
    assert PICTURES["gates"]("svg").decode().count(outline) == 2
    closed = gates.GatePicture(**{**vars(GATES), "mask": None})
    assert outline not in gates.draw([closed], "svg").decode()


def test_several_pictures_of_gates_make_one_panel_each() -> None:
    other = gates.GatePicture("Other gates", "elsewhere", "frequency", ["-4 to -1"], ["channel 1"], [[0.31]])
    shown = texts(gates.draw([GATES, other], "svg"))
    assert {"Gates of one window", "somewhere", "probability", "0.98", "−4 to −3"} <= set(shown)
    assert {"Other gates", "elsewhere", "frequency", "0.31", "−4 to −1"} <= set(shown)
    assert shown.count("channel 1") == 2


def test_a_picture_of_hundreds_of_channels_has_a_bounded_height() -> None:
    many = gates.GatePicture("t", "w", "m", ["-2 to -1"], [f"channel {n}" for n in range(500)], [[0.5] * 500])
    svg = gates.draw([many], "svg").decode()
    (height,) = re.findall(r'height="([\d.]+)pt"', svg)
    assert float(height) < 72 * 25
    assert 40 <= svg.count("channel ") <= 60


def test_growth_is_drawn_with_its_numbers_and_a_note_if_memory_is_unknown() -> None:
    shown = texts(PICTURES["channels"]("svg"))
    assert {"10 ms", "7 GiB", "NVIDIA H200", "in proportion to the channels", "137", "862"} <= set(shown)
    assert "measured on a GPU only: not run" in texts(channels.draw([TIME], [], "svg"))
