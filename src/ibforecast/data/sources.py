"""Reading and writing tables: files and pandas, polars and pyarrow tables, all converted to arrow."""

import csv
import gzip
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pyarrow as pa
from jaxtyping import Shaped
from pyarrow import csv as arrow_csv

from ibforecast.core.calendar import iso_texts
from ibforecast.core.errors import DataError, UsageError
from ibforecast.core.files import write_atomically
from ibforecast.core.zones import IN_YEARS, to_wall
from ibforecast.data.heads import check_head, ragged, separator_of, without_hint
from ibforecast.data.limits import LONGEST_HEADER, LONGEST_TEXT, check_cells, check_columns, check_shape

if TYPE_CHECKING:
    import narwhals as nw  # slow, and a table in a file does not need it

Kind = Literal["pandas", "polars", "pyarrow"]
KINDS: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}
SUFFIXES = (".csv", ".csv.gz", ".parquet", ".tsv", ".tsv.gz")
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers")
PIECE = 2**24
"""Bytes of a file that are read at a time."""

FORMATS = {
    rb"\x1f\x8b": ("gzip", "rename it to {0}.gz"),
    rb"PK\x03\x04": ("a zip archive or a spreadsheet", "unpack it, or save the spreadsheet as CSV"),
    rb"\xd0\xcf\x11\xe0": ("a spreadsheet", "save it as CSV"),
    rb"PAR1\x15": ("Parquet", "rename it so that it ends in .parquet"),
    rb"\s*(\{\s*[\"}]|\[\s*[\[{])": ("JSON", "read it with pandas and give that table, or convert it to CSV"),
    rb"(?i)\s*<(!doctype|html|\?xml)": ("a web page or XML", "download the file itself, or export it as CSV"),
}
"""How files of other formats begin, what they are, and what to do."""

WITH_COMMA = r"^\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*$"
"""A number as spreadsheets of many countries write it, where commas are not between the cells."""

THOUSANDS = r"^\s*[+-]?[1-9]\d{0,2}(\.\d{3})+\s*$"
"""A number that means thousands there, and less than a thousand elsewhere."""

PERIOD = "period["
"""How the type of the periods of pandas begins."""

UNNAMED = re.compile(r"\s*|Unnamed: \d+")
"""Names of columns without a name, in CSV and as pandas reads them."""

OFFSETS = b"offsets"
"""The metadata key for the offsets in a time column of a CSV file: arrow converts the times to UTC."""


def load(source: Any) -> tuple[pa.Table, Kind]:
    """Return a path or a table as an arrow table, and the kind of table to return to the user."""
    if isinstance(source, str | Path):
        table, kind = _read_file(Path(source)), kind_for_files()
    else:
        frame = _frame(source)
        check_shape(len(frame), frame.columns)
        table, kind = _from_native(source, frame), KINDS[frame.implementation.value]
    table = _without_row_numbers(table)
    if repeated := [name for name, count in Counter(table.column_names).items() if count > 1]:
        raise DataError("channel names must differ", f"{repeated[0]!r} more than once", "rename one of them")
    return table, kind


def _without_row_numbers(table: pa.Table) -> pa.Table:
    """Return the table without columns that have no name and are empty or number the rows, as an index does in CSV."""
    kept = [place for place, name in enumerate(table.column_names) if not UNNAMED.fullmatch(name)]
    for place in set(range(table.num_columns)) - set(kept):
        column = table.column(place)
        if column.null_count < len(column) and not _numbers_rows(column):
            kept.append(place)
    return table if len(kept) == table.num_columns else table.select(sorted(kept))


def _numbers_rows(column: pa.ChunkedArray) -> bool:
    """Return whether a column is 0, 1, 2 and so on, or 1, 2, 3 and so on."""
    if not pa.types.is_integer(column.type) or column.null_count:
        return False
    since = column.to_numpy() - np.arange(len(column))
    return bool(since[0] in (0, 1) and (since == since[0]).all())


def to_native(table: pa.Table, kind: Kind) -> Any:
    """Convert an arrow table to the user's kind: the inverse of `load`."""
    if kind == "pandas":
        return table.to_pandas()
    if kind == "polars":
        import polars

        return polars.from_arrow(table)
    return table


