"""The lines of a CSV file: one of names, and rows of as many cells. Titles, comments and lines of units are refused.

The errors name the lines to leave out, also as `skiprows` of `pandas.read_csv`.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from ibforecast.core.errors import DataError
from ibforecast.data.limits import LONGEST_HEADER, check_columns, check_shape

SEPARATORS = ",;\t"
"""What may be between the cells of a CSV file; if two are equally frequent in its first line, the first one is."""

DATED = re.compile(r"\s*\d{1,4}([-./])\d{1,2}\1\d{1,4}(?!\w*[-./])")
VALUE = re.compile(r"\s*[+-]?\d+([.,]\d*)?(e[+-]?\d+)?\s*", re.ASCII | re.IGNORECASE)
"""Texts that look like the date or the number of a row rather than the name of a column."""

HINT = re.compile(rb"(\xef\xbb\xbf)?sep=([,;\t])\r?\n", re.IGNORECASE)
"""A first line by which spreadsheets say what separates the cells."""

LOOKED_AT = 100
"""Lines from which the shape of a file is read."""


def without_hint(content: bytes) -> bytes:
    """Return the content of a file without a first line such as `sep=;`."""
    hint = HINT.match(content)
    return content[hint.end() :] if hint else content


def separator_of(content: bytes) -> str:
    """Return what is between the cells of a CSV file: the most frequent separator in its first line."""
    header = re.sub(rb'"[^"]*"', b"", content.lstrip(b"\r\n").partition(b"\n")[0])  # names may have commas
    return max(SEPARATORS, key=lambda mark: header.count(mark.encode()))


def check_head(name: str, head: bytes) -> int:
    """Return the number of columns, from the first bytes of a CSV file.

    Refuse too many columns, names that are too long, and other lines than names before the values.
    """
    lines = io.TextIOWrapper(io.BytesIO(head), encoding="utf8", errors="replace", newline="")
    try:
        names = next((row for row in csv.reader(lines, delimiter=separator_of(head)) if row), [])
    except csv.Error as error:  # the module limits the length of a cell
        raise DataError(
            "a .csv file must begin with the names of its columns", f"a cell too long for one: {error}", "add them"
        ) from error
    check_columns(len(names))
    if len(head) > LONGEST_HEADER and next(lines, None) is None:
        raise DataError(
            f"the first line of a .csv file must have at most {LONGEST_HEADER:,} bytes",
            "more than that",
            "shorten the names of its columns",
        )
    check_shape(0, names)
    _check_first_lines(name, head)
    if _are_values(names):
        raise DataError(
            "a .csv file must begin with the names of its columns",
            ",".join(names[:3]),
            "give it a header line, such as time,load",
        )
    return len(names)


def ragged(name: str, content: bytes, encoding: str) -> DataError | None:
    """Return the error for a file with a line that has more or fewer cells than the first; None if there is none."""
    separator = separator_of(content)
    rows = _rows(content, encoding, separator)
    line, names = next(rows, (1, []))
    wrong = next(((at, row) for at, row in rows if len(row) != len(names)), None)
    if wrong is None:
        return None
    at, row = wrong
    got = f"{_cells(len(row))} in line {at}, {separator.join(row)[:60]!r}, and {len(names)} in line {line}, in {name!r}"
    if len(names) == 1:
        remedy = "remove the lines above the names of the columns"
    elif len(row) == len(names) + 1 and all(len(other) == len(row) for _, other in islice(rows, LOOKED_AT)):
        remedy = "add the name that is missing in the first line: of row names, for example"
    elif next(rows, None) is None:
        remedy = (
            f"remove line {at}, which is the last one, or add what is missing; if the file was cut, export it again"
        )
    else:
        remedy = f"correct line {at}, or remove it; quote cells that have {separator!r} in them"
    return DataError("every line of a .csv file must have as many cells as its first one", got, remedy)


def _check_first_lines(name: str, head: bytes) -> None:
    """Refuse titles, comments and lines of units before the values."""
    text = head.rpartition(b"\n")[0] or head  # the last line may be cut
    if not text.isascii():
        try:
            encoding = "utf-8-sig"
            text.decode(encoding)
        except UnicodeDecodeError:
            encoding = "latin-1"
    else:
        encoding = "ascii"
    separator, rows = ",", list[tuple[int, list[str]]]()
    for mark in SEPARATORS:
        with suppress(csv.Error):  # a cell that is too long, as a line is by a wrong separator
            read = list(islice(_rows(text, encoding, mark), LOOKED_AT))
            if not rows or _usual_width(read) > _usual_width(rows):
                separator, rows = mark, read
    if not rows:
        return
    width = _usual_width(rows)
    if width == 1:
        _check_separator(name, rows)
        return
    fitting = [(line, row) for line, row in rows if len(row) == width]
    begin = 1 if fitting[0] == rows[0] else 0
    first = next((at for at in range(begin, len(fitting)) if _is_row(fitting, at)), 0)
    if not first:
        return  # no names or no values: other errors say so
    names, row = max(fitting[:first], key=lambda item: _like_names(item[1]))
    values = fitting[first][0]
    others = [line for line, _ in rows if line < values and line != names]
    if others:
        got = f"names in line {names}, {separator.join(row)[:60]!r}, and values from line {values} on, in {name!r}"
        skipped = ", ".join(str(line - 1) for line in others)
        separated = "" if separator == "," else f", sep={separator!r}"
        by_pandas = f"pandas.read_csv({name!r}, skiprows=[{skipped}]{separated})"
        raise DataError(
            "a .csv file must begin with one line of names, and its values must follow",
            got,
            f"remove {_lines(others)}, or read it with {by_pandas} and give that table",
        )


def _check_separator(name: str, rows: list[tuple[int, list[str]]]) -> None:
    """Refuse lines of one cell each in which bars or spaces separate words."""
    texts = [row[0] for _, row in rows if row]
    for mark, what, pattern in (("|", "bars", "[|]"), (r"\s+", "spaces", r"\s+")):
        counts = {len(re.split(pattern, text.strip())) for text in texts}
        if (
            len(texts) > 2
            and len(counts) == 1
            and counts.pop() > 1
            and any(map(_has_values, map(re.compile(pattern).split, texts)))
        ):
            raise DataError(
                "a .csv file must have commas, semicolons or tabs between its cells",
                f"{what}, as in {texts[0].strip()[:60]!r}",
                f"export it with commas, or read it with pandas.read_csv({name!r}, sep={mark!r}) and give that table",
            )


def _rows(content: bytes, encoding: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Return the lines that are not empty, with the numbers of their last lines from 1 on."""
    lines = io.TextIOWrapper(io.BytesIO(content), encoding=encoding, errors="replace", newline="")
    reader = csv.reader(lines, delimiter=separator)
    for row in reader:
        if row:
            yield reader.line_num, row


