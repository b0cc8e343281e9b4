"""Cycles found in the values of a series, by autocorrelation.

The rule, for one channel and a length of c steps:

1. Two views are examined: the differences from row to row, and the values without their moving mean over c rows. The
   first needs few rows, the second shows slow cycles in noise. In both, values beyond four robust standard deviations
   are clipped, and the mean of each phase of the cycles found before is taken away.
2. The score is the mean autocorrelation at c, 2c, … up to 6c, minus the mean over all lags up to there, which is 0 for
   a cycle and large for a process with a long memory. If c is a multiple of a cycle found before, the mean at the
   neighbouring multiples is subtracted instead, so that a daily cycle that changes over the year does not look like a
   week.
3. A cycle is found if all of this holds: the score is at least 0.1; it is beyond that of noise with the same memory (in
   at most one channel of a hundred, over all lengths and both views together); the autocorrelation does not fall to
   less than half from c to its later multiples; no length nearby has a larger score; no divisor of c has a score nearly
   as large.
4. Natural lengths, such as a day and a week of hours, are examined first. Other lengths are examined if none of these
   is found. One that is found in fewer channels of the series than a natural length, and with a score below 0.2, is
   left out.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from jaxtyping import Float64

from ibforecast.core.calendar import DAY, Frequency

SMALLEST_SCORE, WEAK_SCORE = 0.1, 0.2
FALSE_ALARMS = 0.01
"""The largest share of channels of noise in which a cycle is found."""

MULTIPLES = 6
CLIPPED_AT = 4.0
NEARLY = 0.02
"""The score of a neighbouring length may be larger by this much."""

NEARLY_ALL = 0.9
"""A length is only a multiple of the cycle if a divisor of it has this share of its score."""

SHORTEST, LONGEST = 3, 400
"""Lengths that are examined if the step has no natural ones; otherwise up to twice the longest of these."""

FEWEST = 12
"""Values that a channel must have."""

EXAMINED = 32
"""Channels that are examined, evenly spaced."""


@dataclass(frozen=True)
class Rhythm:
    """A cycle, the number of channels it was found in, and their mean score."""

    length: int
    channels: int
    examined: int
    score: float


def rhythms_of(values: Float64[np.ndarray, "row channel"], frequency: Frequency) -> tuple[Rhythm, ...]:
    """Return the cycles found in the channels of a series, the shortest first."""
    places = np.unique(np.linspace(0, values.shape[1] - 1, EXAMINED).round().astype(np.int64))
    lengths = natural_lengths(frequency)
    cycles: dict[int, list[float]] = {}
    for place in places:
        with np.errstate(all="ignore"):  # squares of huge values are infinite: no cycle, and a fit refuses the table
            scores_by_length = cycles_in(values[:, place], lengths, FALSE_ALARMS / len(places))
        for length, score in scores_by_length.items():
            cycles.setdefault(length, []).append(score)
    often = {length: len(scores) for length, scores in cycles.items()}
    usual = max((often[length] for length in lengths if length in often), default=0)
    weak = {
        length
        for length, scores in cycles.items()
        if length not in lengths and often[length] < usual and np.mean(scores) < WEAK_SCORE
    }
    return tuple(
        Rhythm(length, len(scores), len(places), float(np.mean(scores)))
        for length, scores in sorted(cycles.items())
        if length not in weak
        # In noise a channel may show 366 where the others show 365.
        and not any(0 < abs(other - length) <= max(1, length // 50) and often[other] > often[length] for other in often)
    )


def natural_lengths(frequency: Frequency) -> tuple[int, ...]:
    """Return the lengths in steps of an hour, a day, a week or a year, as far as they fit the step."""
    if frequency.months:
        return (12 // frequency.months,) if frequency.months < 12 and 12 % frequency.months == 0 else ()
    if frequency.workdays:
        return (5,) if frequency.workdays == 1 else ()
    if frequency.seconds == 7 * DAY:
        return (52,)
    spans = (3600, DAY, 7 * DAY) if frequency.seconds < 60 else (DAY, 7 * DAY)
    if frequency.seconds == DAY:
        spans = (7 * DAY, 365 * DAY)
    lengths = (span // frequency.seconds for span in spans if span % frequency.seconds == 0)
    return tuple(length for length in lengths if length > 1)


def cycles_in(values: Float64[np.ndarray, " row"], natural: tuple[int, ...], alarms: float) -> dict[int, float]:
    """Return the lengths of the cycles of one channel, with their scores; `alarms` is the share of false ones."""
    longest = min(len(values) // 3, 2 * max(natural, default=0) or LONGEST)
    if (~np.isnan(values)).sum() < FEWEST or not np.nanstd(values):
        return {}
    unlikely = NormalDist().inv_cdf(1 - alarms / 2 / max(longest, 1))
    cycles: dict[int, float] = {}
    for length in natural:
        if length <= longest and (score := _best_score(values, length, tuple(cycles), unlikely)):
            cycles[length] = score
    if cycles or longest < SHORTEST:
        return cycles
    for length in {_strongest(_Correlations.of(view), longest) for view in _views(values, longest)} - {0}:
        cycles[length] = _best_score(values, length, (), unlikely)
    score, length = max(((score, length) for length, score in cycles.items()), default=(0.0, 0))
    return {length: score} if score else {}


def _best_score(values: Float64[np.ndarray, " row"], length: int, cycles: tuple[int, ...], unlikely: float) -> float:
    """Return the larger score of the two views, 0 if the length is a cycle in neither."""
    return max(_Correlations.of(view, cycles).score(length, cycles, unlikely) for view in _views(values, length))


def _views(values: Float64[np.ndarray, " row"], length: int) -> tuple[Float64[np.ndarray, " _"], ...]:
    """Return the differences, and the values without their moving mean."""
    return np.diff(values), values - _moving_mean(values, length)


def _moving_mean(values: Float64[np.ndarray, " row"], length: int) -> Float64[np.ndarray, " row"]:
    """Return the mean of the observed values among the `length` rows around each row; fewer at both ends."""
    seen = ~np.isnan(values)
    sums, counts = (np.concatenate([[0.0], np.cumsum(each)]) for each in (np.where(seen, values, 0.0), seen))
    first = np.clip(np.arange(len(values)) - length // 2, 0, None)
    last = np.clip(first + length, None, len(values))
    return np.asarray((sums[last] - sums[first]) / np.maximum(counts[last] - counts[first], 1))


def _clipped(values: Float64[np.ndarray, " row"]) -> Float64[np.ndarray, " row"]:
    middle = np.nanmedian(values)
    spread = 1.4826 * np.nanmedian(np.abs(values - middle)) or np.nanstd(values)
    return np.asarray(np.clip(values - middle, -CLIPPED_AT * spread, CLIPPED_AT * spread))


def _without(values: Float64[np.ndarray, " row"], length: int) -> Float64[np.ndarray, " row"]:
    """Return the values without the mean of each phase of a cycle."""
    whole = np.pad(values, (0, -len(values) % length), constant_values=np.nan).reshape(-1, length)
    means = np.nansum(whole, axis=0) / np.maximum((~np.isnan(whole)).sum(axis=0), 1)
    return np.asarray((whole - means).ravel()[: len(values)])


@dataclass(frozen=True)
class _Correlations:
    """The autocorrelation at every lag up to half the rows, from pairs that are both observed."""

    lags: Float64[np.ndarray, " lag"]
    observed: int

    @classmethod
    def of(cls, values: Float64[np.ndarray, " row"], cycles: tuple[int, ...] = ()) -> "_Correlations":
        """Correlate clipped values without the cycles that were found."""
        seen = ~np.isnan(values)
        if not seen.any():
            return cls(np.zeros(1), 0)
        values = _clipped(values)
        for length in cycles:
            values = _without(values, length)
        centred = np.where(seen, values - np.nanmean(values), 0.0)
        rows, size = len(values), 1 << (2 * len(values) - 1).bit_length()
        products, pairs = (
            np.fft.irfft(np.abs(np.fft.rfft(each, size)) ** 2, size)[: rows // 2 + 1]
            for each in (centred, seen.astype(np.float64))
        )
        means = np.where(pairs > 0.5, products / np.maximum(pairs, 1.0), 0.0)
        return cls(means / means[0] if means[0] > 0 else np.zeros_like(means), int(seen.sum()))

    def comb(self, length: int, shift: int = 0) -> Float64[np.ndarray, " multiple"]:
        """Return the autocorrelation at the multiples of a length, or next to them."""
        lags = length * np.arange(1, MULTIPLES + 1) + shift
        return self.lags[lags[lags < len(self.lags)]]

    def height(self, length: int) -> float:
        """Return the mean at the multiples of a length, less the mean of all lags up to there."""
        comb = self.comb(length)
        return float(comb.mean() - self.lags[length // 2 + 1 : length * len(comb) + length // 2 + 1].mean())

    def score(self, length: int, cycles: tuple[int, ...], unlikely: float) -> float:
        """Return the score of a length, or 0 if it is not a cycle by the rule above."""
        comb = self.comb(length)
        if len(comb) < 2 or comb[len(comb) // 2 :].mean() < comb[0] / 2:
            return 0.0
        score, reach = self.height(length), max(1, length // 4)
        nearby = (near for near in range(max(2, length - reach), length + reach + 1) if len(self.comb(near)) > 1)
        if max(self.height(near) for near in nearby) > score + NEARLY:
            return 0.0
        parts = (part for part in range(SHORTEST, length // 2 + 1) if length % part == 0 and part not in cycles)
        if max((self.height(part) for part in parts), default=0.0) >= NEARLY_ALL * score:
            return 0.0
        for other in cycles:
            if length % other == 0:
                score = float(comb.mean() - (self.comb(length, -other).mean() + self.comb(length, other).mean()) / 2)
        # Bartlett's variance of an autocorrelation. Half of the rows at least are in the pairs of a lag, hence 2.
        memory = 1 + 2 * float((self.lags[1:length] ** 2).sum())
        noise = unlikely * float(np.sqrt(2 * memory / (self.observed * len(comb))))
        return score if score >= max(SMALLEST_SCORE, noise) else 0.0


def _strongest(correlations: _Correlations, longest: int) -> int:
    """Return the shortest length with nearly the largest score, or 0 if there is none to examine."""
    lengths = range(SHORTEST, longest + 1)
    heights = {length: correlations.height(length) for length in lengths if len(correlations.comb(length)) > 1}
    if not heights or not (largest := max(heights.values())) > 0:  # or not a number, if squares are infinite
        return 0
    return min(length for length, height in heights.items() if height >= NEARLY_ALL * largest)
