"""The suite: ten real tables that are not the usual benchmarks, their facts, and their reader.

The files are not byte copies of their sources, so they are never downloaded: they are searched in the folder `tables`
of IBFORECAST_DATA. A figure computed from a table must be published with the table's origin.
"""

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ibforecast.core.calendar import Clock, Frequency
from ibforecast.core.errors import DataError
from ibforecast.data.series import Series
from ibforecast.data.splits import Split
from ibforecast_lab.data.catalogue import unzipped

KNOWN = "-known"
"""The end of the name of a table whose covariates are given ahead. It is read from the same file."""

PARTS = (0.7, 0.1, 0.2)
"""The fractions of training, validation and test rows."""


@dataclass(frozen=True)
class SuiteTable:
    """The facts of a table; `columns` is the number of columns after the dates, `sha256` of the unpacked file.

    The columns in `past` are read and not forecast, those in `future` are known ahead. All others are forecast.
    `learned` are the cycles that a plain fit learns: the natural one of the step, and a longer one that is found in the
    training rows. They are written down here so that a plan of runs needs no files.
    """

    name: str
    rows: int
    columns: int
    frequency: str
    cycle: int
    learned: tuple[int, ...]
    horizons: tuple[int, ...]
    content: str
    origin: str
    licence: str
    sha256: str
    past: tuple[str, ...] = ()
    future: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """Name of the file."""
        return f"{self.name.removesuffix(KNOWN)}.csv.gz"

    @property
    def channels(self) -> int:
        """Number of channels, with those that are only read."""
        return self.columns - len(self.future)

    @property
    def parts(self) -> Split:
        """Borders of the training, validation and test rows."""
        return Split.by_fractions(PARTS, self.rows)


_FREE, _REPOSITORY = "CC BY 4.0", "BSD-3 (of the repository)"
_CATCHMENTS = (
    *("A273011002", "A605102001", "B222001001", "E540031001", "E645651001", "F439000101", "H010002001"),
    *("H120101001", "H622101001", "J171171001", "J421191001", "K134181001", "K265401001", "K731261001"),
    *("V123521001", "X031001001", "X045401001", "Y643401001", "Y862000101"),
)
_EPF = SuiteTable(
    name="epf_de",
    rows=52_416,
    columns=3,
    frequency="1h",
    cycle=24,
    learned=(24, 168),
    horizons=(24,),
    content="day-ahead electricity price, forecasts of wind power and load",
    origin="copy of epftoolbox (Lago et al. 2021) by the authors of TimeXer",
    licence="none found for the data",
    sha256="59322d6681c112907666a714110cfb5356223d4c546299b416c61b3593ba5f7f",
)
_ALL = (
    SuiteTable(
        name="bike_dc",
        rows=17_544,
        columns=8,
        frequency="1h",
        cycle=24,
        learned=(24, 168),
        horizons=(24,),
        content="bicycle rentals, weather, holidays",
        origin="skforecast-datasets (UCI Bike Sharing)",
        licence=f"{_REPOSITORY}; UCI {_FREE}",
        sha256="4a2dec4d1508388d3f8769d10d4631337706b0e7d2b9f64ee454d9388cdab16a",
    ),
    SuiteTable(
        name="elec2_nsw",
        rows=27_888,
        columns=5,
        frequency="30min",
        cycle=48,
        learned=(48, 336),
        horizons=(24,),
        content="electricity price and demand of two states, transfer between them",
        origin="CapyMOA (Harries 1999)",
        licence=_REPOSITORY,
        sha256="8630ad249a027d74a6623fcf382ab752d875b934abba3b37d36af14eef6177ec",
    ),
    _EPF,
    replace(
        _EPF,
        name=f"{_EPF.name}{KNOWN}",
        content="the same price, with the forecasts of wind power and load known ahead",
        future=("Wind power forecast", "Ampirion zonal load forecast"),
    ),
    SuiteTable(
        name="flow_wye",
        rows=17_544,
        columns=2,
        frequency="1h",
        cycle=24,
        learned=(24,),
        horizons=(24,),
        content="rain and river flow",
        origin="hydromad",
        licence="GPL 2 or later (of the package)",
        sha256="b9678e9601a3dfce86f5351d6af5c4874e09f43ee36abe6a236bfadb25646dd9",
    ),
    SuiteTable(
        name="flow_france19",
        rows=7_305,
        columns=76,
        frequency="1d",
        cycle=365,
        learned=(7,),
        horizons=(7,),
        content="flow of 19 catchments; rain, temperature and evaporation are only read",
        origin="airGRdatasets",
        licence=_FREE,
        sha256="8148e00b15118926d43ab5e76400e9b09221cf64a7073aea2bb0c975d6e3f8e9",
        past=tuple(f"{catchment}_{kind}" for catchment in _CATCHMENTS for kind in "PTE"),
    ),
    SuiteTable(
        name="metro_i94",
        rows=28_776,
        columns=10,
        frequency="1h",
        cycle=168,
        learned=(24, 168),
        horizons=(24,),
        content="motorway traffic, weather, holidays",
        origin="UCI Metro Interstate Traffic Volume",
        licence=_FREE,
        sha256="beef15c44ed626f685ddb9d85f44986c4533f9c2abff6a3fbd556b7b2469d3e0",
    ),
    SuiteTable(
        name="pm25_beijing",
        rows=43_824,
        columns=11,
        frequency="1h",
        cycle=24,
        learned=(24,),
        horizons=(24,),
        content="fine dust and weather",
        origin="UCI Beijing PM2.5",
        licence=_FREE,
        sha256="b70ac8b06538417f6a37f384959606d68b44f54b3361ea9ca42f8f289b2a75e3",
    ),
    SuiteTable(
        name="tetuan",
        rows=52_416,
        columns=8,
        frequency="10min",
        cycle=144,
        learned=(144,),
        horizons=(24, 144),
        content="electric power of three zones of a city, weather",
        origin="UCI Power Consumption of Tetouan City",
        licence=_FREE,
        sha256="c4be5e43664f4ffb6c2b35e8a08cba13291d6132d3fdec153be0f55e548c99ac",
    ),
    SuiteTable(
        name="vic_elec",
        rows=52_608,
        columns=3,
        frequency="30min",
        cycle=48,
        learned=(48, 336),
        horizons=(48,),
        content="electricity demand, temperature, holidays (times in UTC)",
        origin="skforecast-datasets (tsibbledata)",
        licence=_REPOSITORY,
        sha256="2e70807365220871cf4edf0bf33ba9c8f7e195dde31b3cca2832e86ac99e03c7",
    ),
    SuiteTable(
        name="eia_demand",
        rows=43_848,
        columns=54,
        frequency="1h",
        cycle=168,
        learned=(24, 168),
        horizons=(24, 96),
        content="electricity demand of 54 balancing authorities of the United States",
        origin="truggles/EIA_Cleaned_Hourly_Electricity_Demand_Data",
        licence=_FREE,
        sha256="266cd36332807325cc2cbe7a5604272c44fe98bb2dcd522446465057bd019bff",
    ),
)
SUITE: dict[str, SuiteTable] = {table.name: table for table in _ALL}


