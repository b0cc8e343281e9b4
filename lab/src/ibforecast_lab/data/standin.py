"""Generated stand-ins for the data sets with hundreds of channels: the same sizes and cycles, but invented values.

They show that every path runs at that size. Errors measured on them say nothing about the real data. Their names end
in "-stand-in" so that no table can mistake one for the real data set.
"""

from dataclasses import replace

import numpy as np

from ibforecast.core.calendar import Clock, Frequency
from ibforecast.data.series import Series
from ibforecast_lab.data.catalogue import CATALOGUE, DataSet

SUFFIX = "-stand-in"
STAND_INS: dict[str, DataSet] = {
    f"{name}{SUFFIX}": replace(
        CATALOGUE[name], name=f"{name}{SUFFIX}", url="generated", checksum="generated", licence="–"
    )
    for name in ("Electricity", "Solar", "Traffic")
}


def stand_in(name: str, seed: int = 2024) -> Series:
    """Make a stand-in: each channel is a random mixture of a few shared sinusoids and slow factors, plus noise."""
    facts = STAND_INS[name]
    random = np.random.default_rng(seed)
    step = np.arange(facts.rows)
    rhythms = np.stack(
        [
            np.sin(2 * np.pi * (step / period + shift))
            for period in (facts.cycle, facts.cycle / 7)
            for shift in (0, 0.25)
        ]
    )
    factors = np.cumsum(random.normal(0, 0.02, (6, facts.rows)), axis=1)
    values = random.normal(size=(facts.channels, 4)) @ rhythms + random.normal(size=(facts.channels, 6)) @ factors
    values += random.normal(0, 0.3, values.shape)
    frequency = Frequency.parse(facts.frequency)
    stamps = np.datetime64(facts.start, "us") + step * np.timedelta64(frequency.seconds, "s")
    clock = Clock(stamps, frequency, by_row=True)
    return Series(np.ascontiguousarray(values.T), tuple(map(str, range(facts.channels))), clock)
