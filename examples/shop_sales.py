"""Forecast two weeks of a shop's sales with promotions that are planned ahead. The table is made here.

python examples/shop_sales.py
"""

import numpy as np
import pandas as pd

from ibforecast import IBForecaster

# Three years of daily sales: more at weekends, 30 more on days of a promotion, none when the shop has run out.
random = np.random.default_rng(21)
days = pd.date_range("2022-01-01", periods=3 * 365, freq="D")
promotion = np.repeat(random.random(len(days) // 5) < 0.15, 5)  # five days each
promotion[-14:] = [False] * 5 + [True] * 5 + [False] * 4
sales = random.poisson(20 + 15 * (days.dayofweek >= 5) + 30 * promotion) * (random.random(len(days)) > 0.03)
table = pd.DataFrame({"day": days, "umbrellas": sales, "promotion": promotion})
table.loc[table.index[-14:], "umbrellas"] = None  # still to come; the promotions are planned

model = IBForecaster(
    horizon=14,
    look_back=28,
    future=["promotion"],  # known ahead: part of the context
    limits=(0, None),  # no forecast is below 0
    recipe="additive",  # the amounts of a receipt are exact
).fit(table)
tested = model.evaluate(table).channels[0]
print(f"mean absolute error {tested.mae:.3g}, of the best naive forecast {tested.naive_mae:.3g}\n")

why = model.explain(table)
print(why.in_words("umbrellas"))
print("\n" + why.in_words("umbrellas", 6))  # the first day of the promotion
print("\nverified:", bool(why.verify(table)))
