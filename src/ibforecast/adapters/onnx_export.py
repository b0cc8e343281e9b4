"""Export of a fitted model as one ONNX file; `onnx.py` describes its content, and runs it without PyTorch."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn
from torch.func import functional_call

from ibforecast._version import __version__
from ibforecast.adapters.onnx import FORECAST, computed, held
from ibforecast.adapters.onnx_file import BLANK, CARD, FINGERPRINT, Card, stamped
from ibforecast.core.errors import MissingExtraError, UsageError
from ibforecast.core.explanation import Explanation
from ibforecast.core.facts import ModelFacts
from ibforecast.core.files import write_atomically
from ibforecast.core.tokens import closed_to_zero
from ibforecast.core.window import Window
from ibforecast.engine import facts_of
from ibforecast.model.network import IBForecast
from ibforecast.zoo.saved import FittedModel

OPSET = 18


class Graph(nn.Module):
    """The network's forward pass, with an input that can replace each part of the explanation."""

    def __init__(self, network: IBForecast, facts: ModelFacts) -> None:
        super().__init__()
        self.network, self.outputs, self.context = network, computed(facts), held_context(facts)

    def forward(
        self,
        window: dict[str, Tensor],
        held: dict[str, Tensor],
        hold: Bool[Tensor, ""],
        replay: Bool[Tensor, ""],
        through: Bool[Tensor, ""],
        allowance: Int[Tensor, ""],
    ) -> tuple[Tensor, ...]:
        """Return the forecast and the arrays of the field table, from what the network itself reads or what is held."""
        network, shown = self.network, Window(**window)
        own: Explanation[Tensor] = functional_call(network, {"gate.allowance": allowance}, (shown,)).explanation
        # A graph has no branches: both sides are computed, and `torch.where` selects one.
        given = network.through(shown, _either(hold | through, held["held_mask"], own.mask)).explanation
        assert given is not None
        chosen: dict[str, Any] = {
            name: torch.where(hold, held[f"held_{name}"], getattr(given.context, name)) for name in self.context
        }
        context = replace(given.context, **chosen)
        # A held mask is kept as it is: a replay has no observations, and so its window has no complete token.
        mask = _either(hold, held["held_mask"], given.mask)
        _, deviation = network.decompose(shown, context)
        evidence = torch.where(replay, held["held_evidence"], closed_to_zero(mask, deviation))
        probability = torch.where(through, given.probability, own.probability)
        explanation = replace(own, mask=mask, evidence=evidence, probability=probability, context=context)
        return network.replay(explanation), *(row.of(explanation) for row in self.outputs)


def _either(
    condition: Bool[Tensor, ""], one: Bool[Tensor, "..."], other: Bool[Tensor, "..."]
) -> Bool[Tensor, "batch patch channel"]:
    """Return one of two masks; onnxruntime has no `where` for booleans."""
    return (condition & one) | (~condition & other)


def held_context(facts: ModelFacts) -> list[str]:
    """Return the names of the parts of the context that can be held."""
    return [row.name for row in held(facts) if row.part == "context"]


def export(fitted: FittedModel, path: Path, overwrite: bool = False) -> None:
    """Write the file, complete or not at all; the model does not change."""
    if path.exists() and not overwrite:
        raise UsageError("a model must not replace what is there", path, "choose another path, or pass overwrite=True")
    try:
        import onnx
        import onnxscript  # noqa: F401  (PyTorch's exporter needs it)
    except ImportError as error:
        raise MissingExtraError("onnx and onnxscript", "onnx") from error
    facts = facts_of(fitted)
    model = _traced(fitted.network, facts)
    for message in (*model.graph.node, *model.graph.input, *model.graph.output, *model.graph.initializer, model.graph):
        message.ClearField("metadata_props")  # source locations on the exporting machine
        message.ClearField("doc_string")
    model.graph.ClearField("value_info")
    defaults = {name: onnx.numpy_helper.from_array(value.numpy(), name) for name, value in _defaults(facts).items()}
    _make_optional(model.graph, defaults, facts.any_budget)
    card = Card(facts, {"ibforecast": __version__, "torch": torch.__version__, "onnx": onnx.__version__})
    onnx.helper.set_model_props(model, {CARD: card.to_json(), FINGERPRINT: BLANK})
    write_atomically(path, stamped(model.SerializeToString(deterministic=True)))


def _defaults(facts: ModelFacts) -> dict[str, Tensor]:
    """Return the defaults of optional inputs: a single zero for each array that can be held, and the allowance."""
    kinds = {"bool": torch.bool, "float32": torch.float32, "int64": torch.int64}
    zeros = {f"held_{row.name}": torch.zeros([1] * len(row.axes), dtype=kinds[row.kind]) for row in held(facts)}
    switches = {"hold": torch.tensor(False), "replay": torch.tensor(False), "through": torch.tensor(False)}
    return zeros | switches | {"allowance": torch.tensor(facts.allowance)}


def _traced(network: IBForecast, facts: ModelFacts) -> Any:
    """Return the graph that PyTorch's exporter makes."""
    config, defaults, batch = network.config, _defaults(facts), torch.export.Dim("batch")
    window = (2, config.look_back, config.channels)  # two, because the exporter takes a batch of one for a constant
    steps = config.look_back + config.horizon
    shown = {
        "values": torch.zeros(window),
        "observed": torch.ones(window, dtype=torch.bool),
        "phase": torch.zeros(2, steps, dtype=torch.int64),
    }
    if facts.covariates:
        shown["known"] = torch.zeros(2, steps, len(facts.covariates))
    zeros = {name: value for name, value in defaults.items() if name.startswith("held_")}
    rest = {name: value for name, value in defaults.items() if name not in zeros}
    with _quietly():
        program = torch.onnx.export(
            Graph(deepcopy(network), facts).eval().requires_grad_(False),
            (shown, zeros, *rest.values()),
            dynamo=True,
            opset_version=OPSET,
            input_names=[*shown, *zeros, *rest],
            output_names=[FORECAST, *(row.name for row in computed(facts))],
            dynamic_shapes=({name: {0: batch} for name in shown}, dict.fromkeys(zeros), *[None] * len(rest)),
            custom_translation_table={torch.ops.aten.sort.stable: _stable_sort},
            verbose=False,
        )
    assert program is not None
    model = program.model_proto
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param, (
        "part of the network fixed the size of the batch"
    )
    return model


def _stable_sort(self: Any, stable: bool | None = None, dim: int = -1, descending: bool = False) -> Any:
    """Sort stably in ONNX, with a TopK of everything: by its definition the lower index comes first among equals."""
    from onnxscript import opset18

    op: Any = opset18
    size = op.Gather(op.Shape(self), op.Constant(value_ints=[dim]))
    return op.TopK(self, size, axis=dim, largest=int(descending), sorted=1)


def _make_optional(graph: Any, defaults: dict[str, Any], any_budget: bool) -> None:
    """Set the defaults of inputs and leave their lengths open; a budget that cannot change is not an input."""
    for entry in graph.input:
        if entry.name in defaults:
            graph.initializer.append(defaults[entry.name])
            for number, axis in enumerate(entry.type.tensor_type.shape.dim):
                axis.dim_param = f"{entry.name}_{number}"
    kept = [entry for entry in graph.input if any_budget or entry.name != "allowance"]
    del graph.input[:]
    graph.input.extend(kept)


@contextmanager
def _quietly() -> Iterator[None]:
    """Silence exporter warnings that users cannot act on."""
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logger.setLevel(level)