def locate(name: str) -> Path | None:
    """Return the path of the file of a table; None if it is not on this machine."""
    folder = os.environ.get("IBFORECAST_DATA")
    path = Path(folder or "", "tables", SUITE[name].file)
    return path if folder and path.is_file() else None


def load(name: str) -> Series:
    """Read a table on an even clock, its phases counted by the calendar; refuse a file that is not the known one."""
    table, path = SUITE[name], locate(name)
    if path is None:
        raise DataError(
            f"{name} must be in the folder tables of IBFORECAST_DATA",
            f"no {table.file} in {os.environ.get('IBFORECAST_DATA') or 'it, because IBFORECAST_DATA is not set'}",
            "set IBFORECAST_DATA to the folder that contains tables; the file cannot be downloaded",
        )
    plain = unzipped(path.read_bytes(), path)
    if (digest := hashlib.sha256(plain).hexdigest()) != table.sha256:
        raise DataError(f"{path} must have the sha256 {table.sha256}, unpacked", digest, "copy the file again")
    return parse(table, plain.decode())


def parse(table: SuiteTable, text: str) -> Series:
    """Read the text of a table: dates first, then numbers; an empty field is a missing value.

    A step without a row becomes a row of missing values, as with `irregular="fill"` in the product.
    """
    header, *lines = text.splitlines()
    columns = header.split(",")[1:]
    cells = np.array([line.split(",") for line in lines])
    numbers = np.where(cells[:, 1:] == "", "nan", cells[:, 1:]).astype(np.float64)
    frequency = Frequency.parse(table.frequency)
    stamps = cells[:, 0].astype("datetime64[us]")
    rows = frequency.count(stamps[0], stamps)
    values = np.full((rows[-1] + 1, len(columns)), np.nan)
    values[rows] = numbers
    if values.shape != (table.rows, table.columns):
        raise DataError(
            f"{table.name} must be {table.rows} x {table.columns}",
            f"{values.shape[0]} x {values.shape[1]}",
            "copy the file again",
        )
    places = {name: place for place, name in enumerate(columns)}
    targets = tuple(name for name in columns if name not in (*table.past, *table.future))
    channels = (*targets, *table.past)
    clock = Clock(frequency.after(stamps[0], np.arange(len(values)), day=1), frequency)
    return Series(
        values=np.ascontiguousarray(values[:, [places[name] for name in channels]]),
        channels=channels,
        clock=clock,
        past=len(table.past),
        covariates=table.future,
        known=np.ascontiguousarray(values[:, [places[name] for name in table.future]]) if table.future else None,
    )
