"""Training over two processes: the same weights in both, those of one process, and one that saves and prints."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.train.two_ranks import main

from ibforecast.core.errors import UsageError
from ibforecast.train import ranks

ROOT = Path(__file__).parents[2]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def run(*words: str, at: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*TORCHRUN, *words], capture_output=True, text=True, cwd=at, check=False, timeout=300)


def test_two_processes_end_with_the_same_weights_and_as_one_if_nothing_is_random(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run("-m", "tests.train.two_ranks", "dense", "sealed")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted((line["recipe"], line["rank"]) for line in lines) == [
        ("dense", 0),
        ("dense", 1),
        ("sealed", 0),
        ("sealed", 1),
    ]
    for name in ("dense", "sealed"):
        one, other = (line for line in lines if line["recipe"] == name)
        assert (one["weights"], one["errors"]) == (other["weights"], other["errors"])
    monkeypatch.setattr(sys, "argv", ["two_ranks", "dense"])
    monkeypatch.setattr(ranks, "shared_batch", lambda batch: batch - batch % 2)  # as two processes share it
    main()
    alone = json.loads(capsys.readouterr().out)
    together = next(line for line in lines if line["recipe"] == "dense")
    assert together["errors"] == pytest.approx(alone["errors"], rel=1e-5)


def test_only_the_first_process_of_a_fit_saves_and_prints(tmp_path: Path) -> None:
    rows = np.arange(300)
    lines = [f"2024-01-{1 + n // 24:02d} {n % 24:02d}:00,{np.sin(n / 4):.4f}" for n in rows]
    (tmp_path / "table.csv").write_text("\n".join(["time,load", *lines]))
    fit = ("fit", "table.csv", "--horizon", "4", "--look-back", "12", "--sealed", "--epochs", "1", "--device", "cpu")
    done = run("-m", "ibforecast", *fit, "--out", "model", "--json", at=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["model"] == "model"
    assert done.stderr.count("epoch 1 of at most 1") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "table.csv"]


def test_a_process_on_its_own_is_the_first_of_one() -> None:
    with ranks.joined("cpu") as first:
        assert first
    assert (ranks.rank(), ranks.size()) == (0, 1)


@pytest.mark.parametrize(("batch", "size", "shared"), [(17, 2, 16), (16, 1, 16), (3, 3, 3)])
def test_a_batch_is_shared_evenly(monkeypatch: pytest.MonkeyPatch, batch: int, size: int, shared: int) -> None:
    monkeypatch.setattr(ranks, "size", lambda: size)
    assert ranks.shared_batch(batch) == shared
    with pytest.raises(UsageError, match="start at most"):
        ranks.shared_batch(size - 1)
