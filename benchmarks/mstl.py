"""MSTL of statsforecast for `benchmarks.fleet`: `python mstl.py HISTORIES.npz FORECASTS.npz`.

It is a file of its own, which needs only numpy and statsforecast, because that library and this one may need different
versions of pandas. Each history is an array without gaps; its forecast has the same name.
"""

import sys

import numpy as np
from statsforecast.models import MSTL

HORIZON, SEASONS = 24, [24, 168]


def main(histories: str, forecasts: str) -> None:
    """Forecast from the end of every history, with the trend by AutoETS, which is the library's default."""
    with np.load(histories) as given:
        ahead = {
            name: MSTL(season_length=SEASONS).forecast(y=given[name], h=HORIZON)["mean"].astype(np.float64)
            for name in given.files
        }
    np.savez(forecasts, **ahead)


if __name__ == "__main__":
    main(*sys.argv[1:])
