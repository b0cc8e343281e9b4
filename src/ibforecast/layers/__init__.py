"""Building blocks shared by all networks."""
