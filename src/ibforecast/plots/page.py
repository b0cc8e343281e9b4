"""The explorer as one file with its page, script, style and the explanations to show; it loads nothing else."""

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from ibforecast.core.comparison import Comparison, compare
from ibforecast.core.explained import ExplainedForecast, Token
from ibforecast.core.receipt import COARSE, Step, decimals_of
from ibforecast.core.verdict import Check
from ibforecast.data.sources import from_rows, to_csv
from ibforecast.plots.scene import scene_of
from ibforecast.plots.svg import to_svg
from ibforecast.plots.waterfall import itemised

EXPLORER = Path(__file__).parent / "explorer"
"""The built page: `index.html`, `explorer.js`, `explorer.css` and `icon.svg`."""

MOST_AMOUNTS = 60_000
"""How many amounts a page contains per moment before it has only those of the mean."""

DATA_BEGINS = b'<script type="application/json" id="report">'
"""What comes before the data in a page."""

_SCRIPT = '<script type="module" src="explorer.js"></script>'
_STYLE = '<link rel="stylesheet" href="explorer.css">'
_ICON = 'href="icon.svg"'
_CHARSET = '<meta charset="utf-8">'


def page(content: dict[str, Any]) -> bytes:
    """Return the explorer with `content` inside; its policy allows only its own script, and loading nothing.

    `content` has `made` (`on`, `version`), `model` (`name`, `horizon`, `channels`, `budget`, `any_budget`), `table`
    (`id`, `name`, `kind`, `channels`), `moments`, a list of results of `moment`, and may have `drivers`, as the service
    answers them; the model then has `patches`, `patch_len` and `past` too.
    """
    script, style = _read("explorer.js"), _read("explorer.css")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    # The parser of HTML ends a script at "</script", even inside a JSON string.
    data = json.dumps(content, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    icon = base64.b64encode((EXPLORER / "icon.svg").read_bytes()).decode()
    text = _read("index.html")
    for old, new in (
        (_CHARSET, f'{_CHARSET}\n<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        (_ICON, f'href="data:image/svg+xml;base64,{icon}"'),
        (_STYLE, f"<style>{style}</style>"),
        (
            _SCRIPT,
            f'{DATA_BEGINS.decode()}{data}</script>\n<script type="module">{script}</script>',
        ),
    ):
        text = text.replace(old, new, 1)
    return text.encode()


def moment(
    explained: ExplainedForecast,
    checks: Sequence[Check] | None = None,
    channel: str | None = None,
    other: ExplainedForecast | None = None,
) -> dict[str, Any]:
    """Return everything the page shows and exports of one explanation; `checks` is None if it was not verified.

    It is compared with `other`, usually an earlier one, if there is one.
    """
    scene, shown = scene_of(explained, channel), itemised(explained, channel)
    names = [] if shown is None else list(shown.amounts)
    return {
        "at": explained.at,
        "document": explained.to_json(),
        "scene": scene.document(),
        "receipts": receipts(explained, names),
        "comparisons": [] if other is None else comparisons(explained, other, names),
        "svg": to_svg(scene),
        "csv": to_csv(from_rows(Token, explained.tokens())).decode(),
        "verified": None if checks is None else all(check.passed for check in checks),
        "checks": [asdict(check) for check in checks or ()],
    }


def receipts(explained: ExplainedForecast, names: Sequence[str], most: int | None = None) -> list[dict[str, Any]]:
    """Return the receipts of channels for the page: of the mean, and of every step unless these have too many amounts.

    `most` is the largest number of amounts; None: as many as a report may contain.
    """
    steps = _steps(explained, names, MOST_AMOUNTS if most is None else most)
    kept = ("forecast", "calendar", "read", "known", "unread", "limit", "error")
    return [
        {
            "channel": name,
            "decimals": decimals_of(float(explained.units.std[explained.channels.index(name)]), COARSE),
            "steps": [
                {part: getattr(own, part) for part in kept} for own in map(partial(explained.itemised, name), steps)
            ],
        }
        for name in names
    ]


def comparisons(explained: ExplainedForecast, other: ExplainedForecast, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return why the forecasts of channels differ from those of another explanation, of the same steps as receipts."""
    other.amounts_of(names)  # of all channels at once
    steps = _steps(explained, names, MOST_AMOUNTS)
    return [
        {"channel": name, "steps": [_comparison(compare(explained, other, name, step)) for step in steps]}
        for name in names
    ]


def _comparison(own: Comparison) -> dict[str, Any]:
    """Return what the page shows of a comparison, named as in the answer of the service."""
    return {
        "other_at": own.made_before,
        "decimals": own.decimals,
        "totals": own.totals,
        "reasons": [asdict(reason) for reason in own.reasons()],
        "words": own.in_words(),
    }


def _steps(explained: ExplainedForecast, names: Sequence[str], most: int) -> list[Step]:
    """Return the mean, and every step unless these have more amounts than `most`."""
    few = len(names) * explained.horizon * explained.open_count <= most
    return ["mean", *(range(1, explained.horizon + 1) if few else ())]


def _read(name: str) -> str:
    return (EXPLORER / name).read_text("utf8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
