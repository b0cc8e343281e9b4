"""A document for reading and printing as one HTML file: no scripts, nothing loaded, light and dark."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

STYLE = """
:root { color-scheme: light dark;
  --line: #c4c8cc; --soft: #f2f4f5; --quiet: #555b61; --ink: #16181a; --paper: #fff; --warn: #8a3b00 }
@media (prefers-color-scheme: dark) {
  :root { --line: #474c51; --soft: #23272a; --quiet: #a9b0b6; --ink: #e8eaec; --paper: #16181a; --warn: #ffb07a }
}
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 60rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", Helvetica, Arial, sans-serif }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; overflow-wrap: anywhere }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; padding-top: .6rem; border-top: 1px solid var(--line);
  overflow-wrap: anywhere }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem }
p, li { max-width: 46rem; overflow-wrap: anywhere }
p { margin: .5rem 0 }
ul, ol { margin: .5rem 0; padding-left: 1.4rem }
nav ol { columns: 20rem; padding-left: 1.8rem }
a { color: inherit }
.quiet { color: var(--quiet); font-size: .9rem }
.warn { color: var(--warn); font-weight: 600 }
.wide { overflow-x: auto; margin: .6rem 0; max-width: 100% }
table { border-collapse: collapse; font-size: .875rem; line-height: 1.4; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .9rem .25rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line) }
thead th { vertical-align: bottom }
.short { white-space: nowrap }
.long { min-width: 13rem }
.number { text-align: right; white-space: nowrap }
.facts th { font-weight: 600; white-space: nowrap }
.facts td { overflow-wrap: anywhere }
pre { background: var(--soft); padding: .7rem .8rem; overflow-x: auto; font-size: .85rem; line-height: 1.5 }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace }
figure { margin: .8rem 0; overflow-x: auto; background: #fff }
figure svg { display: block }
@media (max-width: 40rem) {
  .facts th, .facts td { display: block; padding-right: 0; white-space: normal }
  .facts th { border-bottom: 0; padding-bottom: 0 }
  figure svg { max-width: none !important }
}
@media print {
  :root { --line: #999; --soft: #f4f4f4; --quiet: #333; --ink: #000; --paper: #fff; --warn: #000 }
  body { max-width: none; padding: 0; font-size: 10pt }
  .wide, pre, figure { overflow: visible }
  pre { white-space: pre-wrap }
  h2, h3 { break-after: avoid }
  tr, figure { break-inside: avoid }
}
"""

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Nothing may be loaded or run, even if text were not escaped."""

SHORT = 24
"""Up to this length the text of a cell is not wrapped."""


@dataclass(frozen=True)
class Chapter:
    """A numbered heading and its parts, which are HTML."""

    title: str
    parts: tuple[str, ...]


def page(title: str, under: Sequence[str], chapters: Sequence[Chapter]) -> str:
    """Return the whole document; `under` are lines below its title."""
    numbered = list(enumerate(chapters, 1))
    contents = "".join(f'<li><a href="#c{number}">{escape(chapter.title)}</a></li>' for number, chapter in numbered)
    body = "\n".join(
        f'<section>\n<h2 id="c{number}">{number} {escape(chapter.title)}</h2>\n'
        + "\n".join(chapter.parts)
        + "\n</section>"
        for number, chapter in numbered
    )
    lines = "\n".join(paragraph(line, quiet=True) for line in under)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{escape(title)}</h1>\n"
        f"{lines}\n</header>\n<nav>\n<ol>{contents}</ol>\n</nav>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def heading(text: str) -> str:
    """Return a heading inside a chapter."""
    return f"<h3>{escape(text)}</h3>"


def paragraph(text: str, *, quiet: bool = False, warn: bool = False) -> str:
    """Return a paragraph; a quiet one is small, and a warning stands out."""
    kind = ' class="quiet"' if quiet else ' class="warn"' if warn else ""
    return f"<p{kind}>{escape(text)}</p>"


def items(texts: Iterable[str]) -> str:
    """Return a list with a bullet for each text."""
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def pairs(values: Mapping[str, str]) -> str:
    """Return names and values, one pair per row; names without a value are left out."""
    rows = (
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in values.items()
        if value
    )
    return f'<table class="facts"><tbody>{"".join(rows)}</tbody></table>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """Return a table whose first `texts` columns are texts and the others numbers."""

    def cell(tag: str, place: int, text: str) -> str:
        kind = "number" if place >= texts else "short" if len(text) <= SHORT else "long"
        scope = ' scope="col"' if tag == "th" else ""
        return f'<{tag}{scope} class="{kind}">{escape(text)}</{tag}>'

    def line(tag: str, cells: Sequence[str]) -> str:
        return f"<tr>{''.join(cell(tag, place, text) for place, text in enumerate(cells))}</tr>"

    body = "".join(line("td", row) for row in rows)
    return f'<div class="wide"><table><thead>{line("th", head)}</thead><tbody>{body}</tbody></table></div>'


def code(text: str) -> str:
    """Return lines of code."""
    return f"<pre><code>{escape(text)}</code></pre>"


def picture(svg: str) -> str:
    """Return an SVG picture that this library drew."""
    return f"<figure>{svg}</figure>"