def from_rows(kind: type[Any], rows: Iterable[Any]) -> pa.Table:
    """Return a table of instances of a dataclass: one row for each, one column per field."""
    members = list(rows)
    names = [field.name for field in fields(kind)]
    return pa.table({name: pa.array([getattr(row, name) for row in members]) for name in names})


def write(native: Any, path: Path) -> None:
    """Write a table of any kind as CSV, with commas or tabs, perhaps gzipped, or Parquet, whole or not at all."""
    table = _from_native(native, _frame(native))
    suffix = check_suffix(path)
    if suffix == ".parquet":
        from pyarrow import parquet

        buffer = io.BytesIO()
        parquet.write_table(table, buffer)
        write_atomically(path, buffer.getvalue())
    else:
        text = to_csv(table, "\t" if suffix.startswith(".tsv") else ",")
        # Without a time stamp, the same table always gives the same file.
        write_atomically(path, gzip.compress(text, mtime=0) if suffix.endswith(".gz") else text)


def to_csv(native: Any, separator: str = ",") -> bytes:
    """Return a table of any kind as the content of a CSV file."""
    table = _from_native(native, _frame(native))
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows(zip(*(_cells(column) for column in table.columns), strict=True))
    return text.getvalue().encode()


def check_suffix(path: Path) -> str:
    """Return the suffix of a table's file; refuse unknown ones."""
    for suffix in SUFFIXES:
        if path.name.lower().endswith(suffix):
            return suffix
    is_sheet = path.suffix.lower() in SPREADSHEETS
    remedy = "save the spreadsheet as CSV or Parquet" if is_sheet else "convert or rename it"
    raise UsageError(f"a table's file must end in {', '.join(SUFFIXES)}", repr(path.name), remedy)


def kind_for_files() -> Kind:
    """Return the kind of table for results of a file: pandas if it is installed, otherwise pyarrow."""
    return "pandas" if find_spec("pandas") else "pyarrow"


def _read_file(path: Path) -> pa.Table:
    suffix = check_suffix(path)
    if not path.is_file():
        raise DataError("a table must be a file that exists", repr(str(path)), "check the path")
    try:
        if suffix == ".parquet":
            return _read_parquet(path)
        with gzip.open(path) if suffix.endswith(".gz") else path.open("rb") as file:
            head = file.read(LONGEST_HEADER + 1)
            _check_format(path.name, head)
            columns = check_head(path.name, without_hint(head))
            content = without_hint(_read_on(file, head))
        if len(content) > LONGEST_TEXT:
            raise DataError(
                f"a {suffix} file must have at most {LONGEST_TEXT:,} bytes of text", repr(path.name), "use Parquet"
            )
        check_cells(max(content.count(b"\n"), content.count(b"\r")), columns)
        return _read_csv(path.name, content)
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise DataError(
            f"a {suffix} file must be whole and well formed", f"{path.name!r}: {error}", "export it again"
        ) from error


def _read_on(file: io.BufferedIOBase, head: bytes) -> bytes:
    """Return all bytes of a file whose first ones were read, or one more than allowed.

    A small file may unpack to any size. It is read in pieces, because Python reserves the memory for all bytes that are
    requested, even if there are few.
    """
    content, left = io.BytesIO(), LONGEST_TEXT + 1 - len(head)
    content.write(head)
    while piece := file.read(min(PIECE, left)):
        left -= content.write(piece)
    return content.getvalue()


def _read_parquet(path: Path) -> pa.Table:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        check_columns(file.metadata.num_columns)  # before the schema is read, in which each has a Python object
        check_shape(file.metadata.num_rows, file.schema_arrow.names)
        table = file.read()
    table.validate(full=True)  # text that is not UTF-8 would fail only when it is used
    return table


def _check_format(name: str, head: bytes) -> None:
    """Refuse a file whose first bytes are not those of CSV, with the format that they belong to."""
    for beginning, (format, remedy) in FORMATS.items():
        if re.match(beginning, head):
            raise DataError("a .csv file must be text with commas", f"{name!r}, which is {format}", remedy.format(name))
    if b"\0" in head:
        rule, got = "a .csv file must be text in UTF-8", "bytes that are zero, as in UTF-16"
        raise DataError(rule, f"{got}, in {name!r}", "save it again as CSV UTF-8")


