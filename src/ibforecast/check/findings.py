"""The findings of a look at a table, as fields and as text."""

from dataclasses import dataclass

from ibforecast.check.advice import REPEATED, Advice, named
from ibforecast.core.calendar import Frequency
from ibforecast.core.words import count_of
from ibforecast.data.rhythms import Rhythm
from ibforecast.zoo.cost import Cost


@dataclass(frozen=True)
class Findings:
    """The results of a look at a table; shares are fractions of 1, times and memory are rough.

    `unreadable` is the share of tokens that cannot be read because a value in them is missing. `rhythms` are the cycles
    found in the values, `cycle` the one that a fit uses. `windows` are those to train on. `cost` is what a fit needs.
    If the fit would be refused, it is None and `refusal` is the reason.
    """

    rows: int
    channels: tuple[str, ...]
    step: str
    first: str
    last: str
    horizon: int
    look_back: int
    cycle: tuple[int, ...]
    patch_len: int
    missing: int
    gaps: int
    unreadable: float
    rhythms: tuple[Rhythm, ...]
    windows: int
    validation_windows: int
    cost: Cost | None
    refusal: str
    advice: tuple[Advice, ...]

    @property
    def options(self) -> tuple[str, ...]:
        """The options of `fit` that follow the advice: one of each name, the first, but every mark."""
        options = list(dict.fromkeys(option for each in self.advice for option in each.options))
        names = [option if option.startswith(REPEATED) else option.partition(" ")[0] for option in options]
        return tuple(option for place, option in enumerate(options) if names.index(names[place]) == place)

    def __str__(self) -> str:
        values = self.rows * len(self.channels)
        lines = [
            f"{self.rows:,} rows x {count_of(len(self.channels), 'channel')}, "
            f"steps of {self._step()}, {self.first} to {self.last}",
            f"  channels  {named(self.channels)}",
            f"  gaps      {self.missing:,} of {values:,} values are missing ({self.missing / values:.1%}), "
            f"in {count_of(self.gaps, 'gap')}; {self.unreadable:.1%} of the tokens cannot be read"
            if self.missing
            else "  gaps      none",
            f"  cycles    {', '.join(map(str, self.cycle)) or 'none by the step'}{self._in_values()}",
        ]
        if self.cost is None:
            lines += [f"  a fit     would be refused: {self.refusal}"]
        else:
            lines += [
                f"  windows   {self.windows:,} to train on, {self.validation_windows:,} to select on "
                f"(look-back {self.look_back}, horizon {self.horizon}, patches of {self.patch_len})",
                f"  a fit     {self.cost.words}",
            ]
        for each in self.advice:
            lines += ["", f"{each.topic}: {each.finding}", f"  {each.remedy}"]
        return "\n".join(lines)

    def _step(self) -> str:
        step = self.step
        return step if step.split()[-1].startswith("step") else Frequency.parse(step).words

    def _in_values(self) -> str:
        if not self.rhythms:
            return "; none found in the values"
        cycles = (f"{each.length} in {each.channels} of {count_of(each.examined, 'channel')}" for each in self.rhythms)
        return f"; found in the values: {', '.join(cycles)}"
