"""A program of test_ranks.py, run by torchrun: train some recipes, and print what became of the weights."""

import json
import sys

import torch
from tests.train.test_stack import network, windows

from ibforecast.core.files import sha256
from ibforecast.train import ranks
from ibforecast.train.config import TrainConfig
from ibforecast.train.loop import train

PACE = TrainConfig(epochs=2, batch=17, learning_rate=1e-2, most_steps=3, averaged=0.5)


def main() -> None:
    """Train, and print a line of JSON for each recipe."""
    torch.set_num_threads(1)
    with ranks.joined("cpu"):
        for name in sys.argv[1:]:
            forecaster = network(name, seed=1, budget=None if name == "dense" else 0.5, dropout=0.0)
            training = train(forecaster, windows(range(150)), windows(range(150, 221)), PACE, seed=1)
            weights = [tensor.numpy().tobytes() for tensor in forecaster.state_dict().values()]
            errors = [epoch.validation_error for epoch in training.history]
            line = json.dumps({"recipe": name, "rank": ranks.rank(), "weights": sha256(weights), "errors": errors})
            sys.stdout.write(f"{line}\n")  # in one piece: both processes write to one pipe


if __name__ == "__main__":
    main()
