"""The rivals, one file each, under the same contract as our model."""
