"""The rivals, one file each, with the same contract as our model."""
