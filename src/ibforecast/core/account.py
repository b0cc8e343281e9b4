"""One window's forecast and explanation in the user's own names, times and units; plain data, as JSON too."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise, zip_longest
from math import isclose
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64

from ibforecast.core.cycles import tiled
from ibforecast.core.errors import DataError
from ibforecast.core.files import sha256, to_json
from ibforecast.core.information import token_bits

PLAIN = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
FORMAT = "ibforecast.explanation"
FORMAT_VERSION = 4
"""Every version is read, and the newest is written.

Version 3 has other sentences, and says nothing of covariates and cycles where there are none; version 2 has one cycle
and no covariates; version 1 is the same without `prior` and `rate_bits`. The sentences belong to the version, because
reading compares them: other words in a document need another version.
"""

QUIET, UNSAID = "Nothing was read beyond the disclosed context of", "Not forecast"
EARLIER_WORDS = {
    QUIET: "Taken to follow their pattern at the window's level and scale",
    UNSAID: "Read alone, and not forecast",
}
"""How sentences began up to version 3; yet a readout may add a season of its own to μ + σQ where nothing is read."""

FEW_PLACES = 3
"""Places of a channel that are named one by one where many would be counted."""


@dataclass(frozen=True)
class Token:
    """One row of the explanation: a patch of a channel, whether it was read, how much that tells, and its deviation."""

    channel: str
    start: str
    end: str
    open: bool
    probability: float
    bits: float
    missing: bool
    mean_deviation: float
    largest_deviation: float
    values: list[float | None]


@dataclass(frozen=True, eq=False)
class Known:
    """Covariates known ahead: their values over look-back and horizon in the table's units, and what they move.

    What moves is how far a covariate is from its `usual` value, in units of its `std`: by each such unit a channel
    moves by `response`, in the channel's standardised units, at the phases of the first cycle.
    """

    names: tuple[str, ...]
    values: Float64[np.ndarray, "steps covariate"]
    usual: Float64[np.ndarray, " covariate"]
    std: Float64[np.ndarray, " covariate"]
    response: Float32[np.ndarray, "cycle covariate channel"]

    @property
    def standardised(self) -> Float64[np.ndarray, "steps covariate"]:
        """The values as the model takes them."""
        return np.asarray((self.values - self.usual) / self.std)

    def effect(self, phase: Int64[np.ndarray, " steps"]) -> Float64[np.ndarray, "steps covariate channel"]:
        """By how much each covariate moves each channel at each step, in the channel's standardised units."""
        response = self.response[phase % len(self.response)].astype(np.float64)
        return np.asarray(self.standardised[..., None] * response)


@dataclass(frozen=True)
class KnownStep:
    """One row about what was known ahead: a covariate's value at a step, and by how much it moves a channel there."""

    time: str
    covariate: str
    value: float
    channel: str
    effect: float


