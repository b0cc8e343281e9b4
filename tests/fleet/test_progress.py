"""A forecast of many series that was killed continues: nothing is lost, nothing is computed or listed twice."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ibforecast import IBForecaster
from ibforecast.cli.main import run
from ibforecast.core.workers import Workers
from ibforecast.fleet import Fleet
from ibforecast.fleet.work import UNSEEN

Make = Callable[..., Any]


@dataclass(frozen=True)
class Stopping(Workers):
    """A worker that counts its items, and is interrupted before one of them."""

    started: list[str]
    before: int = 1000

    def run(self, items: Iterable[Any], work: Callable[[Any], Any]) -> Iterator[tuple[Any, Any, str]]:
        for job in items:
            if len(self.started) == self.before:
                raise KeyboardInterrupt
            self.started.append(job.member.name)
            yield job, work(job), ""


@pytest.fixture(scope="module")
def tables(series: Make) -> dict[str, pd.DataFrame]:
    return {f"s{seed}": series(seed, 100) for seed in range(6)}


@pytest.fixture(scope="module")
def fleet(tables: dict[str, pd.DataFrame], tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """A global fleet that has seen three of the series."""
    made = Fleet(tmp_path_factory.mktemp("progress") / "fleet")
    some = {name: tables[name] for name in ("s0", "s1", "s2")}
    made.fit_global(some, IBForecaster(horizon=12, look_back=48, recipe="sealed", epochs=1, device="cpu"))
    return made


def stopped(fleet: Fleet, tables: dict[str, pd.DataFrame], file: Path) -> list[str]:
    """Interrupt a forecast before its fifth series, and continue it; return the series that the second run started."""
    with pytest.raises(KeyboardInterrupt):
        fleet.predict(tables, engine=Stopping([], 4), checkpoint=file)
    return continued(fleet, tables, file)


def continued(fleet: Fleet, tables: dict[str, pd.DataFrame], file: Path, **settings: Any) -> list[str]:
    started: list[str] = []
    found = fleet.predict(tables, engine=Stopping(started), checkpoint=file, **settings)
    plain = fleet.predict(tables, **settings)
    assert found.table().equals(plain.table())
    assert [each.name for each in found.outcomes] == list(tables)
    assert {each.name: each.state for each in found.outcomes} == {
        name: "forecast" if name in started else "kept" for name in tables
    }
    assert {each.name for each in found.outcomes if each.message == UNSEEN} == {"s3", "s4", "s5"}
    return started


def test_a_forecast_that_was_stopped_continues(fleet: Fleet, tables: dict[str, pd.DataFrame], tmp_path: Path) -> None:
    assert stopped(fleet, tables, tmp_path / "so far") == ["s4", "s5"]
    assert continued(fleet, tables, tmp_path / "so far") == []


@pytest.mark.parametrize("cut", [1, 40, 400], ids=lambda count: f"{count} bytes less")
def test_an_entry_that_is_not_whole_is_computed_again(
    fleet: Fleet, tables: dict[str, pd.DataFrame], tmp_path: Path, cut: int
) -> None:
    stopped(fleet, tables, tmp_path / "so far")
    content = (tmp_path / "so far").read_bytes()
    (tmp_path / "so far").write_bytes(content[:-cut])
    assert continued(fleet, tables, tmp_path / "so far") == ["s5"]
    assert (tmp_path / "so far").read_bytes() != content[:-cut]
    damaged = bytearray((tmp_path / "so far").read_bytes())
    damaged[300] ^= 1
    (tmp_path / "so far").write_bytes(damaged)
    assert continued(fleet, tables, tmp_path / "so far") == list(tables)


def test_a_series_is_forecast_again_if_its_table_moment_or_model_changed(
    fleet: Fleet, tables: dict[str, pd.DataFrame], tmp_path: Path
) -> None:
    stopped(fleet, tables, tmp_path / "so far")
    other = tables | {"s4": tables["s4"].assign(y=tables["s4"]["y"] + 1)}
    assert continued(fleet, other, tmp_path / "so far") == ["s4"]
    assert continued(fleet, tables, tmp_path / "so far", at="2023-01-04 00:00") == list(tables)


def test_the_same_command_continues_and_leaves_only_the_forecasts(
    fleet: Fleet, tables: dict[str, pd.DataFrame], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = pd.concat(table.assign(unique_id=name) for name, table in tables.items())
    long.to_parquet(tmp_path / "long.parquet")
    (tmp_path / "out").mkdir()
    file = tmp_path / "out" / ".next.csv.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        fleet.predict(tmp_path / "long.parquet", engine=Stopping([], 4), checkpoint=file)
    words = ["fleet", "predict", str(fleet.folder), str(tmp_path / "long.parquet"), "--jobs", "1"]
    with pytest.raises(SystemExit) as ended:
        run([*words, "--out", str(tmp_path / "out" / "next.csv")])
    assert ended.value.code == 0
    assert "6 series: 4 kept, 2 forecast\n" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["next.csv"]
