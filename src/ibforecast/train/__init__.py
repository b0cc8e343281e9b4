"""The training loop: schedule, early stopping, checkpoints for resuming; it uses only the contract of a forecaster."""