@dataclass(frozen=True, eq=False, repr=False)
class Account:
    """Everything that was disclosed about one forecast.

    `history`, `forecast` and `truth` are in the table's units, NaN where missing. The context's frame (`level`,
    `scale`), the `profile` and the `evidence` are the very numbers the readout saw, in standardised units;
    `mean` and `std` lead from one to the other. `prior` is what the gates' bits are counted against; None in a
    document from before it was disclosed. `intact` is false if it was read from a document that does not match its
    own fingerprint.

    The profiles of several `cycles` lie end to end in `profile`, and add up. Channels named in `past` are read and have
    no forecast: NaN stands there. `known` is what was known ahead.
    """

    weights_sha256: str
    computed_with: Mapping[str, str]
    budget: float
    patch_len: int
    frequency: str
    channels: tuple[str, ...]
    times: tuple[str, ...]
    history: Float64[np.ndarray, "look_back channel"]
    forecast: Float64[np.ndarray, "horizon channel"]
    truth: Float64[np.ndarray, "horizon channel"] | None
    mean: Float64[np.ndarray, " channel"]
    std: Float64[np.ndarray, " channel"]
    level: Float32[np.ndarray, " channel"]
    scale: Float32[np.ndarray, " channel"]
    phase: Int64[np.ndarray, " steps"]
    profile: Float32[np.ndarray, "cycle channel"]
    mask: Bool[np.ndarray, "patch channel"]
    probability: Float32[np.ndarray, "patch channel"]
    missing: Bool[np.ndarray, "patch channel"]
    evidence: Float32[np.ndarray, "look_back channel"]
    prior: float | None = None
    intact: bool = True
    cycles: tuple[int, ...] = ()
    past: tuple[str, ...] = ()
    known: Known | None = None

    def __post_init__(self) -> None:
        if not self.cycles:
            object.__setattr__(self, "cycles", (len(self.profile),))

    @property
    def look_back(self) -> int:
        """Number of steps read or passed over."""
        return int(self.history.shape[0])

    @property
    def horizon(self) -> int:
        """Number of steps forecast."""
        return int(self.forecast.shape[0])

    @property
    def open_count(self) -> int:
        """Number of open tokens."""
        return int(self.mask.sum())

    @property
    def open_rate(self) -> float:
        """Realised fraction of the window that was read."""
        return float(self.mask.mean())

    @property
    def bits(self) -> Float64[np.ndarray, "patch channel"] | None:
        """What each gate tells beyond the prior, KL(Bern(p) ‖ Bern(π)); 0 where a missing step left it no choice."""
        if self.prior is None:
            return None
        told = token_bits(self.probability, self.prior)
        return np.where(self.missing, 0.0, told)

    @property
    def rate_bits(self) -> float | None:
        """What all gates of the window tell together, in bits; None where no prior is known."""
        bits = self.bits
        return None if bits is None else float(bits.sum())

    @property
    def at(self) -> str:
        """The moment the forecast was made: the time of the last look-back step."""
        return self.times[self.look_back - 1]

    @property
    def expected(self) -> Float64[np.ndarray, "steps channel"]:
        """The disclosed baseline over look-back and horizon, in the table's units: μ + σQ and what is known ahead."""
        seasonal = tiled(self.profile, self.phase, self.cycles).astype(np.float64)
        baseline = self.level + self.scale * seasonal
        if self.known is not None:
            baseline = baseline + self.known.effect(self.phase).sum(axis=1)
        return np.asarray(self.mean + self.std * baseline)

    @property
    def deviation(self) -> Float64[np.ndarray, "look_back channel"]:
        """What is left of the history once the context is removed, in units of the scale; NaN where missing."""
        return np.asarray((self.history - self.expected[: self.look_back]) / (self.std * self.scale))

    def tokens(self) -> Iterator[Token]:
        """One row per token, channel by channel, oldest patch first."""
        deviation, bits = self.deviation, self.bits
        for column, channel in enumerate(self.channels):
            for patch in range(len(self.mask)):
                first, last = patch * self.patch_len, (patch + 1) * self.patch_len - 1
                steps = deviation[first : last + 1, column]
                seen = steps[~np.isnan(steps)]
                yield Token(
                    channel=channel,
                    start=self.times[first],
                    end=self.times[last],
                    open=bool(self.mask[patch, column]),
                    probability=float(self.probability[patch, column]),
                    bits=float("nan") if bits is None else float(bits[patch, column]),
                    missing=bool(self.missing[patch, column]),
                    mean_deviation=float(seen.mean()) if len(seen) else float("nan"),
                    largest_deviation=float(seen[np.abs(seen).argmax()]) if len(seen) else float("nan"),
                    values=_nullable(self.history[first : last + 1, column]),
                )

    def known_steps(self) -> Iterator[KnownStep]:
        """One row per step, covariate and channel that is forecast: what was known ahead, and what it moves."""
        if self.known is None:
            return
        targets = [column for column, channel in enumerate(self.channels) if channel not in self.past]
        effects = self.std * self.known.effect(self.phase)
        for step, time in enumerate(self.times):
            for number, covariate in enumerate(self.known.names):
                value = float(self.known.values[step, number])
                for column in targets:
                    effect = float(effects[step, number, column]) + 0.0  # no minus before nothing
                    yield KnownStep(time, covariate, value, self.channels[column], effect)

    def in_words(self, *, full: bool = False) -> str:
        """Say which channels were read where, and of which nothing was read; all but the bits is in the mask.

        Channels read alike are told together, and many places by their number; `full` names every place of every
        channel, as a document does.
        """
        first, last = self.times[self.look_back], self.times[-1]
        rate = self.rate_bits
        lines = [
            f"Forecast of {first} to {last}, made at {self.at}.",
            f"It read {self.open_count} of {self.mask.size} tokens: {_percent(self.open_rate)} of the window, "
            f"where the budget allows {_percent(self.budget)}"
            + ("." if rate is None else f"; its gates tell {rate:.1f} bits beyond their prior."),
        ]
        read = self._read_in_full() if full else self._read_in_brief()
        quiet = [channel for column, channel in enumerate(self.channels) if not self.mask[:, column].any()]
        gaps = [
            f"{channel} ({count} of {len(self.mask)} patches)"
            for channel, count in zip(self.channels, self.missing.sum(axis=0), strict=True)
            if count
        ]
        lines.append(f"Read: {'; '.join(read)}." if read else "Read: nothing.")
        if quiet:
            lines.append(f"{QUIET}: {', '.join(quiet)}.")
        if gaps:
            lines.append(f"Not readable because of missing values: {'; '.join(gaps)}.")
        if self.past:
            lines.append(f"{UNSAID}: {', '.join(self.past)}.")
        if self.known is not None:
            lines.append(f"Known ahead, up to {last}, and part of the context: {', '.join(self.known.names)}.")
        return "\n".join(lines)

    def _read_in_full(self) -> list[str]:
        return [
            f"{channel} ({', '.join(self._spans(np.flatnonzero(opened).tolist()))})"
            for channel, opened in zip(self.channels, self.mask.T, strict=True)
            if opened.any()
        ]

    def _read_in_brief(self) -> list[str]:
        alike: dict[bytes, list[int]] = defaultdict(list)
        for column in np.flatnonzero(self.mask.any(axis=0)).tolist():
            alike[self.mask[:, column].tobytes()].append(column)
        return [
            f"{', '.join(self.channels[column] for column in columns)} ({self._places(columns[0])})"
            for columns in alike.values()
        ]

    def _places(self, column: int) -> str:
        """Where a channel was read: each span, or of many how many patches there are, and how far apart if evenly."""
        patches: list[int] = np.flatnonzero(self.mask[:, column]).tolist()
        spans = list(self._spans(patches))
        if len(spans) <= FEW_PLACES:
            return ", ".join(spans)
        steps = {later - patch for patch, later in pairwise(patches)}
        evenly = f", one in {steps.pop()}" if len(steps) == 1 else ""
        return f"{len(patches)} of {len(self.mask)} patches{evenly}, {self._span(patches[0], patches[-1])}"

    def _spans(self, patches: list[int]) -> Iterator[str]:
        for _, run in groupby(enumerate(patches), key=lambda pair: pair[1] - pair[0]):
            members = [patch for _, patch in run]
            yield self._span(members[0], members[-1])

    def _span(self, first: int, last: int) -> str:
        return f"{self.times[first * self.patch_len]} to {self.times[(last + 1) * self.patch_len - 1]}"

    def to_json(self, numbers: Callable[[Any], str] = PLAIN.encode) -> str:
        """Render as one self-contained document; `from_json` gives back the same numbers to the last bit.

        `numbers` writes a list of numbers, or of lists of them: as JSON without spaces, in Python's digits.
        """
        open_tokens = [
            {
                "patch": int(patch),
                "channel": self.channels[column],
                "deviation": self.evidence[patch * self.patch_len : (patch + 1) * self.patch_len, column].tolist(),
            }
            for patch, column in np.argwhere(self.mask)
        ]
        document = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "model": {"weights_sha256": self.weights_sha256, "computed_with": dict(self.computed_with)},
            "budget": self.budget,
            "open_count": self.open_count,
            "open_rate": self.open_rate,
            "prior": self.prior,
            "rate_bits": self.rate_bits,
            "in_words": self.in_words(full=True),
            "window": {
                "patch_len": self.patch_len,
                "frequency": self.frequency,
                "channels": list(self.channels),
                "times": list(self.times),
                "history": _nullable(self.history),
                "past": list(self.past),
            },
            "context": {
                "level": self.level.tolist(),
                "scale": self.scale.tolist(),
                "phase": self.phase.tolist(),
                "profile": self.profile.tolist(),
                "standardisation": {"mean": self.mean.tolist(), "std": self.std.tolist()},
                "cycles": list(self.cycles),
                "known": [] if self.known is None else _covariates(self.known),
            },
            "explanation": {
                "mask": self.mask.astype(int).tolist(),
                "probability": self.probability.tolist(),
                "missing": self.missing.astype(int).tolist(),
                "evidence": open_tokens,
            },
            "forecast": _nullable(self.forecast) if self.past else self.forecast.tolist(),
            "truth": None if self.truth is None else _nullable(self.truth),
        }
        written = _rendered(document, numbers)
        fingerprint = sha256(f"{written}\n".encode())
        return f'{written[:-2]},\n "sha256": "{fingerprint}"\n}}\n'  # as to_json would, rendered once

    @classmethod
    def from_json(cls, text: str) -> "Account":
        """Read what `to_json` wrote; anything else is refused with the reason."""
        try:
            document = json.loads(text)
        except json.JSONDecodeError as error:
            raise DataError(f"an explanation must be valid JSON (got {error}); export it again") from error
        except RecursionError as error:
            raise DataError(f"an explanation must be readable (got RecursionError: {error}); write it anew") from error
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            found = document.get("format") if isinstance(document, dict) else type(document).__name__
            raise DataError(f"an explanation must say format {FORMAT!r} (got {found!r}); export it again")
        version = document.get("format_version")
        if version not in range(1, FORMAT_VERSION + 1):
            raise DataError(
                f"this version reads explanations up to format version {FORMAT_VERSION} (got {version!r}); "
                "use a matching version of ibforecast"
            )
        names = ("open_count", "open_rate") if version == 1 else ("open_count", "open_rate", "rate_bits")
        try:
            account = cls(**_fields_of(document))
            lies = [
                f"{name} {document[name]!r}" for name in names if not _agree(document[name], getattr(account, name))
            ]
            words = account.in_words(full=True)
            if version in (1, 2, 3):
                words = _in_earlier_words(words)
            if (said := document.get("in_words", words)) != words:
                lies.append(f"in_words {_first_other(said, words)!r}")
        except (KeyError, TypeError, ValueError, IndexError, ArithmeticError, RecursionError) as error:
            raise DataError(
                f"an explanation must be complete and of one shape (got {type(error).__name__}: {error}); "
                "export it again"
            ) from error
        if lies:
            raise DataError(f"an explanation must say what its gates say (got {lies[0]:.200}); export it again")
        return account

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(at {self.at}, {self.horizon} steps of {len(self.channels)} channels, "
            f"{self.open_count} of {self.mask.size} tokens read)"
        )


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.3g} %"


