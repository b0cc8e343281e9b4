"""IB-Forecast. To read in this order: the four stages, network, reading, objective."""
