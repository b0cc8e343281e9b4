"""Advice on lengths: the cycles, the look-back, and whether a table is long enough."""

from collections.abc import Iterator
from math import ceil

from ibforecast.check.advice import Advice
from ibforecast.core.errors import IBForecastError
from ibforecast.core.words import count_of
from ibforecast.data.rhythms import Rhythm
from ibforecast.data.series import Series
from ibforecast.data.splits import Split
from ibforecast.settings import Settings

LONGEST_ADVISED = 336
"""The longest look-back that is advised, because each step costs time."""

FEW_WINDOWS = 200
"""With fewer training windows, a shorter look-back is advised."""

NO_CYCLE = (1,)
"""The setting for a table without a cycle: every row has the same phase."""


def usual_horizon(series: Series) -> int:
    """Return the horizon for a check if none is given: the cycle of the table's step, or 24 if it has none."""
    try:
        return series.clock.frequency.cycle()
    except IBForecastError:
        return 24


def about_cycles(settings: Settings, rhythms: tuple[Rhythm, ...], given: tuple[int, ...]) -> Iterator[Advice]:
    """Advise to learn the cycles that were found in the values and are not learned yet."""
    lengths = tuple(each.length for each in rhythms)
    further = tuple(length for length in lengths if length not in given)
    if not lengths and not given:
        option = f"--cycle {NO_CYCLE[0]}"
        remedy = f"learn none: {option}; if the values have one, give its number of steps instead"
        yield Advice("cycles", "the step has no natural cycle, and none was found", remedy, (option,))
    if not further:
        return
    option = f"--cycle {','.join(map(str, lengths if settings.cycle == 'auto' else sorted({*given, *lengths})))}"
    scores = ", ".join(
        f"{each.length} ({each.channels} of {count_of(each.examined, 'channel')}, autocorrelation {each.score:.2f})"
        for each in rhythms
        if each.length in further
    )
    yield Advice("cycles", f"the values repeat after {scores}", f"learn it: {option}", (option,))


def about_defaults(settings: Settings, sized: Settings, series: Series) -> Iterator[Advice]:
    """Advise on a table that is too short for the default look-back or split."""
    if (settings.look_back, settings.split) != (sized.look_back, sized.split):
        ends = Split.by_fractions(sized.split, series.rows)
        finding = (
            f"{series.rows} rows are too few for the default look-back or split: a fit takes a look-back of "
            f"{sized.look_back}, trains on {ends.train_end} rows and selects on {ends.validation_end - ends.train_end}"
        )
        yield Advice("short table", finding, "expect little of a fit; to choose otherwise: --look-back, --split")


def about_size(
    settings: Settings, series: Series, rhythms: tuple[Rhythm, ...], cycle: tuple[int, ...], windows: int
) -> Iterator[Advice]:
    """Advise on the look-back: as long as the longest cycle if the table allows it, shorter if the table is short."""
    longest = max((each.length for each in rhythms if each.length <= LONGEST_ADVISED), default=0)
    rows = Split.by_fractions(settings.split, series.rows).train_end
    if settings.look_back < longest and rows >= 5 * (longest + settings.horizon):
        option = f"--look-back {longest}"
        finding = f"a look-back of {settings.look_back} does not span the cycle of {longest}"
        factor = (longest + settings.horizon) / (settings.look_back + settings.horizon)
        yield Advice("look-back", finding, f"span it, in about {factor:.1f} times the time: {option}", (option,))
    elif windows < FEW_WINDOWS:
        first = min(cycle, default=1)
        shorter = max(ceil((rows - settings.horizon) / 2 / first) * first, first)
        finding = f"the table has only {count_of(windows, 'window')} to train on"
        if shorter < settings.look_back and shorter + settings.horizon <= rows:
            option = f"--look-back {shorter}"
            yield Advice("look-back", finding, f"shorten the look-back: {option}", (option,))
        else:
            yield Advice("rows", finding, "add rows, or shorten --look-back or --horizon; expect little of a fit")
