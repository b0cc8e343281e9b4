"""A killed run continues from its last finished epoch and ends with the weights of an uninterrupted one.

Run as a script, this file is the run that is killed.
"""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save
from torch import Tensor

from ibforecast.core import files
from ibforecast.core.contracts import Loss
from ibforecast.core.errors import ModelFileError
from ibforecast.core.window import Target, Window
from ibforecast.data.windows import Windows
from ibforecast.model.config import GateConfig, ModelConfig, ReadoutConfig
from ibforecast.model.network import IBForecast
from ibforecast.train.checkpoint import PARTS, Checkpoint, Epoch
from ibforecast.train.config import TrainConfig
from ibforecast.train.loop import Training, train

PACE = TrainConfig(epochs=6, batch=10, learning_rate=3e-2, constant_epochs=2, decay=0.7, patience=6, averaged=0.5)
STEPS = 4


class Interruptible(IBForecast):
    """A forecaster that pauses before every step, or fails at one of them; its results are the same."""

    pause, fails_at = 0.0, -1
    steps = 0

    def loss(self, window: Window, target: Target, progress: Tensor, generator: torch.Generator) -> Loss:
        time.sleep(self.pause)
        if self.steps == self.fails_at:
            raise KeyboardInterrupt
        self.steps += 1
        return super().loss(window, target, progress, generator)


def network() -> Interruptible:
    config = ModelConfig(
        look_back=12,
        horizon=4,
        channels=2,
        cycle=6,
        patch_len=3,
        budget=0.5,
        gate=GateConfig(width=4, heads=2, dropout=0.2, noise=1.0, noise_until=1.0),
        readout=ReadoutConfig(width=8, dropout=0.2),
    )
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        return Interruptible(config)


def windows(starts: range) -> Windows:
    values = torch.randn(80, 2, generator=torch.Generator().manual_seed(0))
    observed = torch.rand(80, 2, generator=torch.Generator().manual_seed(1)) > 0.02
    phase = torch.arange(84) % 6
    return Windows(values.where(observed, torch.zeros(())), observed, phase, torch.tensor(starts), 12, 4)


def run(forecaster: IBForecast, checkpoint: Path | None = None, identity: str = "a", seed: int = 5) -> Training:
    return train(forecaster, windows(range(10 * STEPS + 3)), windows(range(43, 64)), PACE, seed, checkpoint, identity)


@pytest.fixture(scope="module")
def uninterrupted() -> tuple[dict[str, Tensor], Training]:
    forecaster = network()
    training = run(forecaster)
    return forecaster.state_dict(), training


def finished_epochs(checkpoint: Path) -> int:
    if not checkpoint.exists():
        return 0
    content = checkpoint.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return len(json.loads(header["__metadata__"]["history"]))


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(
        torch.equal(one[name].view(torch.int32), other[name].view(torch.int32)) for name in one
    )


