"""The benchmark of the first minutes, on a table of three weeks."""

from pathlib import Path

import pytest

from ibforecast.data.sources import write


def test_the_first_minutes_end_with_a_verified_receipt(tmp_path: Path) -> None:
    if not (Path(__file__).parents[2] / "benchmarks").is_dir():
        pytest.skip("needs the sources")
    from benchmarks import first

    table = first.table_of(21)
    assert (table.num_rows, table.num_columns) == (21 * 96, 11)
    write(table, tmp_path / "table.csv")
    results = first.walk(tmp_path / "table.csv", ("--device", "cpu", "--epochs", "1", "--sealed"))
    assert (results["verified"], results["receipts_verified"]) == (1, 1)
    waits = [results[f"{verb}_wait_seconds"] for verb in ("check", "fit", "explain", "verify")]
    assert min(waits) > 0
    assert results["seconds"] == pytest.approx(sum(waits))
