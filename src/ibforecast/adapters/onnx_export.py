"""Writing a fitted model as one ONNX file; `onnx.py` says what is in it, and runs it without PyTorch."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.func import functional_call

from ibforecast._version import __version__
from ibforecast.adapters.onnx import OUTPUTS
from ibforecast.adapters.onnx_file import CARD, SEAL, UNSEALED, Card, sealed
from ibforecast.checks import facts_of
from ibforecast.core.context import Context
from ibforecast.core.errors import MissingExtraError, UsageError
from ibforecast.core.explanation import Explanation
from ibforecast.core.files import write_atomically
from ibforecast.core.tokens import closed_to_zero
from ibforecast.core.window import Window
from ibforecast.model.config import ModelConfig
from ibforecast.model.network import IBForecast
from ibforecast.zoo.saved import FittedModel

OPSET = 18


class Graph(nn.Module):
    """The network's forward pass with a place to hold each part of the explanation; the arguments are the inputs."""

    def __init__(self, network: IBForecast) -> None:
        super().__init__()
        self.network = network

    def forward(
        self,
        values: Float[Tensor, "batch look_back channel"],
        observed: Bool[Tensor, "batch look_back channel"],
        phase: Int[Tensor, "batch steps"],
        hold: Bool[Tensor, ""],
        held_level: Float[Tensor, "#batch #channel"],
        held_scale: Float[Tensor, "#batch #channel"],
        held_profile: Float[Tensor, "#cycle #channel"],
        held_mask: Bool[Tensor, "#batch #patch #channel"],
        replay: Bool[Tensor, ""],
        held_evidence: Float[Tensor, "#batch #look_back #channel"],
        allowance: Int[Tensor, ""],
    ) -> tuple[Tensor, ...]:
        """Return what `Outputs` names, in its order: the steps of `IBForecast.forward`."""
        network, window = self.network, Window(values, observed, phase)
        own = network.context(window)
        context = Context(
            level=torch.where(hold, held_level, own.level),
            scale=torch.where(hold, held_scale, own.scale),
            phase=phase,
            profile=torch.where(hold, held_profile, own.profile),
        )
        _, deviation = network.decompose(window, context)
        missing = network._missing(window)
        logits = network.score(deviation)
        chosen, probability = functional_call(network.gate, {"allowance": allowance}, (logits, missing))
        mask = (hold & held_mask) | (~hold & chosen)
        evidence = torch.where(replay, held_evidence, closed_to_zero(mask, deviation))
        forecast = network.replay(Explanation(mask, evidence, probability, missing, context))
        return forecast, mask, probability, missing, evidence, context.level, context.scale, context.profile


def export(fitted: FittedModel, path: Path, overwrite: bool = False) -> None:
    """Write the file whole; the model stays as it is."""
    if path.exists() and not overwrite:
        raise UsageError(f"a model must not replace what is there (got {path}); choose another path or overwrite")
    try:
        import onnx
        import onnxscript  # noqa: F401  (what PyTorch's exporter stands on)
    except ImportError as error:
        raise MissingExtraError("onnx and onnxscript", "onnx") from error
    fitted.require_plain("an ONNX file")
    config, layout, model = fitted.config, fitted.layout, _traced(fitted.network)
    for message in (*model.graph.node, *model.graph.input, *model.graph.output, *model.graph.initializer, model.graph):
        message.ClearField("metadata_props")  # where in whose files it came from
        message.ClearField("doc_string")
    model.graph.ClearField("value_info")
    defaults = {name: onnx.numpy_helper.from_array(value.numpy(), name) for name, value in _defaults(config).items()}
    _make_optional(model.graph, defaults, config.gate.any_budget)
    card = Card(
        facts=facts_of(fitted),
        frequency=str(layout.frequency),
        zone=layout.zone,
        by_row=layout.irregular == "by_row",
        origin=fitted.origin,
        missing_values=layout.missing_values,
        exported_with={"ibforecast": __version__, "torch": torch.__version__, "onnx": onnx.__version__},
    )
    onnx.helper.set_model_props(model, {CARD: card.to_json(), SEAL: UNSEALED})
    write_atomically(path, sealed(model.SerializeToString(deterministic=True)))


def _defaults(config: ModelConfig) -> dict[str, Tensor]:
    """The inputs that may be left out: of what can be held one zero, broadcast, and the budget's number of tokens."""
    return {
        "hold": torch.tensor(False),
        "held_level": torch.zeros(1, 1),
        "held_scale": torch.zeros(1, 1),
        "held_profile": torch.zeros(1, 1),
        "held_mask": torch.zeros(1, 1, 1, dtype=torch.bool),
        "replay": torch.tensor(False),
        "held_evidence": torch.zeros(1, 1, 1),
        "allowance": torch.tensor(config.allowance),
    }


def _traced(network: IBForecast) -> Any:
    """The graph as PyTorch's exporter has it."""
    config, given, batch = network.config, _defaults(network.config), torch.export.Dim("batch")
    window = (2, config.look_back, config.channels)  # two, because a batch of one would be taken for a constant
    shown = {
        "values": torch.zeros(window),
        "observed": torch.ones(window, dtype=torch.bool),
        "phase": torch.zeros(2, config.look_back + config.horizon, dtype=torch.int64),
    }
    with _quietly():
        programme = torch.onnx.export(
            Graph(deepcopy(network)).eval().requires_grad_(False),
            (*shown.values(), *given.values()),
            dynamo=True,
            opset_version=OPSET,
            input_names=[*shown, *given],
            output_names=OUTPUTS,
            dynamic_shapes=({0: batch},) * len(shown) + (None,) * len(given),
            custom_translation_table={torch.ops.aten.sort.stable: _stable_sort},
            verbose=False,
        )
    assert programme is not None
    model = programme.model_proto
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param, "part of the network took the batch for fixed"
    return model


def _stable_sort(self: Any, stable: bool | None = None, dim: int = -1, descending: bool = False) -> Any:
    """A stable sort in ONNX: TopK of everything, which by its definition puts the lower index first among equals."""
    from onnxscript import opset18

    op: Any = opset18
    size = op.Gather(op.Shape(self), op.Constant(value_ints=[dim]))
    return op.TopK(self, size, axis=dim, largest=int(descending), sorted=1)


def _make_optional(graph: Any, defaults: dict[str, Any], any_budget: bool) -> None:
    """Give inputs their defaults and leave their lengths open; a budget that cannot be turned is no input."""
    for given in graph.input:
        if given.name in defaults:
            graph.initializer.append(defaults[given.name])
            for number, axis in enumerate(given.type.tensor_type.shape.dim):
                axis.dim_param = f"{given.name}_{number}"
    kept = [given for given in graph.input if any_budget or given.name != "allowance"]
    del graph.input[:]
    graph.input.extend(kept)


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep the exporter's talk of its own future and of libraries it does without from users who can act on neither."""
    talker = logging.getLogger("torch.onnx._internal.exporter._registration")
    level = talker.level
    talker.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        talker.setLevel(level)