def test_a_run_killed_within_an_epoch_ends_with_the_same_bits(
    tmp_path: Path, uninterrupted: tuple[dict[str, Tensor], Training]
) -> None:
    checkpoint = tmp_path / "run.safetensors"
    with subprocess.Popen(
        [sys.executable, __file__, checkpoint], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        deadline = time.monotonic() + 60
        while finished_epochs(checkpoint) < 2 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        output = process.stdout.read() if process.stdout else b""
    assert process.returncode == -signal.SIGKILL, output
    assert 2 <= finished_epochs(checkpoint) < PACE.epochs
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == [checkpoint.name]

    forecaster = network()
    resumed = run(forecaster, checkpoint)
    weights, training = uninterrupted
    assert forecaster.steps < PACE.epochs * STEPS
    assert resumed == training
    assert same(forecaster.state_dict(), weights)


@pytest.mark.parametrize("step", [0, 1, STEPS, 2 * STEPS + 3, 5 * STEPS, 6 * STEPS - 1])
def test_a_run_interrupted_at_any_step_ends_with_the_same_bits(
    tmp_path: Path, uninterrupted: tuple[dict[str, Tensor], Training], step: int
) -> None:
    checkpoint, broken = tmp_path / "run.safetensors", network()
    broken.fails_at = step
    with pytest.raises(KeyboardInterrupt):
        run(broken, checkpoint)
    assert finished_epochs(checkpoint) == step // STEPS
    forecaster = network()
    assert run(forecaster, checkpoint) == uninterrupted[1]
    assert forecaster.steps == (PACE.epochs - step // STEPS) * STEPS
    assert same(forecaster.state_dict(), uninterrupted[0])


def test_a_run_interrupted_while_writing_a_checkpoint_keeps_the_one_before(
    tmp_path: Path, uninterrupted: tuple[dict[str, Tensor], Training], monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, written = tmp_path / "run.safetensors", []
    fsync = os.fsync

    def fail_the_third_time(handle: int) -> None:
        written.append(handle)
        if len(written) == 3:
            raise KeyboardInterrupt
        fsync(handle)

    with monkeypatch.context() as patched:
        patched.setattr(files.os, "fsync", fail_the_third_time)
        with pytest.raises(KeyboardInterrupt):
            run(network(), checkpoint)
    assert finished_epochs(checkpoint) == 2
    assert [path.name for path in tmp_path.iterdir()] == [checkpoint.name]
    forecaster = network()
    run(forecaster, checkpoint)
    assert same(forecaster.state_dict(), uninterrupted[0])


def test_a_finished_run_is_not_run_again(tmp_path: Path, uninterrupted: tuple[dict[str, Tensor], Training]) -> None:
    checkpoint = tmp_path / "run.safetensors"
    run(network(), checkpoint)
    again = network()
    again.fails_at = 0
    assert run(again, checkpoint) == uninterrupted[1]
    assert same(again.state_dict(), uninterrupted[0])
    assert not again.training


def test_writing_checkpoints_changes_nothing(tmp_path: Path, uninterrupted: tuple[dict[str, Tensor], Training]) -> None:
    forecaster = network()
    assert run(forecaster, tmp_path / "run.safetensors") == uninterrupted[1]
    assert same(forecaster.state_dict(), uninterrupted[0])


def test_the_checkpoint_of_another_run_is_ignored(
    tmp_path: Path, uninterrupted: tuple[dict[str, Tensor], Training]
) -> None:
    checkpoint = tmp_path / "run.safetensors"
    run(network(), checkpoint, identity="b", seed=6)
    assert Checkpoint.load(checkpoint, "a") is None
    forecaster = network()
    run(forecaster, checkpoint, identity="a")
    assert forecaster.steps == PACE.epochs * STEPS
    assert same(forecaster.state_dict(), uninterrupted[0])


def some_checkpoint() -> Checkpoint:
    random = torch.Generator().manual_seed(0)
    weights = {"a.b": torch.randn(3, 2, generator=random), "c": torch.tensor(2)}
    best = {"a.b": torch.randn(3, 2, generator=random), "c": torch.tensor(1)}
    moments = {"a.b/exp_avg": torch.randn(3, 2, generator=random), "a.b/step": torch.tensor(7.0)}
    history = (Epoch(0.1, 0.2, 1 / 3, 1e-3), Epoch(1e-30, 1.0, 2.5, 0.7e-3))
    averages = {"a.b": torch.randn(3, 2, generator=random)}
    return Checkpoint("name: of/run", history, weights, best, moments, averages)


def test_a_checkpoint_reads_back_unchanged(tmp_path: Path) -> None:
    written = some_checkpoint()
    written.save(tmp_path / "run.safetensors")
    read = Checkpoint.load(tmp_path / "run.safetensors", "name: of/run")
    assert read is not None
    assert (read.identity, read.history) == (written.identity, written.history)
    for part in PARTS:
        assert same(
            {name: tensor.float() for name, tensor in getattr(read, part).items()},
            {name: tensor.float() for name, tensor in getattr(written, part).items()},
        )
    assert read.weights["c"].dtype == torch.int64


def test_a_missing_checkpoint_is_none(tmp_path: Path) -> None:
    assert Checkpoint.load(tmp_path / "run.safetensors", "a") is None


@pytest.mark.parametrize("kept", [0, 4, 8, 100, -1])
def test_a_truncated_checkpoint_is_refused_with_the_remedy(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "run.safetensors"
    some_checkpoint().save(path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ModelFileError, match=r"must be whole \(got .+\); delete it to start again"):
        Checkpoint.load(path, "name: of/run")


@pytest.mark.parametrize("content", [b"not a checkpoint at all", b'{"a": 1}'])
def test_a_file_that_is_not_a_checkpoint_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.safetensors"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="must be whole"):
        Checkpoint.load(path, "a")


@pytest.mark.parametrize(
    "lacking",
    [
        "history",
        pytest.param("identity"),
    ],
)
def test_a_tensor_file_that_is_not_a_checkpoint_is_refused(tmp_path: Path, lacking: str) -> None:
    facts = {"history": "[]", "identity": "a"}
    path = tmp_path / "run.safetensors"
    path.write_bytes(save({"weights:a": torch.zeros(1)}, {key: facts[key] for key in facts if key != lacking}))
    with pytest.raises(ModelFileError, match="must be whole"):
        Checkpoint.load(path, "a")


@pytest.mark.parametrize(
    "history", ["1", '["x"]', '[{"loss": 1}]', '[{"loss": []}]', '[{"loss": 1, "late": 2}]', f'[{{"loss": {10**400}}}]']
)
def test_a_checkpoint_with_another_history_is_refused(tmp_path: Path, history: str) -> None:
    path = tmp_path / "run.safetensors"
    path.write_bytes(save({"weights:a": torch.zeros(1)}, {"history": history, "identity": "a"}))
    with pytest.raises(ModelFileError, match="must be whole"):
        Checkpoint.load(path, "a")


def test_a_checkpoint_with_another_part_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    path.write_bytes(save({"other:a": torch.zeros(1)}, {"history": "[]", "identity": "a"}))
    with pytest.raises(ModelFileError, match="must be whole"):
        Checkpoint.load(path, "a")


def test_a_finished_run_can_continue_for_more_epochs(tmp_path: Path) -> None:
    """The history determines the next epoch: two epochs are left of four."""
    checkpoint, forecaster = tmp_path / "run.safetensors", network()
    train(forecaster, windows(range(43)), windows(range(43, 64)), replace(PACE, epochs=2), 5, checkpoint, "a")
    again = network()
    longer = train(again, windows(range(43)), windows(range(43, 64)), replace(PACE, epochs=4), 5, checkpoint, "a")
    assert len(longer.history) == 4
    assert again.steps == 2 * STEPS


if __name__ == "__main__":
    torch.set_num_threads(1)
    slow = network()
    slow.pause = 0.05
    run(slow, Path(sys.argv[1]))