def _read_csv(name: str, content: bytes) -> pa.Table:
    try:
        content.decode()
        encoding = "utf8"
    except UnicodeDecodeError:
        encoding = "latin-1"
    # From memory: the thread that reads ahead in a Python file may outlive an error and abort the process at exit.
    # One block, so that types are inferred from every row and not from the first megabyte.
    whole = arrow_csv.ReadOptions(encoding=encoding, block_size=min(2 * len(content) + 1, 2**31 - 1))
    separator = separator_of(content)
    parsing = arrow_csv.ParseOptions(delimiter=separator)

    def parsed(**how: Any) -> pa.Table:
        return arrow_csv.read_csv(
            pa.BufferReader(content),
            read_options=whole,
            parse_options=parsing,
            convert_options=arrow_csv.ConvertOptions(strings_can_be_null=True, **how),
        )

    def as_texts(names: list[str]) -> pa.Table:
        return parsed(include_columns=names, column_types=dict.fromkeys(names, pa.string()))

    try:
        table = parsed()
    except pa.ArrowInvalid as error:
        if uneven := ragged(name, content, encoding):
            raise uneven from error
        raise
    if separator != ",":
        if any(_has_commas(column) for column in table.columns):
            table = _with_points(parsed(decimal_point=","))
        elif fractions := [field.name for field in table.schema if pa.types.is_floating(field.type)]:
            _check_thousands(as_texts(fractions), separator)
    zoned = [field.name for field in table.schema if has_zone(field.type)]
    if not zoned:
        return pa.table([_in_microseconds(column) for column in table.columns], names=table.column_names)
    texts = as_texts(zoned)
    written = {name: {OFFSETS: " ".join(offsets_in(texts.column(at)))} for at, name in enumerate(texts.column_names)}
    columns = [_in_microseconds(column) for column in table.columns]
    fields = [
        pa.field(name, column.type, metadata=written.get(name))
        for name, column in zip(table.column_names, columns, strict=True)
    ]
    return pa.table(columns, schema=pa.schema(fields))


def _has_commas(column: pa.ChunkedArray) -> bool:
    """Return whether a column has texts, all of its cells are numbers or have no digits, and some a decimal comma."""
    import pyarrow.compute as pc  # slow, and few tables need it

    if not pa.types.is_string(column.type):
        return False
    commas = pc.match_substring_regex(column, WITH_COMMA)
    others = pc.match_substring_regex(column, r"^\s*[+-]?\d+([eE][+-]?\d+)?\s*$|^\D*$")
    return bool(pc.any(commas).as_py()) and bool(pc.all(pc.or_(commas, others)).as_py())


def _with_points(table: pa.Table) -> pa.Table:
    """Return a table whose columns of numbers with decimal commas and other marks, such as "-", have points instead."""
    import pyarrow.compute as pc  # slow, and few tables need it

    columns = [
        pc.replace_substring_regex(column, ",", ".") if _has_commas(column) else column for column in table.columns
    ]
    return pa.table(columns, schema=table.schema)


def _check_thousands(texts: pa.Table, separator: str) -> None:
    """Refuse points that may be decimal points or between thousands, unless commas between the cells show which."""
    import pyarrow.compute as pc  # slow, and few tables need it

    for name, column in zip(texts.column_names, texts.columns, strict=True):
        has_point = pc.match_substring(column, ".")
        pointed = column.filter(has_point)
        if len(pointed) and pc.all(pc.match_substring_regex(pointed, THOUSANDS)).as_py():
            row, first = pc.index(has_point, True).as_py(), pointed[0].as_py()
            raise DataError(
                f"numbers must have one meaning where {separator!r} is between the columns",
                f"row {row}: {first!r} in {name!r}, which is 1 or 1000 times as much",
                f"write them without points between thousands, {first.replace('.', '')}, or with another number of "
                "digits after the point",
            )


def _in_microseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.timestamp("us", column.type.tz)) if pa.types.is_timestamp(column.type) else column


def has_zone(kind: pa.DataType) -> bool:
    """Return whether a column of this type contains moments with a time zone."""
    return bool(pa.types.is_timestamp(kind) and kind.tz is not None)


