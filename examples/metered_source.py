"""Fetch only the values that a forecast needs, from a source that charges for every value, and count what it saves.

    python examples/metered_source.py

The page docs/metered.md explains this code.
"""

from dataclasses import dataclass, field

import pandas as pd

from ibforecast import IBForecaster, demo_table

table = pd.DataFrame(demo_table().columns())[-9 * 7 * 24 :].reset_index(drop=True)  # nine weeks, hour by hour
model = IBForecaster(horizon=24, look_back=96, sealed=True, epochs=1).fit(table)  # without epochs: a good model


@dataclass
class Meter:
    """A source that charges for each value only once, because it keeps what it has fetched."""

    kept: dict[tuple[str, str], float] = field(default_factory=dict)

    def fetch(self, channel: str, time: str) -> float:
        """Return a value, and pay for it unless it was fetched before."""
        if (channel, time) not in self.kept:
            self.kept[channel, time] = values.at[pd.Timestamp(time), channel]  # the slow, expensive line
        return self.kept[channel, time]

    def __str__(self) -> str:
        return f"{len(self.kept):5,} values, {len(self.kept) / 100:5.2f} EUR, {len(self.kept) * 0.05:4.1f} s"


values, at = table.set_index("time"), "2023-12-20 06:00"
meter, reader = Meter(), model.reader(at)
while reader.asks:
    reader.answer({cell: meter.fetch(cell.channel, cell.time) for cell in reader.asks})
why = reader.explain()

print(f"{meter} for a window of {why.history.size} values")
print("the forecast of the whole table, bit for bit:", (why.forecast == model.explain(table, at).forecast).all())
print("verified:", bool(why.verify()))


def from_whole_windows(meter: Meter, at: pd.Timestamp) -> pd.DataFrame:
    """Forecast from every value of the window."""
    times = pd.date_range(end=at, periods=model.look_back, freq="h")
    columns = {name: [meter.fetch(name, str(time)) for time in times] for name in values.columns}
    return model.predict(pd.DataFrame({"time": times} | columns))


def from_what_is_read(meter: Meter, at: pd.Timestamp) -> pd.DataFrame:
    """Forecast from the values that the reader needs."""
    reader = model.reader(at)
    while reader.asks:
        reader.answer({cell: meter.fetch(cell.channel, cell.time) for cell in reader.asks})
    return reader.predict()


for hours, name in ((1, "every hour"), (5, "every 5 hours"), (6, "every 6 hours"), (24, "every day")):
    moments = pd.date_range("2023-12-20 06:00", periods=7 * 24 // hours, freq=f"{hours}h")
    whole, read = Meter(), Meter()
    same = all(from_whole_windows(whole, at).equals(from_what_is_read(read, at)) for at in moments)
    saved = 1 - len(read.kept) / len(whole.kept)
    print(f"{name:<13} {whole} | {read} | {saved:4.0%} saved | same forecasts: {same}")
