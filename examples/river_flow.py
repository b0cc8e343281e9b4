"""Forecast the flow of a river for a day from its past and from the rain that fell, after the wettest hour.

    python examples/river_flow.py flow_wye.csv.gz

The table has hourly rain (P_mm) and flow (Q_mm), both in millimetres over the catchment.
"""

import sys

import pandas as pd

from ibforecast import IBForecaster

if len(sys.argv) != 2:
    sys.exit("usage: python examples/river_flow.py TABLE.csv")
table = pd.read_csv(sys.argv[1])
model = IBForecaster(
    horizon=24,
    past=["P_mm"],  # rain is read, within the budget, and not forecast
    limits={"Q_mm": (0, None)},  # no forecast is below 0
    sealed=True,  # no value that is not read can change a forecast
).fit(table)
tested = model.evaluate(table).channels[0]
print(f"mean absolute error {tested.mae:.3g}, of the best naive forecast {tested.naive_mae:.3g}\n")

rain = table.set_index("date")["P_mm"]
why = model.explain(table, at=rain[-len(table) // 5 : -24].idxmax())  # in the test part
print(why.in_words("Q_mm"))
print("\nverified:", bool(why.verify(table)))
