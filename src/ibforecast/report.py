"""A report: the explorer and one or several verified explanations in one file that needs no server."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ibforecast._version import __version__
from ibforecast.core.errors import UsageError
from ibforecast.explained import ExplainedForecast
from ibforecast.forecaster import IBForecaster

EXPLORER = Path(__file__).parent / "serve" / "explorer"
_MAIN = '<script type="module" src="main.js"></script>'
_IMPORT = re.compile(r'^import (?P<names>\w+|\{[^}]*\}) from "\./(?P<path>[^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (?P<name>\w+))", re.MULTILINE)
_DEFAULT = re.compile(r"^export \{ (?P<name>\w+) as default \};$", re.MULTILINE)
_SHEET = re.compile(r'<link rel="stylesheet" href="(?P<path>[^"]+)">\n')
_ICON = re.compile(r'<link rel="icon" href="(?P<path>[^"]+)" type="(?P<type>[^"]+)">')


def to_html(
    model: IBForecaster,
    table: Any,
    moments: Sequence[Any],
    name: str,
    title: str,
    budget: float | None = None,
    future: Any = None,
) -> bytes:
    """Explain a table at every moment (None: its end), verify each explanation, and write the page that shows them.

    `name` is what the page calls the model, `title` the table; `future` is that of `IBForecaster.explain`. Raises
    VerificationError unless every check passes.
    """
    if not moments:
        raise UsageError("a report must have at least one moment (got none); give the last moment to be read")
    source = model.open(table, future)
    told = {found["at"]: found for found in (_moment(model.explain(source, at, budget=budget)) for at in moments)}
    fitted, config = model.fitted, model.fitted.config
    content = {
        "made": {"on": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", "version": __version__},
        "model": {
            "name": name,
            "horizon": config.horizon,
            "channels": fitted.channels,
            "budget": config.budget,
            "any_budget": config.gate.any_budget,
        },
        "table": {"id": "report", "name": title, "kind": "report", "channels": fitted.channels},
        "moments": sorted(told.values(), key=lambda moment: str(moment["at"])),
    }
    return _page(content).encode()


def _moment(explanation: ExplainedForecast) -> dict[str, Any]:
    checks = [asdict(check) for check in explanation.verify().checks]
    return {"at": explanation.at, "document": explanation.to_json(), "verified": True, "checks": checks}


def _page(content: dict[str, Any]) -> str:
    """The explorer's own page with everything inside, allowed to run nothing but that and to ask for nothing."""
    page = (EXPLORER / "index.html").read_text("utf8")
    style = "\n".join((EXPLORER / sheet["path"]).read_text("utf8") for sheet in _SHEET.finditer(page))
    script = _one_script("main.js")
    policy = (
        f"default-src 'none'; script-src {_fingerprint(script)}; style-src {_fingerprint(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    # In a page "<" may begin a tag even within a string; in JSON it can be told otherwise.
    data = json.dumps(content, ensure_ascii=False).replace("<", "\\u003c")
    page = _ICON.sub(lambda icon: f'<link rel="icon" href="{_embedded(icon["path"], icon["type"])}">', page)
    page = _SHEET.sub("", page).replace("</head>", f"<style>{style}</style>\n</head>")
    page = page.replace(
        '<meta charset="utf-8">',
        f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{policy}">',
    )
    scripts = f'<script type="application/json" id="report">{data}</script>\n<script type="module">{script}</script>'
    return page.replace(_MAIN, scripts)


def _one_script(path: str) -> str:
    """A module and all it imports as one script: each in a function of its own, those it needs before it."""
    needed = list(dict.fromkeys(_in_order(path)))
    return "\n".join(["const modules = {};", *(_as_function(each) for each in needed)])


def _in_order(path: str) -> Iterator[str]:
    for found in _IMPORT.finditer((EXPLORER / path).read_text("utf8")):
        yield from _in_order(str(Path(path).parent / found["path"]))
    yield path


def _as_function(path: str) -> str:
    text = (EXPLORER / path).read_text("utf8")
    if only := _DEFAULT.search(text):
        given, text = [f"default: {only['name']}"], _DEFAULT.sub("", text)
    else:
        given, text = [found["name"] for found in _EXPORT.finditer(text)], _EXPORT.sub("", text)
    text = _IMPORT.sub(lambda found: _taken(found["names"], str(Path(path).parent / found["path"])), text)
    return f'modules["{path}"] = (() => {{\n{text}\nreturn {{ {", ".join(given)} }};\n}})();'


def _taken(names: str, path: str) -> str:
    return f'const {names} = modules["{path}"]{"" if names.startswith("{") else ".default"};'


def _fingerprint(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _embedded(path: str, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode((EXPLORER / path).read_bytes()).decode()}"
