"""Build every table and figure of results/ from the ledger: `make results`.

Tables are written to OUT/tables as Markdown and JSON, figures to OUT/figures as PNG and SVG. The same records give the
same bytes. A figure without any records is not written.
"""

import argparse
from pathlib import Path

from ibforecast.core.files import write_atomically
from ibforecast_lab.experiments.figures import FIGURES, channels
from ibforecast_lab.experiments.ledger import LEDGER, Ledger, Record
from ibforecast_lab.experiments.sheet import FORMATS
from ibforecast_lab.experiments.tables import sheets_of
from ibforecast_lab.plots.records import FORMS


def tables(records: list[Record]) -> dict[str, bytes]:
    """Return every table as Markdown and as JSON, by the name of its file."""
    return {
        f"{label}.{kind}": FORMATS[kind](sheet).encode()
        for label, sheet in sheets_of(records).items()
        for kind in ("md", "json")
    }


def render(ledger: Path, bench: Path, out: Path) -> list[Path]:
    """Write every table and figure; return the files that exist now."""
    records = Ledger(ledger).records()
    files: dict[Path, bytes | None] = {out / "tables" / name: content for name, content in tables(records).items()}
    for form in FORMS:
        for label, figure in FIGURES.items():
            files[out / "figures" / f"{label}.{form}"] = figure(records, form)
        files[out / "figures" / f"channels.{form}"] = channels.figure(bench, form)
    for path, content in files.items():
        if content is None:
            path.unlink(missing_ok=True)
        else:
            write_atomically(path, content)
    return [path for path, content in files.items() if content is not None]


def main(arguments: list[str] | None = None) -> None:
    """Render from the command line."""
    parser = argparse.ArgumentParser(description="Build tables and figures from the ledger.")
    parser.add_argument("--ledger", type=Path, default=LEDGER, help="packed ledger")
    parser.add_argument("--pack", action="store_true", help="first move the records of new runs into the packed ledger")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for tables/ and figures/")
    parser.add_argument("--bench", type=Path, help="folder of the benchmarks' records; default: OUT/bench")
    chosen = parser.parse_args(arguments)
    if chosen.pack:
        Ledger(chosen.ledger).pack()
    render(chosen.ledger, chosen.bench or chosen.out / "bench", chosen.out)


if __name__ == "__main__":
    main()
