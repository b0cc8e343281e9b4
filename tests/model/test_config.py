"""A configuration is valid once built; an invalid one is refused with rule, value and remedy."""

import re
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from ibforecast.core.errors import UsageError
from ibforecast.model.config import GateConfig, ModelConfig, ObjectiveConfig, ReadoutConfig

SIZES = {"look_back": 96, "horizon": 24, "channels": 7, "cycle": 24}
RULE_VALUE_REMEDY = r"^(?P<rule>.+) \(got (?P<value>.+)\); (?P<remedy>.+)$"


def refusal_of(kind: type[Any], /, **settings: Any) -> re.Match[str]:
    with pytest.raises(UsageError) as refusal:
        kind(**settings)
    match = re.match(RULE_VALUE_REMEDY, str(refusal.value))
    assert match, str(refusal.value)
    return match


@pytest.mark.parametrize(
    ("kind", "setting", "value"),
    [
        (GateConfig, "heads", 0),
        (GateConfig, "heads", -2),
        (GateConfig, "heads", 5),
        (GateConfig, "layers", 0),
        (GateConfig, "recent", -1),
        (GateConfig, "dropout", 1.0),
        (GateConfig, "dropout", -0.1),
        (GateConfig, "noise", -0.3),
        (GateConfig, "noise_until", 0.0),
        (GateConfig, "noise_until", 1.1),
        (GateConfig, "narrow_until", -0.1),
        (GateConfig, "narrow_until", 1.0),
        (ReadoutConfig, "width", 0),
        (ReadoutConfig, "dropout", 1.0),
        (ObjectiveConfig, "prior", 0.0),
        (ObjectiveConfig, "prior", 1.0),
        (ObjectiveConfig, "rate_weight", -0.1),
        (ObjectiveConfig, "budget_weight", float("nan")),
        (ObjectiveConfig, "contiguity_weight", float("inf")),
        (ObjectiveConfig, "consistency_weight", -1.0),
    ],
)
def test_a_setting_out_of_its_range_is_refused_with_its_value(kind: type[Any], setting: str, value: Any) -> None:
    match = refusal_of(kind, **{setting: value})
    assert "must" in match["rule"]
    assert setting in match["rule"] or setting.endswith("_weight")
    assert str(value) in match["value"]


@pytest.mark.parametrize("width", [0, -4])
def test_a_gate_network_without_width_is_refused(width: int) -> None:
    assert "width" in refusal_of(GateConfig, width=width)["rule"]


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("look_back", 0, "look_back=0"),
        ("horizon", -1, "horizon=-1"),
        ("channels", 0, "channels=0"),
        ("cycle", 0, "cycle=0"),
        ("patch_len", 0, "patch_len=0"),
        ("patch_len", 10, "patch_len=10, look_back=96"),
        ("patch_len", 97, "patch_len=97, look_back=96"),
        ("budget", 0.0, "budget=0.0"),
        ("budget", -0.2, "budget=-0.2"),
        ("budget", 1.01, "budget=1.01"),
        ("budget", float("nan"), "budget=nan"),
        ("budget", 0.01, "budget=0.01 of 56 tokens"),
        ("context_rate", 0.0, "0.0"),
    ],
)
def test_an_invalid_size_is_refused_with_its_value(setting: str, value: Any, message: str) -> None:
    match = refusal_of(ModelConfig, **SIZES | {setting: value})
    assert setting in match["rule"]
    assert match["value"] == message


def test_the_open_gate_and_a_budget_contradict_each_other() -> None:
    match = refusal_of(ModelConfig, **SIZES, budget=0.2, gate=GateConfig(kind="open"))
    assert "open" in match["rule"]
    assert match["value"] == "budget=0.2"
    ModelConfig(**SIZES, budget=1.0, gate=GateConfig(kind="open"))


def test_a_fixed_mask_needs_a_bias_to_be_learned() -> None:
    match = refusal_of(GateConfig, attention="none", recent=0)
    assert "recent" in match["rule"]
    assert match["value"] == "recent=0, every=0"
    GateConfig(attention="none", recent=1)
    GateConfig(attention="none", recent=0, every=5)


def test_a_static_gate_that_can_never_open_is_refused() -> None:
    assert "budget" in refusal_of(ModelConfig, **SIZES, budget=0.1, gate=GateConfig(kind="newest"))["rule"]


@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_only_the_phase_readout_may_be_cross_channel(kind: str) -> None:
    match = refusal_of(ReadoutConfig, kind=kind, cross_channel=True)
    assert "cross_channel" in match["rule"]
    assert match["value"] == kind
    ReadoutConfig(kind="phase", cross_channel=True)


@pytest.mark.parametrize("patch_len", [5, 7, 10, 11, 95, 96, 120])
def test_every_proposed_patch_length_is_accepted(patch_len: int) -> None:
    if 96 % patch_len == 0:
        ModelConfig(**SIZES, patch_len=patch_len)
        return
    remedy = refusal_of(ModelConfig, **SIZES, patch_len=patch_len)["remedy"]
    proposed = [int(number) for number in re.findall(r"\d+", remedy)]
    assert proposed
    for length in proposed:
        assert ModelConfig(**SIZES, patch_len=length).patches * length == 96


@pytest.mark.parametrize(
    "channels",
    [
        pytest.param(5, id="40-tokens"),
        pytest.param(862, id="6896-tokens"),
        pytest.param(
            9,
            id="72-tokens",
        ),
        pytest.param(15, id="120-tokens"),
    ],
)
def test_the_smallest_proposed_budget_is_accepted(channels: int) -> None:
    remedy = refusal_of(ModelConfig, **SIZES | {"channels": channels}, budget=1e-5)["remedy"]
    proposed = re.search(r"\d\.\d+", remedy)
    assert proposed
    assert ModelConfig(**SIZES | {"channels": channels}, budget=float(proposed[0])).allowance >= 1


@pytest.mark.parametrize(
    ("budget", "channels", "tokens", "allowed"),
    [(0.2, 7, 56, 11), (0.2, 5, 40, 8), (0.29, 25, 200, 58), (1.0, 3, 24, 24), (0.05, 3, 24, 1), (0.57, 25, 200, 114)],
)
def test_the_allowance_is_the_budget_in_tokens_rounded_down(
    budget: float, channels: int, tokens: int, allowed: int
) -> None:
    config = ModelConfig(**SIZES | {"channels": channels}, budget=budget)
    assert config.patches * channels == tokens
    assert config.allowance == allowed


@pytest.mark.parametrize(
    "patch_len",
    [
        12,
        16,
        pytest.param(8),
        pytest.param(32),
    ],
)
def test_the_smallest_proposed_budget_for_the_newest_patches_is_accepted(patch_len: int) -> None:
    settings = {**SIZES, "patch_len": patch_len, "gate": GateConfig(kind="newest")}
    remedy = refusal_of(ModelConfig, **settings, budget=0.05)["remedy"]
    proposed = re.search(r"\d\.\d+", remedy)
    assert proposed
    assert ModelConfig(**settings, budget=float(proposed[0])).allowance >= 7


def test_a_configuration_cannot_be_changed() -> None:
    config = ModelConfig(**SIZES)
    with pytest.raises(FrozenInstanceError):
        config.budget = 0.9  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        config.gate.noise = 1.0  # type: ignore[misc]
