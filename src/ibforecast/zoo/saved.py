"""A fitted model as a folder: weights as safetensors, everything else as JSON; loading never runs code."""

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Bool
from safetensors import SafetensorError
from safetensors.torch import load as tensors_from
from safetensors.torch import save as tensors_to
from torch.overrides import TorchFunctionMode

from ibforecast._version import __version__
from ibforecast.core import document
from ibforecast.core.anchors import in_words
from ibforecast.core.calendar import Frequency
from ibforecast.core.contracts import Predictor
from ibforecast.core.errors import ModelFileError, UsageError, require
from ibforecast.core.files import sha256, write_atomically
from ibforecast.core.folders import new_folder, put_in_place, sweep
from ibforecast.core.limits import Limits
from ibforecast.core.standardiser import Standardiser
from ibforecast.core.tokens import spread
from ibforecast.data.splits import Split
from ibforecast.data.tables import Layout
from ibforecast.evaluate.accuracy import Limited
from ibforecast.evaluate.conformal import LEVELS, Calibration
from ibforecast.model.config import ModelConfig
from ibforecast.model.network import IBForecast
from ibforecast.model.reading import SealedForecast, network_of
from ibforecast.train.config import TrainConfig
from ibforecast.zoo.configs import build
from ibforecast.zoo.recipes import Recipe
from ibforecast.zoo.stages import Contest, NoContest, Trained

FORMAT, VERSION = "ibforecast.model", 1
DOCUMENT, WEIGHTS, INTERVALS = "model.json", "weights.safetensors", "intervals.safetensors"
FACTORIES = (torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.arange)
SLACK = 1_000_000
"""How many numbers a network may use, while it is built, in addition to twice its weights."""


@dataclass(frozen=True)
class Behind:
    """A channel in which repeating the last `naive_cycle` steps is better than the model on validation windows.

    Both mean absolute errors are in the units of the channel.
    """

    channel: str
    mae: float
    naive_mae: float
    naive_cycle: int


@dataclass(frozen=True)
class TrainingSummary:
    """How a model was trained."""

    recipe: str
    recipe_sha256: str
    data_sha256: str
    rows: int
    seed: int
    device: str
    seconds: float
    windows: int
    epochs: int
    best_epoch: int
    validation_error: float
    schedule: TrainConfig | None = None
    contest: Contest | None = None
    no_contest: NoContest | None = None
    """Why the contest of the recipe has no outcome; None if it has one, or if the recipe has none."""

    stopped: bool = False
    """Whether training was stopped before its schedule ended."""

    behind: tuple[Behind, ...] = ()
    """The channels that a naive forecast describes better by more than `fitting.TOLERATED`, the worst first."""

    ibforecast_version: str = __version__
    torch_version: str = torch.__version__
    python_version: str = platform.python_version()

    @classmethod
    def of(
        cls,
        trained: Trained,
        recipe: Recipe,
        seed: int,
        device: str,
        seconds: float,
        windows: int,
        data: str,
        rows: int,
    ) -> "TrainingSummary":
        """Summarise the training of a recipe; `data` is the fingerprint of the training table with this many rows."""
        run = trained.training
        return cls(
            recipe=recipe.name,
            recipe_sha256=recipe.sha256,
            data_sha256=data,
            rows=rows,
            seed=seed,
            device=device,
            seconds=round(seconds, 3),
            windows=windows,
            epochs=len(run.history),
            best_epoch=run.best_epoch,
            validation_error=run.best_error,
            stopped=run.stopped,
            schedule=trained.recipe.train,
            contest=trained.contest,
            no_contest=trained.no_contest,
        )