def _agree(said: Any, found: float | int | None) -> bool:
    """Whether two numbers are one, or both none; the last bits of a logarithm are the processor's."""
    return said is None if found is None else isclose(said, found, rel_tol=1e-9, abs_tol=1e-9)


def _in_earlier_words(words: str) -> str:
    """The sentences of an account as documents up to version 3 have them."""
    for now, then in EARLIER_WORDS.items():
        words = words.replace(f"\n{now}: ", f"\n{then}: ")
    return words


def _first_other(said: Any, words: str) -> Any:
    """The first line said that is not the one of these words; what is no text, as it is."""
    if not isinstance(said, str):
        return said
    return next(one for one, other in zip_longest(said.split("\n"), words.split("\n")) if one != other)


def _fields_of(document: dict[str, Any]) -> dict[str, Any]:
    told = document.pop("sha256")
    window, context, explanation = document["window"], document["context"], document["explanation"]
    channels = tuple(window["channels"])
    history = _floats(window["history"])
    mask = np.array(explanation["mask"], dtype=bool)
    evidence = np.zeros(history.shape, dtype=np.float32)
    for token in explanation["evidence"]:
        first = token["patch"] * window["patch_len"]
        evidence[first : first + window["patch_len"], channels.index(token["channel"])] = token["deviation"]
    account = {
        "weights_sha256": document["model"]["weights_sha256"],
        "computed_with": dict(document["model"]["computed_with"]),
        "budget": document["budget"],
        "patch_len": window["patch_len"],
        "frequency": window["frequency"],
        "channels": channels,
        "times": tuple(window["times"]),
        "history": history,
        "forecast": _floats(document["forecast"]),
        "truth": None if document["truth"] is None else _floats(document["truth"]),
        "mean": np.array(context["standardisation"]["mean"], dtype=np.float64),
        "std": np.array(context["standardisation"]["std"], dtype=np.float64),
        "level": np.array(context["level"], dtype=np.float32),
        "scale": np.array(context["scale"], dtype=np.float32),
        "phase": np.array(context["phase"], dtype=np.int64),
        "profile": np.array(context["profile"], dtype=np.float32),
        "mask": mask,
        "probability": np.array(explanation["probability"], dtype=np.float32),
        "missing": np.array(explanation["missing"], dtype=bool),
        "evidence": evidence,
        "prior": None if document["format_version"] == 1 else document["prior"],
        "intact": told == sha256(to_json(document)),
    }
    if document["format_version"] >= 3:
        account |= {
            "cycles": tuple(context["cycles"]),
            "past": tuple(window["past"]),
            "known": _known(context["known"]) if context["known"] else None,
        }
    _check_types(account)
    _check_shapes(account)
    return account


