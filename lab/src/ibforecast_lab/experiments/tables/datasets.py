"""The statistics of the benchmarks. Paper: Table "datasets"."""

from dataclasses import asdict

from ibforecast_lab.data.catalogue import CATALOGUE
from ibforecast_lab.experiments.frame import Row
from ibforecast_lab.experiments.sheet import Column, Table, count

PARTS = ("train", "validation", "test")


def _rows(tidy: list[Row]) -> list[Row]:
    rows = []
    for dataset in CATALOGUE.values():
        split = dataset.parts
        parts = (split.train_end, split.validation_end - split.train_end, split.test_end - split.validation_end)
        rows.append(asdict(dataset) | dict(zip(PARTS, parts, strict=True)))
    return rows


datasets = Table(
    title="Statistics of the data sets",
    keys=("name",),
    columns=(
        Column("data", "name"),
        Column("channels", "channels"),
        Column("rows", "rows", count),
        Column("frequency", "frequency"),
        Column("cycle", "cycle"),
        *(Column(f"{part} rows", part, count) for part in PARTS),
    ),
    rows=_rows,
    lines=list,
)
