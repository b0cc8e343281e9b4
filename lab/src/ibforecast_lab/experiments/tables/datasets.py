"""The statistics of the benchmarks. Paper: Table "datasets"."""

from dataclasses import asdict

from ibforecast_lab.data.catalogue import CATALOGUE
from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.sheet import Sheet


def sheet(records: list[Record]) -> Sheet:
    """Channels, rows, frequency, cycle and split of every data set in the catalogue."""
    rows, body = [], []
    for dataset in CATALOGUE.values():
        split = dataset.parts
        parts = (split.train_end, split.validation_end - split.train_end, split.test_end - split.validation_end)
        rows.append(asdict(dataset) | dict(zip(("train", "validation", "test"), parts, strict=True)))
        cells = (dataset.name, dataset.channels, f"{dataset.rows:,}", dataset.frequency, dataset.cycle)
        body.append([*map(str, cells), " / ".join(f"{part:,}" for part in parts)])
    header = ["data", "channels", "rows", "frequency", "cycle", "train / validation / test rows"]
    return Sheet("Statistics of the data sets", rows, header, body)