def _covariates(known: Known) -> list[dict[str, Any]]:
    return [
        {
            "covariate": name,
            "usual": float(known.usual[number]),
            "std": float(known.std[number]),
            "values": known.values[:, number].tolist(),
            "response": known.response[:, number].tolist(),
        }
        for number, name in enumerate(known.names)
    ]


def _known(covariates: list[dict[str, Any]]) -> Known:
    """Put together what `_covariates` took apart."""
    return Known(
        names=tuple(told["covariate"] for told in covariates),
        values=np.stack([_floats(told["values"]) for told in covariates], axis=1),
        usual=_floats([told["usual"] for told in covariates]),
        std=_floats([told["std"] for told in covariates]),
        response=np.stack([np.array(told["response"], dtype=np.float32) for told in covariates], axis=1),
    )


def _check_types(account: dict[str, Any]) -> None:
    """Refuse texts and numbers that are none; arrays are what numpy could make of them."""
    told = account["computed_with"]
    texts = {
        "weights_sha256": (account["weights_sha256"],),
        "computed_with": (*told, *told.values()),
        "frequency": (account["frequency"],),
        "channels": account["channels"],
        "times": account["times"],
    }
    for name, members in texts.items():
        if odd := [member for member in members if not isinstance(member, str)]:
            raise TypeError(f"{name} has {odd[0]!r} where text belongs")
    for name, kinds in (("budget", (int, float)), ("patch_len", (int,))):
        if type(account[name]) not in kinds:  # true and false would pass for whole numbers
            raise TypeError(f"{name} has {account[name]!r} where a number belongs")


