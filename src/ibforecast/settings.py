"""The settings of a forecaster: the single list of their names, types, defaults, help texts and rules."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from math import inf, isfinite
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, get_args

from ibforecast.core.budget import require_budget
from ibforecast.core.errors import UsageError, bounded, names_of, require_choice
from ibforecast.core.sizes import require_steps
from ibforecast.data.layout import Dates, Irregular, Layout
from ibforecast.data.splits import Split
from ibforecast.model.config import LossKind
from ibforecast.zoo.configs import chosen
from ibforecast.zoo.recipes import DEFAULT, Recipe

if TYPE_CHECKING:
    from ibforecast.data.series import Series

MOST_FOR_A_CYCLE = 0.8
"""The share of the training rows that a cycle and a horizon may take in a short table."""


class Usual:
    """A default that a short table may change; the same value from a user is of another class, and stays."""


class UsualSteps(Usual, int):
    """A default number of steps."""


class UsualParts(Usual, tuple[float, float, float]):
    """Default fractions of a table."""


Read = Callable[[str, Any], Any]
"""Takes the name of a setting and its value, and returns the value to keep, or raises UsageError."""


def whole_number(name: str, number: Any) -> int:
    """Return a whole number of any library as a Python int."""
    # A boolean is an Integral in Python, but not a number here.
    if not isinstance(number, Integral) or isinstance(number, bool):
        raise UsageError(f"{name} must be a whole number", repr(number), "write it without quotes or a point")
    return bounded(name, int(number))


def _steps(name: str, number: Any) -> int:
    require_steps(name, whole_number(name, number))
    return int(number)


def _at_least_one(name: str, number: Any) -> int:
    if whole_number(name, number) < 1:
        raise UsageError(f"{name} must be at least 1", number, "give a positive number")
    return int(number)


def _budget(name: str, budget: Any) -> float:
    if not isinstance(budget, Real) or isinstance(budget, bool):
        raise UsageError(f"{name} must be a number", repr(budget), "try 0.2 for a fifth")
    require_budget(float(budget))
    return float(budget)


def _numbers(name: str, numbers: Any) -> tuple[float, ...]:
    if isinstance(numbers, Real):
        raise UsageError(f"{name} must be a list of numbers", repr(numbers), f"write [{numbers!r}]")
    try:
        return tuple(map(float, numbers))
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"{name} must be a list of numbers", f"{numbers!r:.80}", "write them as 1.5") from error


def _marks(name: str, marks: Any) -> tuple[float | str, ...]:
    """Return numbers and texts that mean missing values; the text of a number is that number."""
    if isinstance(marks, Real | str):
        raise UsageError(f"{name} must be a list of numbers or texts", repr(marks), f"write [{marks!r}]")
    from ibforecast.data.columns import NUMBER  # it needs numpy, and --help does not

    texts = {mark for mark in marks if isinstance(mark, str) and not NUMBER.fullmatch(mark)}
    if any(not text.strip() for text in texts):
        raise UsageError(f"{name} must not be empty", repr(sorted(texts)[0]), "leave it out: empty cells are missing")
    return tuple(mark if mark in texts else _numbers(name, [mark])[0] for mark in marks)


def _cycle(name: str, cycle: Any) -> int | tuple[int, ...] | Literal["auto"]:
    if isinstance(cycle, str) and cycle == "auto":
        return "auto"
    lengths = tuple(cycle) if isinstance(cycle, Sequence) and not isinstance(cycle, str) else (cycle,)
    if not lengths or not all(isinstance(length, Integral) and whole_number(name, length) >= 1 for length in lengths):
        raise UsageError(
            f'{name} must be a positive number of steps or "auto"',
            repr(cycle),
            "try 24 for hourly data, or (24, 168) for its day and its week",
        )
    steps = tuple(_steps(name, length) for length in lengths)
    return steps[0] if len(steps) == 1 else steps


EVERY = "*"
"""Means every channel in `limits`."""

Range = tuple[float | None, float | None]
"""The lowest and the highest value; None if there is none."""


def _limits(name: str, limits: Any) -> dict[str, Range] | None:
    """Return the limits by channel; a pair is for every channel, and texts are written as NAME=LOW..HIGH."""
    if not limits:
        return None
    if isinstance(limits, Mapping):
        return {str(channel): _range(name, ends) for channel, ends in limits.items()}
    texts = [limits] if isinstance(limits, str) else limits
    if isinstance(texts, Sequence) and all(isinstance(each, str) for each in texts):
        return dict(_written_range(name, each) for each in texts)
    return {EVERY: _range(name, limits)}


def _written_range(name: str, text: str) -> tuple[str, Range]:
    channel, equals, ends = text.rpartition("=")
    low, dots, high = ends.partition("..")
    if not dots or (equals and not channel):
        raise UsageError(f"{name} must be written as NAME=LOW..HIGH", repr(text), "try rentals=0..500, or 0.. for all")
    return channel or EVERY, _range(name, (low.strip() or None, high.strip() or None), text)


def _range(name: str, ends: Any, text: str = "") -> Range:
    """Return the lowest and the highest number; `text` is how they were written on a command line, if they were."""
    got, write = (repr(text), "0..500, or 0.. without an upper one") if text else (f"{ends!r:.80}", "")
    try:
        low, high = (None if end is None else float(end) for end in ends)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{name} must be a lowest and a highest number",
            got,
            f"write {write or '(0, 500), or (0, None) without one'}",
        ) from error
    lowest, highest = -inf if low is None else low, inf if high is None else high
    finite = all(isfinite(end) for end in (low, high) if end is not None)
    if not finite or not lowest < highest:
        raise UsageError(f"{name} must be finite, the lower below the upper", got, f"write {write or '(0, 500)'}")
    return low, high


def _loss(name: str, loss: Any) -> Any:
    require_choice(name, loss, get_args(LossKind))
    return loss


def _as_given(name: str, value: Any) -> Any:
    return value


def _unless_none(read: Read) -> Read:
    return lambda name, value: None if value is None else read(name, value)


def _unless_usual(read: Read) -> Read:
    return lambda name, value: value if isinstance(value, Usual) else read(name, value)


def _about(help: str, read: Read = _as_given) -> dict[str, Any]:
    """Return the metadata of a setting: its help text, and the function that converts and checks its value."""
    return {"help": help, "read": read}


@dataclass(frozen=True)
class Settings:
    """Settings of the model, its training and the reading of tables; see `IBForecaster` for their meaning."""

    horizon: int = field(metadata=_about("Number of steps to forecast.", _steps))
    look_back: int = field(
        default=UsualSteps(96), metadata=_about("Number of steps a window spans.", _unless_usual(_steps))
    )
    budget: float | None = field(
        default=None,
        metadata=_about(
            "Largest fraction of a window that may be read; default: the recipe's (0.2).", _unless_none(_budget)
        ),
    )
    cycle: int | Sequence[int] | Literal["auto"] = field(
        default="auto", metadata=_about("Steps of the seasonal profile, or several: 24,168.", _cycle)
    )
    _: KW_ONLY
    patch_len: int | None = field(
        default=None, metadata=_about("Steps of a patch; must divide the look-back.", _unless_none(_at_least_one))
    )
    time: str | None = field(
        default=None, metadata=_about("Name of the time column, or of several, as date,hour; default: detected.")
    )
    channels: Sequence[str] | None = field(
        default=None,
        metadata=_about("Channels to read and forecast, separated by commas; default: all.", _unless_none(names_of)),
    )
    past: Sequence[str] = field(
        default=(), metadata=_about("Channels to read and not forecast, separated by commas.", names_of)
    )
    future: Sequence[str] = field(
        default=(), metadata=_about("Columns that are known ahead, separated by commas.", names_of)
    )
    id: str = field(default="unique_id", metadata=_about("Id column of a long table."))
    target: str = field(default="y", metadata=_about("Value column of a long table."))
    freq: str | None = field(
        default=None, metadata=_about("Frequency, e.g. 15min, 1h, 1d, B for workdays; default: inferred.")
    )
    dates: Dates = field(
        default="auto",
        metadata=_about(
            "How times are written if unclear: day or month first, numbers since 1970, serial, or digits as 20240131."
        ),
    )
    zone: str | None = field(default=None, metadata=_about("Time zone of times that have none, e.g. Europe/Berlin."))
    irregular: Irregular = field(
        default="error", metadata=_about("The rule for uneven times: refuse, count rows, or fill the gaps.")
    )
    missing_values: Sequence[float | str] = field(
        default=(), metadata=_about("A number or a text that means a missing value, e.g. -9999 or '-'.", _marks)
    )
    zero_at: Sequence[str] = field(
        default=(),
        metadata=_about(
            "Times of the day at which an empty cell means 0, e.g. 22:00..05:30 for a closed shop.", names_of
        ),
    )
    limits: Mapping[str, Any] | Sequence[Any] | None = field(
        default=None,
        metadata=_about(
            "Lowest and highest forecast of a channel, NAME=0..500 or NAME=0..; without a name, of every channel. "
            "Default: 0 or above for counts that are often 0; NAME=.. for none.",
            _limits,
        ),
    )
    whole: Sequence[str] = field(
        default=(), metadata=_about("Channels whose forecasts are rounded to whole numbers.", names_of)
    )
    split: tuple[float, float, float] = field(
        default=UsualParts((0.7, 0.1, 0.2)),
        metadata=_about("Fractions to train, select and test on.", _unless_usual(_numbers)),
    )
    sealed: bool = field(
        default=False, metadata=_about("Insist on a model whose mask and level, too, depend only on what is read.")
    )
    choosing: bool = field(
        default=False, metadata=_about("Insist on a model that looks at a window to choose what it reads.")
    )
    recipe: str | Recipe = field(default=DEFAULT, metadata=_about("A recipe's name, or a path to a TOML file."))
    loss: LossKind | None = field(
        default=None,
        metadata=_about("The error to minimise: mse, mae or frequency; default: the recipe's.", _unless_none(_loss)),
    )
    epochs: int | None = field(
        default=None,
        metadata=_about(
            "Largest number of epochs in each stage of training; default: the recipe's.", _unless_none(_at_least_one)
        ),
    )
    seed: int = field(default=2024, metadata=_about("Seed of the first weights and of the training.", whole_number))
    device: str = field(default="auto", metadata=_about("auto, cpu or cuda."))

    def __post_init__(self) -> None:
        for each in fields(Settings):
            object.__setattr__(self, each.name, each.metadata["read"](each.name, getattr(self, each.name)))
        if self.sealed and self.choosing:
            raise UsageError("a model is either sealed or choosing", "both", "leave one of them out")
        _ = self.layout  # refuses contradicting columns now instead of when a table is read

    def sized(self, series: "Series") -> "Settings":
        """Return the settings for a table, with other defaults if it is too short for the usual ones.

        Only defaults change, and only if a fit would be refused with them. The parts to select and to test on get room
        for a horizon. The look-back becomes the most whole cycles within half of what training leaves beyond a horizon,
        or one cycle if that leaves windows in a fifth of the training rows.
        """
        rows, split, look_back = series.rows, self.split, self.look_back
        parts = Split.by_fractions(split, rows)
        if isinstance(split, Usual) and parts.validation_end - parts.train_end < self.horizon:
            selected, tested = self.horizon + rows // 20, max(self.horizon, rows // 10)
            parts = Split(rows - selected - tested, rows - tested, rows)
            split = parts.fractions
        if isinstance(look_back, Usual) and parts.train_end < look_back + self.horizon:
            most, cycle = (parts.train_end - self.horizon) // 2, _first_cycle(self, series)
            one = cycle if cycle + self.horizon <= MOST_FOR_A_CYCLE * parts.train_end else 0
            look_back = most // cycle * cycle or one or most
        is_enough = look_back >= 2 and parts.train_end >= look_back + self.horizon
        if not is_enough or (look_back, split) == (self.look_back, self.split):
            return self  # a fit will refuse the table, or take it as it is
        return replace(self, look_back=look_back, split=split)

    @property
    def layout(self) -> Layout:
        """How to read a table."""
        return Layout(
            time=self.time,
            channels=None if self.channels is None else tuple(self.channels),
            id=self.id,
            target=self.target,
            frequency=self.freq,
            zone=self.zone,
            irregular=self.irregular,
            missing_values=tuple(mark for mark in self.missing_values if not isinstance(mark, str)),
            missing_texts=tuple(mark for mark in self.missing_values if isinstance(mark, str)),
            zero_at=tuple(self.zero_at),
            past=tuple(self.past),
            future=tuple(self.future),
            dates=self.dates,
        )

    @property
    def ranges(self) -> Mapping[str, Range]:
        """The limits by channel, as they were read; empty if none were given."""
        return self.limits if isinstance(self.limits, Mapping) else {}

    @property
    def recipe_name(self) -> str:
        """The recipe's name or path."""
        return self.recipe if isinstance(self.recipe, str) else self.recipe.name

    def document(self) -> dict[str, Any]:
        """Return all settings as plain data, with the recipe by name."""
        return {each.name: getattr(self, each.name) for each in fields(Settings)} | {"recipe": self.recipe_name}

    def chosen(self) -> dict[str, Any]:
        """Return the settings that differ from their defaults as plain data, as `document` does."""
        return {name: value for name, value in self.document().items() if name in chosen(self)}


def _first_cycle(settings: Settings, series: "Series") -> int:
    """Return the first cycle, 1 if there is neither a setting nor a natural one of the step."""
    cycle = settings.cycle
    if cycle == "auto":
        try:
            return series.clock.frequency.cycle()
        except UsageError:
            return 1
    return cycle if isinstance(cycle, int) else int(cycle[0])
