"""The Ray engine, on a real cluster of two nodes on this machine."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ibforecast_lab.experiments.cluster import run_missing_on_ray
from ibforecast_lab.experiments.ledger import Cell, Ledger, Record
from ibforecast_lab.experiments.local import run_missing

ray = pytest.importorskip("ray", reason="needs the ray extra")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own

RECIPE = """
forecaster = "dlinear"
[train]
epochs = 1
batch = 256
learning_rate = 1e-3
"""


@pytest.fixture
def cluster(data_folder: Path) -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.second = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def outcome(record: Record) -> Record:
    """Return the record without the fields that depend on the machine."""
    return replace(record, seconds=0.0, windows_per_second=0.0, finished="", device="")


def test_a_cluster_that_loses_a_node_gives_the_records_of_the_local_engine_and_loses_no_cell(
    cluster: Any, tmp_path: Path
) -> None:
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(RECIPE)
    cells = [Cell("ETTh1", 96, str(recipe), seed) for seed in range(4)]
    finished: list[Cell] = []

    def kill_a_node_after_the_first(cell: Cell, record: Record | None, failure: str) -> None:
        finished.append(cell)
        if len(finished) == 1:
            cluster.remove_node(cluster.second, allow_graceful=False)

    failures = run_missing_on_ray(
        cells, tmp_path / "ray" / "ledger.jsonl.zst", cluster.address, on_cell=kill_a_node_after_the_first
    )
    assert failures == {}
    assert sorted(finished, key=lambda cell: cell.seed) == cells

    run_missing(cells[:2], tmp_path / "local" / "ledger.jsonl.zst", "cpu", jobs=1)
    for cell in cells[:2]:
        remote, local = (
            Ledger(tmp_path / "ray" / "ledger.jsonl.zst").read(cell),
            Ledger(tmp_path / "local" / "ledger.jsonl.zst").read(cell),
        )
        assert remote is not None
        assert local is not None
        assert outcome(remote) == outcome(local)