def _check_shapes(account: dict[str, Any]) -> None:
    look_back, channel = account["history"].shape
    horizon, patch = len(account["forecast"]), look_back // account["patch_len"]
    expected = {
        "times": (look_back + horizon,),
        "phase": (look_back + horizon,),
        "forecast": (horizon, channel),
        "mask": (patch, channel),
        "probability": (patch, channel),
        "missing": (patch, channel),
        "profile": (len(account["profile"]), channel),
    } | dict.fromkeys(("channels", "mean", "std", "level", "scale"), (channel,))
    if account["truth"] is not None:
        expected["truth"] = (horizon, channel)
    for name, shape in expected.items():
        if np.shape(account[name]) != shape:
            raise ValueError(f"{name} has shape {np.shape(account[name])} where {shape} belongs")
    _check_roles(account)


def _check_roles(account: dict[str, Any]) -> None:
    """Refuse cycles, past channels and covariates that do not go with the rest."""
    channels, rows = account["channels"], len(account["profile"])
    cycles, past, known = account.get("cycles", (rows,)), account.get("past", ()), account.get("known")
    if sum(cycles) != rows or not all(isinstance(cycle, int) and cycle > 0 for cycle in cycles):
        raise ValueError(f"profile has {rows} rows where cycles of {cycles} belong")
    unsaid = [name in past for name in channels]
    if past != tuple(name for name in channels if name in past) or all(unsaid):
        raise ValueError(f"past is {past} where some of {channels} belong")
    if (np.isnan(account["forecast"]) != unsaid).any():
        raise ValueError("forecast is not there for every channel but the past ones")
    if known is not None:
        told = (known.values.shape, known.response.shape)
        held = (len(account["times"]), len(known.names)), (cycles[0], len(known.names), len(channels))
        if told != held:
            raise ValueError(f"known has values and response of shapes {told} where {held} belong")


def _rendered(value: Any, numbers: Callable[[Any], str], margin: str = "\n") -> str:
    """Write what `to_json` writes, save the last line break, several times as fast: lists of numbers go as a whole."""
    if not value or not isinstance(value, dict | list):
        return PLAIN.encode(value)
    row, cell = f"{margin} ", f"{margin}  "
    if isinstance(value, dict):
        entries = f",{row}".join(f"{PLAIN.encode(name)}: {_rendered(value[name], numbers, row)}" for name in value)
        return f"{{{row}{entries}{margin}}}"
    if isinstance(value[0], dict):
        items = f",{row}".join(_rendered(item, numbers, row) for item in value)
    elif isinstance(value[0], str):
        items = json.dumps(value, ensure_ascii=False, separators=(f",{row}", ":"))[1:-1]
    elif isinstance(value[0], list):
        rows = numbers(value)[2:-2].replace("],[", "|").replace(",", f",{cell}").replace("|", f"{row}],{row}[{cell}")
        items = f"[{cell}{rows}{row}]"
    else:
        items = numbers(value)[1:-1].replace(",", f",{row}")
    return f"[{row}{items}{margin}]"


def _nullable(values: Float64[np.ndarray, "..."]) -> Any:
    """Nested lists with None for NaN, so that the document stays valid JSON."""
    return np.where(np.isnan(values), None, values.astype(object)).tolist()  # type: ignore[call-overload]


def _floats(nested: list[Any]) -> Float64[np.ndarray, "..."]:
    return np.array(nested, dtype=np.float64)
