"""The paper's theorems on models small enough to be computed exactly."""
