"""One window of the demo table in the four stages, each run by its own part of the network. Paper: Figure "arch"."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float, Float64

from ibforecast import IBForecaster, demo_table
from ibforecast.core.sizes import Sizes
from ibforecast.core.tokens import closed_to_zero
from ibforecast.engine import TorchEngine
from ibforecast_lab.plots.overview import Overview, draw
from ibforecast_lab.plots.records import Form
from ibforecast_lab.recipes import resolve

RECIPE, MOMENT = "paper-sparse", "2023-12-20 08:00"
"""The paper's recipe for explanation studies, and a moment of the test rows: the echo of an event has just begun."""

CHANNELS = ("load_kw", "wind_kw", "price_eur")
LOOK_BACK, HORIZON, CYCLE = 96, 24, 24
EPOCHS, BATCH = 12, 128


def figure(form: Form) -> bytes:
    """Fit a model to three channels of the demo table, and draw what its stages make of one window."""
    return draw(overview_of(fitted()), form)


def fitted(epochs: int = EPOCHS) -> IBForecaster:
    """Fit the paper's recipe to three channels of the demo table, in fewer epochs and smaller batches."""
    recipe = resolve(RECIPE, Sizes(LOOK_BACK, HORIZON, len(CHANNELS), CYCLE))
    shorter = replace(recipe, train=replace(recipe.train, epochs=epochs, batch=BATCH))
    model = IBForecaster(HORIZON, LOOK_BACK, cycle=CYCLE, channels=CHANNELS, recipe=shorter, device="cpu")
    return model.fit(_table())


def overview_of(model: IBForecaster) -> Overview:
    """Run the window through decomposition, scores, gates and readout, one after the other."""
    explained = model.explain(_table(), at=MOMENT)
    assert explained.truth is not None
    network, units = model.fitted.network, explained.units
    window = TorchEngine(model.fitted).window(explained.history, explained.phase, None)
    with torch.no_grad():
        context, deviation = network.decompose(window)
        logits = network.score(deviation)
        mask, probability = network.gate(logits, network.missing(window))
        evidence = closed_to_zero(mask, deviation)
        readout = network.readout(evidence, mask.to(evidence.dtype), context)
        forecast, expected = context.restore(readout), context.reference(LOOK_BACK + HORIZON)
    return Overview(
        title=f"One window of the demo table, {explained.at}",
        channels=explained.channels,
        history=explained.history,
        level=units.to_units(_array(context.level)[None])[0],
        scale=units.std * _array(context.scale),
        context=units.to_units(_array(expected)),
        deviation=_array(deviation),
        logits=_array(logits),
        probability=_array(probability),
        mask=mask[0].numpy(),
        evidence=_array(evidence),
        readout=_array(readout),
        forecast=units.to_units(_array(forecast)),
        truth=explained.truth,
        budget=explained.budget,
        allowance=int(network.gate.allowance),
    )


def _array(batch: Float[torch.Tensor, "1 ..."]) -> Float64[np.ndarray, "..."]:
    return batch[0].double().numpy()


def _table() -> pa.Table:
    return pa.table(demo_table().columns())
