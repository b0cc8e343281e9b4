"""Fit your own table, with a time zone, gaps in time, and numbers that mean a missing value.

    python examples/own_table.py load.csv Europe/Berlin

The table has a time column and one column per channel. Rows are evenly spaced, but some may be absent. Times have
their offset (2024-03-31 03:00+02:00) or are in UTC (…Z). Without either they are local times of the zone. A time that
its clock never showed is refused, and so is one that it showed twice if the table has it once.
"""

import sys

from ibforecast import IBForecaster, IBForecastError

if len(sys.argv) not in (2, 3):
    sys.exit("usage: python examples/own_table.py TABLE.csv [ZONE]")
path, zone = sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else None

model = IBForecaster(
    horizon=24,  # steps to forecast
    look_back=96,  # steps a window spans
    budget=0.2,  # largest fraction of a window that may be read
    cycle="auto",  # steps of the seasonal profile: a day for hourly data; 168 would be a week
    seed=2024,
    split=(0.7, 0.1, 0.2),  # fractions to train, to select and to test on, in order of time
    time=None,  # name of the time column; None: recognised
    channels=None,  # names of the channels to read and forecast; None: all
    freq=None,  # such as "15min" or "1h"; None: inferred
    zone=zone,  # phases follow this zone's wall clock, across changes to and from summer time
    irregular="fill",  # absent rows become missing values; "error" names them, "by_row" reads by row number
    missing_values=(-9999.0,),  # numbers that mean a missing value
)

# A long table (unique_id, ds, y) needs no other call; `id` and `target` rename its columns.
try:
    model.fit(path)
except IBForecastError as error:  # the rule, the value that broke it, the remedy
    sys.exit(f"the table cannot be read with these settings: {error}")

print(model.predict(path))
explanation = model.explain(path)
print(explanation.in_words())  # also says which tokens could not be read because values were missing
explanation.verify()
