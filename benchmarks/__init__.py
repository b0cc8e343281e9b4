"""Speed and memory, as ratios of numbers measured in one run; no test depends on them."""
