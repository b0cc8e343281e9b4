"""From a table to a forecast that carries its proof, on the embedded demo table, in about three minutes.

python examples/quickstart.py
"""

import tempfile
from pathlib import Path

import pyarrow as pa

from ibforecast import IBForecaster, demo_table

# A year of hourly numbers with a few gaps; a path, or a pandas, polars or pyarrow table, works too.
demo = demo_table(seed=2024)
table = pa.table(demo.columns())

# At most a fifth of every look-back window may be read, whatever the weights are. A contest decides whether the mask is
# fixed (sealed) or chosen by a look at the window (choosing).
model = IBForecaster(horizon=24, look_back=96, budget=0.2).fit(table)
print(model.fitted.summary.contest)
print(model.evaluate(table))

# The first row of the forecast, which follows the table and has the same kind and units.
print(model.predict(table).slice(0, 1).to_pylist())

# A forecast in the test part, shortly before something unusual happens again, and the values it was computed from.
explanation = model.explain(table, at=demo.moment_before_echo(model.fitted.split.validation_end))
print(explanation.in_words())
print(explanation.verify())

with tempfile.TemporaryDirectory() as folder:
    model.save(Path(folder) / "model")
    same = IBForecaster.load(Path(folder) / "model")
    assert same.verify(explanation)  # the loaded model gives the same forecast, bit for bit
    explanation.plot(Path(folder) / "why.html")  # or .svg; .png needs the extra: pip install 'ibforecast[plot]'
    print(sorted(path.name for path in Path(folder).iterdir()))