def offsets_in(texts: pa.ChunkedArray) -> list[str]:
    """Return the different offsets in texts of times, such as "+01:00"."""
    import pyarrow.compute as pc  # slow, and few tables need it

    offsets = pc.struct_field(pc.extract_regex(texts, r"(?P<offset>Z|[+-]\d\d:?(?:\d\d)?)$"), "offset")
    bare = {text.replace("Z", "+00").replace(":", "").ljust(5, "0") for text in offsets.unique().to_pylist() if text}
    return sorted({f"{text[:3]}:{text[3:]}".replace("-00:00", "+00:00") for text in bare})


def _frame(source: Any) -> "nw.DataFrame[Any]":
    """Return a pandas, polars or pyarrow table in the form that is common to them; refuse anything else."""
    import narwhals as nw

    try:
        opened = nw.from_native(source)
    except nw.exceptions.DuplicateError as error:
        raise DataError("channel names must differ", " ".join(str(error).split()), "rename one of them") from error
    except TypeError as error:
        raise _unknown(source) from error
    frame: nw.DataFrame[Any] = opened.collect() if isinstance(opened, nw.LazyFrame) else opened
    if frame.implementation.value not in KINDS:
        raise _unknown(source)
    return frame


def _from_native(source: Any, frame: "nw.DataFrame[Any]") -> pa.Table:
    import narwhals as nw

    if isinstance(source, pa.Table):  # unchanged, to keep the metadata of its fields
        return source
    columns = {str(name): _to_arrow(frame.get_column(name)) for name in frame.columns}
    index = nw.maybe_get_index(frame)
    if index is None or any(is_time(column.type) for column in columns.values()):
        return pa.table(columns)
    if index.nlevels > 1 and any(level.dtype.kind == "M" for level in index.levels):
        got = f"an index of {', '.join(map(repr, index.names))}"
        raise DataError("a table must have its times and ids as columns", got, "give table.reset_index()")
    if str(index.dtype).startswith(PERIOD):
        index = index.to_timestamp()
    if index.nlevels == 1 and index.dtype.kind == "M":
        columns = {str(index.name or "time"): pa.array(index)} | columns
    return pa.table(columns)


def _unknown(source: Any) -> UsageError:
    """Return the error for an object that is no table, with the call that makes one of it."""
    kind = type(source).__name__
    calls = {
        "Series": "give series.to_frame('load')",
        "ndarray": "give pandas.DataFrame(array) with a column of times",
        "dict": "give pandas.DataFrame(columns)",
        "list": "give pandas.DataFrame(rows)",
        "Dataset": "give dataset.to_dataframe().reset_index()",
        "DataArray": "give array.to_dataframe('load').reset_index()",
    }
    rule = "a table must be a path or a pandas, polars or pyarrow table"
    return UsageError(rule, kind, calls.get(kind, "convert it to one of these"))


def is_time(kind: pa.DataType) -> bool:
    """Return whether a column of this type contains moments."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _to_arrow(column: "nw.Series[Any]") -> pa.Array | pa.ChunkedArray:
    native = column.to_native()
    if str(native.dtype).startswith(PERIOD):  # of pandas: a period means its first moment
        return pa.array(native.dt.to_timestamp())
    try:
        return column.to_arrow()
    except pa.ArrowException:  # a pandas column of mixed objects
        absent = column.is_null().to_list()
        return pa.array([None if gone else str(value) for value, gone in zip(column.to_list(), absent, strict=True)])


def _cells(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type) and not column.null_count:
        moments, zone = moments_of(column)
        return list(iso_texts(moments, to_wall(moments, zone), False, zone is not None))
    if pa.types.is_nested(column.type):
        return [json.dumps(cell) for cell in column.to_pylist()]
    return [None if cell is None or cell != cell else cell for cell in column.to_pylist()]


def moments_of(column: pa.ChunkedArray) -> tuple[Shaped[np.ndarray, " row"], str | None]:
    """Return a column of moments as datetime64[us], in UTC if the column has a time zone, and that zone."""
    zone = column.type.tz if pa.types.is_timestamp(column.type) else None
    is_finer = pa.types.is_timestamp(column.type) and column.type.unit == "ns"
    try:
        counted = column.cast(pa.timestamp("us", zone), safe=not is_finer).cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise DataError(IN_YEARS, str(error), "correct them, or remove the rows") from error
    return np.array(counted.to_numpy(), dtype=np.int64).view("datetime64[us]"), zone
