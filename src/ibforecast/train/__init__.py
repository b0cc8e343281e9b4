"""The training loop: schedule, early stopping, checkpoints for resuming; it knows the contract, no model."""