def _usual_width(rows: list[tuple[int, list[str]]]) -> int:
    """Return the number of cells that most lines have; the larger one of two that are equally frequent."""
    counts = Counter(len(row) for _, row in rows)
    return max(counts, key=lambda width: (counts[width], width)) if counts else 1


def _like_names(row: list[str]) -> tuple[bool, int]:
    """Return how much a line is like one of names: no comment, and with many different words."""
    words = {cell.strip() for cell in row} - {""}
    return not _is_comment(row), sum(not VALUE.fullmatch(word) for word in words)


def _is_comment(row: list[str]) -> bool:
    return row[0].lstrip().startswith("#")


def _has_values(row: list[str]) -> bool:
    return any(VALUE.fullmatch(cell) or DATED.match(cell) for cell in row)


def _is_row(rows: list[tuple[int, list[str]]], at: int) -> bool:
    """Return whether a line has values: a number, a date, or a first cell with digits like that of the next line.

    Two comments may be alike, too.
    """
    row = rows[at][1]
    following = rows[at + 1][1] if at + 1 < len(rows) else row
    shapes = [re.sub("[A-Za-z]+", "a", re.sub(r"\d+", "9", each[0])) for each in (row, following)]
    alike = shapes[0] == shapes[1] and "9" in shapes[0] and not _is_comment(row)
    return _has_values(row) or alike


def _are_values(names: list[str]) -> bool:
    """Return whether the first line has the values of a row: only numbers, and perhaps a time.

    A number may be a name. So if a name is empty, as that of an index, there must be a time.
    """
    times = [name for name in names if DATED.match(name)]
    rest = [name for name in names if name.strip() and name not in times]
    return all(map(VALUE.fullmatch, rest)) and (bool(times) or len(rest) == len(names) > 1)


def _lines(numbers: list[int]) -> str:
    """Return the numbers of lines in words: line 2, or lines 1 to 3 and 5."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    listed = " and ".join(part for part in (", ".join(texts[:-1]), texts[-1]) if part)
    return f"line {listed}" if len(numbers) == 1 else f"lines {listed}"


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"
