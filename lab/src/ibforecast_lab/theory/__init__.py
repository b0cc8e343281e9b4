"""The paper's theorems on models that are small enough for exact computation."""
