"""Inspect an explanation with numpy: its context, its mask, its evidence, and how they make the forecast.

    ibforecast demo
    python examples/inspect_explanation.py demo/model demo/why.json

The fields of the JSON file are described in docs/formats.md.
"""

import sys
from pathlib import Path

import numpy as np

from ibforecast import ExplainedForecast, IBForecaster

if len(sys.argv) != 3:
    sys.exit("usage: python examples/inspect_explanation.py MODEL EXPLANATION.json")
model = IBForecaster.load(sys.argv[1])
explained = ExplainedForecast.from_json(Path(sys.argv[2]).read_text())
mean, std = explained.units.mean, explained.units.std

# The context: what is known about the window before any token is read. Level and scale are in standardised units.
# (Models with several cycles or covariates have more terms: explained.expected has them all.)
profile = explained.profile[explained.phase % len(explained.profile)].astype(float)
expected = mean + std * (explained.level + explained.scale * profile)
np.testing.assert_allclose(expected, explained.expected)
print("context, in the table's units:")
for column, channel in enumerate(explained.channels):
    level = mean[column] + std[column] * explained.level[column]
    scale = std[column] * explained.scale[column]
    print(f"  {channel:<16} level {level:9.2f}   scale {scale:8.2f}")

# The mask: one decision per (patch, channel). No more are open than the budget allows, and a missing one never is.
patches, channels = explained.mask.shape
assert explained.open_count <= int(explained.budget * patches * channels + 1e-9)
assert not (explained.mask & explained.missing).any()
print(f"\nmask, oldest patch first ({explained.open_count} of {explained.mask.size} tokens open; # open, ? missing):")
for column, channel in enumerate(explained.channels):
    cells = np.where(explained.mask[:, column], "#", np.where(explained.missing[:, column], "?", "."))
    print(f"  {channel:<16} {''.join(cells)}   probability {explained.probability[:, column].round(2)}")

# The evidence: the deviation D where a gate is open, an exact zero everywhere else.
seen = explained.mask.repeat(explained.patch_len, axis=0)
assert not explained.evidence[~seen].any()
np.testing.assert_allclose(explained.evidence[seen], explained.deviation[seen], atol=1e-3)
print("\nevidence, largest deviation of each open token, in scales:")
for token in explained.tokens():
    if token.open:
        print(f"  {token.channel:<16} {token.start} to {token.end}   {token.largest_deviation:+.2f}")

# The forecast: computed by the readout from the evidence, shown as a distance from the pattern in the context.
future = (explained.forecast - expected[explained.look_back :]) / (std * explained.scale)
print("\nforecast, mean distance from the pattern over the horizon, in scales:")
for column, channel in enumerate(explained.channels):
    print(f"  {channel:<16} {future[:, column].mean():+.2f}")

# numpy can show what was disclosed; only the model can show that nothing else was used.
verification = model.verify(explained)
print(f"\n{verification}")
sys.exit(0 if verification else 4)
