"""Forecast tomorrow's electricity prices from today's, with forecasts of load and wind that are known ahead.

    python examples/energy_prices.py epf_de.csv.gz

The table has hourly prices of Germany and, for the same hours, what the grid operators forecast the day before.
"""

import sys

from ibforecast import IBForecaster

if len(sys.argv) != 2:
    sys.exit("usage: python examples/energy_prices.py TABLE.csv")
table = sys.argv[1]
model = IBForecaster(
    horizon=24,
    look_back=168,  # a week
    future=["Wind power forecast", "Ampirion zonal load forecast"],  # known ahead: part of the context
    sealed=True,  # no value that is not read can change a forecast
).fit(table)
tested = model.evaluate(table).channels[0]
print(f"mean absolute error {tested.mae:.3g}, of the best naive forecast {tested.naive_mae:.3g}\n")

# In the test part, on the eve of a stormy Sunday.
why = model.explain(table, at="2017-10-28 23:00")
print(why.in_words("price"))
print("\nverified:", bool(why.verify(table)))
