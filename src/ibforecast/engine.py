"""A fitted model that PyTorch runs on one window: the `Engine` for `core.verification`."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from ibforecast.core.devices import computing_with
from ibforecast.core.explanation import Explanation, Forecast
from ibforecast.core.facts import ModelFacts
from ibforecast.core.standardiser import Standardiser
from ibforecast.core.tokens import closed_to_zero
from ibforecast.core.window import Window
from ibforecast.layers.apart import Apart
from ibforecast.zoo.saved import FittedModel

Entering = tuple[
    Float64[np.ndarray, "look_back channel"], Int64[np.ndarray, " steps"], Float64[np.ndarray, "steps covariate"] | None
]
"""What a window is computed from: (history, phase, known)."""

MISSING = 0.02
"""The share of values that are missing in half of the windows of a trial."""


@dataclass(frozen=True)
class TorchEngine:
    """A fitted model that computes with a number of threads; None: as many as PyTorch is set to."""

    fitted: FittedModel
    threads: int | None = None

    @property
    def facts(self) -> ModelFacts:
        """The facts about the model."""
        return facts_of(self.fitted)

    def at_budget(self, budget: float | None) -> "TorchEngine":
        """Return the same model under another budget, if it was trained for any budget."""
        return replace(self, fitted=self.fitted.at_budget(budget))

    def variants(self) -> list["TorchEngine"]:
        """Return the model with each number of threads this machine can use: the last bits depend on it."""
        counts = dict.fromkeys([torch.get_num_threads(), 1, *(2**power for power in range(1, 9))])
        return [replace(self, threads=count) for count in counts if count <= (os.cpu_count() or 1)]

    def run(
        self,
        history: Float64[np.ndarray, "look_back channel"],
        phase: Int64[np.ndarray, " steps"],
        known: Float64[np.ndarray, "steps covariate"] | None,
    ) -> tuple[Explanation[np.ndarray], Float64[np.ndarray, "horizon channel"]]:
        """Run the whole model on values in the table's units; return its explanation and forecast."""
        with self._computing():
            forecast: Forecast = self.fitted.network(self.window(history, phase, known))
            assert forecast.explanation is not None
            return forecast.explanation.numpy().window(0), self._in_units(forecast.values)

    def run_together(
        self, windows: Sequence[Entering]
    ) -> tuple[Explanation[np.ndarray], Float64[np.ndarray, "batch horizon channel"]]:
        """Run the model on several windows in one pass; return their explanations and forecasts as a batch.

        The bits are those of `run`, if `keeps_bits`.
        """
        histories, phases, known = zip(*windows, strict=True)
        covariates = None if known[0] is None else np.stack(known)
        with self._computing(), Apart(len(windows)):
            forecast: Forecast = self.fitted.network(self._batch(np.stack(histories), np.stack(phases), covariates))
        assert forecast.explanation is not None
        return forecast.explanation.numpy(), self._each_in_units(forecast.values)

    def keeps_bits(self, most: int) -> bool:
        """Return whether `most` random windows, in passes of 2, 4, 8 and so on, get the bits each has by itself."""
        random, facts = np.random.default_rng(0), self.facts
        windows: list[Entering] = []
        for number in range(most):
            history = facts.units.to_units(random.normal(size=(facts.look_back, len(facts.channels))))
            history[random.random(history.shape) < MISSING * (number % 2)] = np.nan
            known = None
            if facts.known_units is not None:
                known = facts.known_units.to_units(random.normal(size=(facts.steps, len(facts.covariates))))
            windows.append((history, (random.integers(facts.period) + np.arange(facts.steps)) % facts.period, known))
        alone = [self.run(*window) for window in windows]
        for count in sizes(most):
            explanations, values = self.run_together(windows[:count])
            for number, (explanation, forecast) in enumerate(alone[:count]):
                pairs = zip(explanations.window(number).arrays(), explanation.arrays(), strict=True)
                same = all(one.tobytes() == other.tobytes() for (_, one), (_, other) in pairs)
                if not (same and values[number].tobytes() == forecast.tobytes()):
                    return False
        return True

    def replay(self, explanation: Explanation[np.ndarray]) -> Float64[np.ndarray, "horizon channel"]:
        """Compute the forecast from only an explanation."""
        with self._computing():
            return self._in_units(self.fitted.network.replay(tensors(explanation)))

    def hold(
        self, history: Float64[np.ndarray, "look_back channel"], explanation: Explanation[np.ndarray]
    ) -> Float64[np.ndarray, "horizon channel"]:
        """Compute the forecast from these values, with the context and the mask of an explanation."""
        held = tensors(explanation)
        with self._computing():
            deviation = self.deviation(history, explanation)
            return self._in_units(
                self.fitted.network.replay(replace(held, evidence=closed_to_zero(held.mask, deviation)))
            )

    def through(
        self,
        history: Float64[np.ndarray, "look_back channel"],
        phase: Int64[np.ndarray, " steps"],
        known: Float64[np.ndarray, "steps covariate"] | None,
        mask: Bool[np.ndarray, "patch channel"],
    ) -> tuple[Explanation[np.ndarray], Float64[np.ndarray, "horizon channel"]]:
        """Run the model on these values through a given mask; level and scale are computed again."""
        with self._computing():
            forecast = self.fitted.network.through(
                self.window(history, phase, known), torch.from_numpy(np.array(mask))[None]
            )
            assert forecast.explanation is not None
            return forecast.explanation.numpy().window(0), self._in_units(forecast.values)

    def deviation(
        self, history: Float64[np.ndarray, "look_back channel"], explanation: Explanation[np.ndarray]
    ) -> Float[Tensor, "1 look_back channel"]:
        """Return the deviation of a history from the context of an explanation; zero where a value is missing."""
        window = self.window(history, explanation.context.phase, None)
        with torch.no_grad():
            _, deviation = self.fitted.network.decompose(window, tensors(explanation).context)
        left: Tensor = deviation
        return left

    def window(
        self,
        history: Float64[np.ndarray, "look_back channel"],
        phase: Int64[np.ndarray, " steps"],
        known: Float64[np.ndarray, "steps covariate"] | None,
    ) -> Window:
        """Return a batch of one window from values and known covariates in the table's units."""
        return self._batch(history[None], phase[None], None if known is None else known[None])

    def _batch(
        self,
        histories: Float64[np.ndarray, "batch look_back channel"],
        phases: Int64[np.ndarray, "batch steps"],
        known: Float64[np.ndarray, "batch steps covariate"] | None,
    ) -> Window:
        fitted = self.fitted
        values = torch.from_numpy(fitted.standardiser.standardise(histories)).float()
        ahead = None
        if known is not None and fitted.known is not None:
            ahead = torch.from_numpy(fitted.known.standardise(known)).float()
        # Not nan_to_num, which would replace a value too large for single precision by another number.
        absent = values.isnan()
        return Window(values.masked_fill(absent, 0.0), ~absent, torch.tensor(phases), known=ahead)

    def _in_units(self, values: Float[Tensor, "1 horizon channel"]) -> Float64[np.ndarray, "horizon channel"]:
        return np.asarray(self._each_in_units(values)[0])

    def _each_in_units(
        self, values: Float[Tensor, "batch horizon channel"]
    ) -> Float64[np.ndarray, "batch horizon channel"]:
        return in_units(values, self.fitted.standardiser, self.fitted.config.past)

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """Compute without gradients, and with this engine's number of threads."""
        with computing_with(self.threads), torch.no_grad():
            yield