@dataclass(frozen=True)
class FittedModel:
    """The network, and what is needed to use it on another table: names, units, calendar, split."""

    network: IBForecast
    standardiser: Standardiser
    layout: Layout
    origin: str
    """The first moment of the training table."""

    split: Split
    summary: TrainingSummary
    even: bool = True
    """Whether the training rows followed each other in even steps, so that a time gives the number of its row."""

    known: Standardiser | None = None
    """Units of the covariates known ahead, if there are any; their usual value is 0."""

    limits: Limits | None = None
    """The limits of its forecasts; None if there are none."""

    calibration: Calibration | None = None
    """The widths of its intervals; a model that was trained elsewhere has none."""

    fitted_budget: float | None = None
    """The budget that it was fitted with, if it is used under another one."""

    def __post_init__(self) -> None:
        """Refuse names, units and times that do not match the network."""
        config, layout, channels = self.config, self.layout, self.layout.channels or ()
        facts = {
            "channels": (len(channels), config.channels),
            "past channels": (channels[len(channels) - len(layout.past) :], layout.past),
            "number of past channels": (len(layout.past), config.past),
            "covariates known ahead": (len(layout.future), config.future),
            "units of covariates": ((0,) if self.known is None else self.known.mean.shape, (config.future,)),
            "units": (self.standardiser.mean.shape, (config.channels,)),
            "spreads": (self.standardiser.std.shape, (config.channels,)),
            "spreads of covariates": ((0,) if self.known is None else self.known.std.shape, (config.future,)),
        }
        for name, (there, needed) in facts.items():
            require(there == needed, f"the {name} of a model must be those of its network", there, f"give {needed}")
        for units in filter(None, (self.standardiser, self.known)):
            fits = np.isfinite(units.mean).all() and np.isfinite(units.std).all() and (units.std > 0).all()
            require(bool(fits), "the units of a model must be finite, and spreads positive", "others", "fit again")
        flaw = "" if self.limits is None else self.limits.flaw(config.channels)
        require(not flaw, "the limits of a model must be valid", flaw, "fit again")
        require(
            layout.frequency is not None and str(Frequency.parse(layout.frequency)) == layout.frequency,
            "a model must know its frequency",
            repr(layout.frequency),
            "fit again",
        )
        require(
            isinstance(self.origin, str) and not np.isnat(np.datetime64(self.origin, "us")),
            "a model must know its first moment",
            "none",
            "fit again",
        )
        require(self.even in (True, False), "a model must know whether its rows are even", repr(self.even), "fit again")
        ends = (self.split.train_end, self.split.validation_end, self.split.test_end)
        require(
            0 < ends[0] <= ends[1] <= ends[2], "the parts of a model's table must be in their order", ends, "fit again"
        )

    @property
    def config(self) -> ModelConfig:
        """The network's configuration."""
        return self.network.config

    @cached_property
    def cells(self) -> Bool[np.ndarray, "look_back channel"]:
        """Which values of a window may be read: those of the mask of a sealed model, and all of any other."""
        config = self.config
        if not config.sealed:
            return np.ones((config.look_back, config.channels), dtype=bool)
        missing = torch.zeros(1, config.patches, config.channels, dtype=torch.bool)
        with torch.no_grad():
            mask, _ = cast(SealedForecast, self.network).first_reading(missing)
        return spread(mask, config.patch_len)[0].numpy()

    @property
    def tokens(self) -> Bool[np.ndarray, "patch channel"] | None:
        """Which tokens a sealed model reads, each only if it is complete; None for any other model."""
        return self.cells[:: self.config.patch_len] if self.config.sealed else None

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the channels, in the network's order."""
        assert self.layout.channels is not None
        return self.layout.channels

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the channels that are forecast."""
        return self.channels[: len(self.channels) - self.config.past]

    @property
    def predictor(self) -> Predictor:
        """The network, with forecasts as users get them: within the limits, if there are any."""
        return self.network if self.limits is None else Limited(self.network, self.standardiser, self.limits)

    def anchors(self) -> Iterator[str]:
        """Yield a line in words for each kind of anchor: the channels it is in, and its share."""
        anchor, config = self.network.decompose.anchor, self.config
        if anchor is None:
            return
        channels: dict[str, list[str]] = {}
        for column, name in enumerate(self.channels):
            for share in in_words(anchor.blend.numpy(), config.cycles, config.look_back, column):
                channels.setdefault(share, []).append(name)
        for share, names in channels.items():
            yield f"{share}, in {', '.join(names)}"

    @cached_property
    def weights(self) -> bytes:
        """The weights as one safetensors file."""
        return tensors_to({name: tensor.contiguous() for name, tensor in self.network.state_dict().items()})

    @cached_property
    def weights_sha256(self) -> str:
        """Fingerprint of the weights and of what they mean, which explanations name.

        It is that of `model.json` without the parts that may differ between models with the same results: the
        intervals, which `calibrate` replaces, and the seconds of training. It covers the weights by their own
        fingerprint.
        """
        content = {name: value for name, value in self.document().items() if name != "intervals"}
        training = {name: value for name, value in content["training"].items() if name != "seconds"}
        if training["contest"] is not None:
            training["contest"] = {name: value for name, value in training["contest"].items() if name != "seconds"}
        return document.fingerprint({"format": FORMAT, "version": VERSION, **content, "training": training})

    def at_budget(self, budget: float | None) -> "FittedModel":
        """Return the model under another budget, if it was trained for any; None keeps its own."""
        if budget is None:
            return self
        kept = self.config.budget if self.fitted_budget is None else self.fitted_budget
        return replace(self, network=self.network.with_budget(budget), fitted_budget=kept)

    def save(self, folder: Path, overwrite: bool = False) -> None:
        """Write the folder; it gets its name only when everything in it is on disk.

        A process that is killed leaves the old model or the new one, and a temporary folder that a later save removes.
        """
        sweep(folder.parent)
        if folder.exists() and not overwrite:
            raise UsageError("a model must not replace what is there", folder, "choose another path or overwrite")
        if folder.exists() and not (folder / DOCUMENT).is_file():
            raise UsageError("only a model may be overwritten", f"{folder}, which is none", "choose another path")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with new_folder(folder) as temporary:
            for name, content in self.files().items():
                write_atomically(temporary / name, content)
            temporary.chmod(0o755)
            put_in_place(temporary, folder)

    def files(self) -> dict[str, bytes]:
        """Return the files of the saved model by their names; the inverse is `of_files`."""
        files = {WEIGHTS: self.weights}
        if self.calibration is not None:
            files[INTERVALS] = _quantiles(self.calibration)
        return files | {DOCUMENT: document.write(FORMAT, VERSION, self.document()).encode()}

    def document(self) -> dict[str, Any]:
        """Return the content of its document, without the fingerprint of the document."""
        content: dict[str, Any] = {
            # Left out, here and below, where a model has none, so that it has the fingerprint it always had.
            "config": {
                name: value
                for name, value in asdict(
                    self.config if self.fitted_budget is None else replace(self.config, budget=self.fitted_budget)
                ).items()
                if value or name not in ("medians", "added_cycles")
            },
            "layout": {
                name: value
                for name, value in asdict(self.layout).items()
                if value or name not in ("zero_at", "missing_texts")
            },
            "origin": self.origin,
            "even": self.even,
            "split": asdict(self.split),
            "standardisation": self.standardiser.document(),
            "known": None if self.known is None else self.known.document(),
            "training": _training(self.summary),
            "weights": _facts(WEIGHTS, self.weights),
        }
        if self.limits is not None:
            content["limits"] = self.limits.document()
        if self.calibration is not None:
            content["intervals"] = {
                "levels": LEVELS,
                "windows": self.calibration.windows,
                "since": self.calibration.since,
                **_facts(INTERVALS, _quantiles(self.calibration)),
            }
        return content


def load(folder: Path) -> FittedModel:
    """Read a saved model; refuse one that was changed, is truncated, newer, or not a model."""
    content = _read_content(folder)
    present = [folder / name for name in (WEIGHTS, INTERVALS) if (folder / name).is_file()]
    return _model(content, {path.name: path.read_bytes() for path in present}, f"in {folder}", _network)


def of_files(files: Mapping[str, bytes]) -> FittedModel:
    """Return the model of files that were read or sent; refuse those that `load` would refuse.

    The models of a global fleet have one network, so the last network is kept for the next model.
    """
    content = document.read(files.get(DOCUMENT, b""), FORMAT, VERSION, ModelFileError)
    return _model(content, files, "among its files", _last_network)


def _require_as_written(model: FittedModel, content: dict[str, Any], where: str) -> None:
    """Refuse a document unless saving this model again would give the same members, types and bytes of weights.

    The fingerprint of a model is of what saving it writes. Otherwise a folder could state something that no fingerprint
    covers, such as a member that nothing reads.
    """
    if model.calibration is None:  # of other levels, which are computed again
        content = {name: value for name, value in content.items() if name != "intervals"}
    written = model.document()
    if document.fingerprint(content) != document.fingerprint(written):
        others = [name for name in {**content, **written} if not _same(content.get(name), written.get(name))]
        rule = f"the {DOCUMENT} of a saved model must be what saving the model writes"
        raise ModelFileError(rule, f"another {', '.join(others)}, {where}", "save it again")


def _same(one: Any, other: Any) -> bool:
    return document.fingerprint({"": one}) == document.fingerprint({"": other})


def _model(
    content: dict[str, Any],
    files: Mapping[str, bytes],
    where: str,
    network_for: Callable[[ModelConfig, bytes], IBForecast],
) -> FittedModel:
    try:
        weights = _read_file(files, content["weights"], where)
        model = FittedModel(
            network=network_for(build(ModelConfig, content["config"], "config"), weights),
            standardiser=Standardiser.of_document(content["standardisation"]),
            layout=build(Layout, content["layout"], "layout"),
            origin=content["origin"],
            even=content["even"],
            split=build(Split, content["split"], "split"),
            summary=build(TrainingSummary, content["training"], "training"),
            known=None if content["known"] is None else Standardiser.of_document(content["known"]),
            limits=Limits.of_document(content["limits"]) if "limits" in content else None,
            calibration=_read_calibration(files, content["intervals"], where) if "intervals" in content else None,
        )
        _require_as_written(model, content, where)
        return model
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
        raise ModelFileError("a saved model must be complete", f"{error} {where}", "save it again") from error


def _network(config: ModelConfig, weights: bytes) -> IBForecast:
    tensors = tensors_from(weights)
    with torch.random.fork_rng([]), _Bounded(sum(tensor.numel() for tensor in tensors.values())):
        network = network_of(config)
    network.load_state_dict(tensors)
    return network.eval()


_last_network = lru_cache(maxsize=1)(_network)


class _Bounded(TorchFunctionMode):
    """Refuse, inside its `with` block, tensors that a network with this many numbers cannot need.

    So a document that claims a huge network is refused before the memory is taken. A network on the device "meta" would
    show its shapes, too, but takes a second of imports.
    """

    def __init__(self, numbers: int) -> None:
        super().__init__()
        self._numbers, self._left = numbers, 2 * numbers + SLACK

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in FACTORIES:
            first = kwargs["size"] if kwargs and "size" in kwargs else args[0]
            sizes = first if isinstance(first, Sequence) else [size for size in args if isinstance(size, int)]
            self._left -= abs(prod(sizes))
            if self._left < 0:
                raise ModelFileError(
                    "a saved model must have the weights that its configuration needs",
                    f"{self._numbers:,} numbers in {WEIGHTS}, which are too few",
                    "save the model again",
                )
        return func(*args, **(kwargs or {}))


def _training(summary: TrainingSummary) -> dict[str, Any]:
    """Return a summary as plain data, without parts that older models lack, so that these keep their fingerprints."""
    training = asdict(summary)
    contest = training["contest"]
    for part, name in ((training, "no_contest"), (contest, "windows"), (contest, "varied")):
        if part is not None and part[name] is None:
            del part[name]
    return training


def _quantiles(calibration: Calibration) -> bytes:
    return tensors_to({"quantiles": calibration.quantiles.contiguous()})


def _facts(name: str, content: bytes) -> dict[str, str | int]:
    return {"file": name, "bytes": len(content), "sha256": sha256(content)}


def _read_content(folder: Path) -> dict[str, Any]:
    path = folder / DOCUMENT
    if not folder.exists():
        sweep(folder.parent)  # a process that was killed may have moved it aside
    if not path.is_file():
        raise ModelFileError(f"a saved model is a folder with {DOCUMENT}", folder, "name the folder of a model")
    try:
        return document.read(path.read_bytes(), FORMAT, VERSION, ModelFileError)
    except ModelFileError as error:
        remedy = error.remedy.replace("write it again", "save the model again")
        raise ModelFileError(error.rule, f"{error.got} in {path}", remedy) from error


def _read_calibration(files: Mapping[str, bytes], facts: dict[str, Any], where: str) -> Calibration | None:
    """Read the widths of intervals; None if another version stored other levels, so that they are computed again.

    No fingerprint of the model covers them, so they are at least what a calibration can give.
    """
    tensors, windows, since = tensors_from(_read_file(files, facts, where)), facts["windows"], facts["since"]
    quantiles = tensors["quantiles"]
    rules = {
        "have the members that saving writes": facts.keys() == {"levels", "windows", "since", *_facts("", b"")},
        "be of a number of windows": type(windows) is int and windows >= 1,
        "be since a moment": isinstance(since, str) and str(np.datetime64(since)) == since,
        "have one table of single-precision numbers": tensors.keys() == {"quantiles"}
        and quantiles.dtype == torch.float32
        and quantiles.dim() == 3
        and len(quantiles) == len(facts["levels"]),
        "have levels in percent that increase": all(type(level) in (int, float) for level in facts["levels"])
        and all(0 < level < 100 for level in facts["levels"])
        and sorted(set(facts["levels"])) == facts["levels"],
        "have widths from 0 on that grow with the level": bool((quantiles >= 0).all())
        and bool((quantiles[1:] >= quantiles[:-1]).all()),
    }
    for rule, holds in rules.items():
        if not holds:
            raise ModelFileError(f"the intervals of a saved model must {rule}", where, "calibrate it again")
    return Calibration(quantiles, windows, since) if tuple(facts["levels"]) == LEVELS else None


def _read_file(files: Mapping[str, bytes], facts: dict[str, Any], where: str) -> bytes:
    name: str = facts["file"]
    if name not in (WEIGHTS, INTERVALS):
        raise ModelFileError(f"a saved model has {WEIGHTS} and {INTERVALS}", repr(name)[:80], "save the model again")
    if name not in files:
        raise ModelFileError(f"a saved model must hold {name}", f"none {where}", "save the model again")
    content = files[name]
    if len(content) != facts["bytes"]:
        raise ModelFileError(
            f"{name} must have {facts['bytes']} bytes", f"{len(content)}, {where}", "it was cut off: save again"
        )
    if sha256(content) != facts["sha256"]:
        raise ModelFileError(f"{name} must match its fingerprint", f"one that was changed, {where}", "save it again")
    return content
