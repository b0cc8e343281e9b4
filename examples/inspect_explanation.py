"""An explanation taken apart with numpy: context, mask, evidence, and what they say about the forecast.

    ibforecast demo
    python examples/inspect_explanation.py demo/model demo/why.json

The fields of the JSON file are described in docs/tour.md.
"""

import sys
from pathlib import Path

import numpy as np

from ibforecast import IBForecaster
from ibforecast.core.account import Account

if len(sys.argv) != 3:
    sys.exit("usage: python examples/inspect_explanation.py MODEL EXPLANATION.json")
model = IBForecaster.load(sys.argv[1])
account = Account.from_json(Path(sys.argv[2]).read_text())

# The context: what is known of the window before any token is read. Level and scale are in standardised units.
expected = account.mean + account.std * (
    account.level + account.scale * account.profile[account.phase % len(account.profile)]
)
np.testing.assert_allclose(expected, account.expected, rtol=1e-5)
print("context, in the table's units:")
for column, channel in enumerate(account.channels):
    level = account.mean[column] + account.std[column] * account.level[column]
    scale = account.std[column] * account.scale[column]
    print(f"  {channel:<16} level {level:9.2f}   scale {scale:8.2f}")

# The mask: one decision per (patch, channel), never more open than the budget allows, and none that is missing.
patches, channels = account.mask.shape
assert account.open_count <= int(account.budget * patches * channels + 1e-9)
assert not (account.mask & account.missing).any()
print(f"\nmask, oldest patch first ({account.open_count} of {account.mask.size} tokens open; # open, ? missing):")
for column, channel in enumerate(account.channels):
    cells = np.where(account.mask[:, column], "#", np.where(account.missing[:, column], "?", "."))
    print(f"  {channel:<16} {''.join(cells)}   probability {account.probability[:, column].round(2)}")

# The evidence: the deviation D where a gate is open, an exact zero everywhere else.
seen = account.mask.repeat(account.patch_len, axis=0)
assert not account.evidence[~seen].any()
np.testing.assert_allclose(account.evidence[seen], account.deviation[seen], atol=1e-3)
print("\nevidence, largest deviation of each open token, in scales:")
for token in account.tokens():
    if token.open:
        print(f"  {token.channel:<16} {token.start} to {token.end}   {token.largest_deviation:+.2f}")

# The forecast: what the readout made of the evidence, as a distance from the disclosed pattern.
future = (account.forecast - expected[account.look_back :]) / (account.std * account.scale)
print("\nforecast, mean distance from the pattern over the horizon, in scales:")
for column, channel in enumerate(account.channels):
    print(f"  {channel:<16} {future[:, column].mean():+.2f}")

# numpy can show what was disclosed; only the model can show that nothing else was used.
verification = model.verify(account)
print(f"\n{verification}")
sys.exit(0 if verification else 4)