def tensors(explanation: Explanation[np.ndarray]) -> Explanation[Tensor]:
    """Return the explanation of one window as a batch of tensors."""
    return explanation.map(lambda _, array: torch.from_numpy(np.array(array))).batch()


def facts_of(fitted: FittedModel) -> ModelFacts:
    """Return the facts that explanations of a model must agree with."""
    config, layout = fitted.config, fitted.layout
    facts = ModelFacts(
        weights_sha256=fitted.weights_sha256,
        channels=fitted.channels,
        past=layout.past,
        covariates=layout.future,
        look_back=config.look_back,
        horizon=config.horizon,
        patch_len=config.patch_len,
        cycles=config.cycles,
        frequency=str(layout.frequency),
        zone=layout.zone,
        by_row=layout.irregular == "by_row",
        even=fitted.even,
        origin=fitted.origin,
        numbered=layout.numbered,
        missing_values=layout.missing_values,
        budget=config.budget,
        any_budget=config.gate.any_budget,
        sealed=config.sealed,
        chooses=config.chooses,
        anchored=config.anchored,
        prior=config.objective.prior,
        units=fitted.standardiser,
        known_units=fitted.known,
        limits=fitted.limits,
        zero_at=layout.zero_at,
    )
    return facts.settled()


def sizes(most: int) -> list[int]:
    """Return the numbers of windows of one pass: 2, 4, 8 and so on, up to `most`."""
    return [2**power for power in range(1, most.bit_length())]


def in_units(
    values: Float[Tensor, "batch horizon channel"], units: Standardiser, past: int = 0
) -> Float64[np.ndarray, "batch horizon channel"]:
    """Return the forecasts of a batch in the table's units; NaN for the last `past` channels."""
    forecast = units.to_units(values.double().numpy())
    forecast[..., forecast.shape[-1] - past :] = np.nan
    return forecast + 0.0  # turns -0.0 into 0.0: a document does not keep the sign of zero
