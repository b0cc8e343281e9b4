"""Arrow over HTTP: tables that arrive, and answers that leave, as Arrow IPC streams without a history."""

import json
import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from ibforecast.core import document
from ibforecast.core.errors import DataError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.facts import ModelFacts
from ibforecast.serve.models import Forecasted
from ibforecast.serve.tables import check_names, check_size, no_column
from ibforecast.serve.wire import VERSION

STREAM = "application/vnd.apache.arrow.stream"

Row = tuple[dict[str, str | np.ndarray], ModelFacts | ExplainedForecast]
"""The columns of one moment, and what says what all moments have in common."""


def is_stream(content_type: str) -> bool:
    """Return whether a body of this type is an Arrow stream."""
    return content_type.partition(";")[0].strip().lower() == STREAM


def from_stream(body: bytes, most: int) -> pa.Table:
    """Read a table; refuse one that takes more than `most` bytes when it is read."""
    try:
        for message in ipc.MessageReader.open_stream(pa.py_buffer(body)):
            if message.type == "record batch" and _is_compressed(message.metadata.to_pybytes()):
                raise DataError("an Arrow stream must not be compressed", "one that is", "write it without compression")
        reader = ipc.open_stream(pa.py_buffer(body))
        check_names(len(reader.schema), "body")
        _ = reader.schema.names  # decodes them: a name that is not UTF-8 would fail when it is used
        for field in reader.schema:
            kind = field.type
            if not (pa.types.is_primitive(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                raise no_column(str(kind), field.name)
        table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, struct.error, UnicodeDecodeError) as error:
        raise DataError("an Arrow stream must be whole and well formed", str(error)[:200], "write it again") from error
    # Columns may share their bytes in the stream, so a table may be far larger than its body.
    check_size(max(table.nbytes, table.num_rows * table.num_columns * 8), most)
    return table


def _is_compressed(metadata: bytes) -> bool:
    """Return whether the header of a record batch names a compression: one could unpack to any size.

    The header is a flatbuffer: a table has an offset to its list of field places, in which 0 means absent.
    """

    def place(table: int, field: int) -> int:
        (back,) = struct.unpack_from("<i", metadata, table)
        start = table - back
        (size,) = struct.unpack_from("<H", metadata, start)
        slot = 4 + 2 * field
        return int(struct.unpack_from("<H", metadata, start + slot)[0]) if slot < size else 0

    (message,) = struct.unpack_from("<I", metadata, 0)
    header = message + place(message, 2)
    (offset,) = struct.unpack_from("<I", metadata, header)
    return place(header + offset, 3) != 0


def forecast_row(forecast: Forecasted) -> Row:
    """Return the forecast of a moment."""
    return {"at": forecast.at, "forecast": forecast.forecast}, forecast.facts


def _common(of: ModelFacts | ExplainedForecast) -> dict[str, str]:
    return {
        "version": str(VERSION),
        "weights_sha256": of.weights_sha256,
        "budget": repr(of.budget),
        "channels": json.dumps(of.channels),
        "look_back": str(of.look_back),
        "horizon": str(of.horizon),
        "patch_len": str(of.patch_len),
        **({} if of.limits is None else {"limits": json.dumps(of.limits.document())}),
    }


def explanation_row(explained: ExplainedForecast) -> Row:
    """Return the forecast of a moment, what it was computed from, and the fingerprint of the window."""
    explanation = explained.explanation
    columns: dict[str, str | np.ndarray] = {
        "at": explained.at,
        "forecast": explained.forecast,
        "mask": explanation.mask,
        "evidence": explanation.evidence,
        "level": explanation.context.level,
        "scale": explanation.context.scale,
        "window_sha256": window_sha256(explained),
    }
    return columns, explained


def window_sha256(explained: ExplainedForecast) -> str:
    """Return the fingerprint of a window: its channels, the times and the values of its look-back."""
    times = list(explained.times[: explained.look_back])
    return document.fingerprint({"channels": list(explained.channels), "history": explained.history, "times": times})


def to_stream(model: str, rows: Sequence[Row]) -> bytes:
    """Write the rows of an answer: arrays are lists of fixed length, row by row."""
    arrays = {name: _column([columns[name] for columns, _ in rows]) for name in rows[0][0]}
    schema = {"model": model} | _common(rows[0][1])
    batch = pa.record_batch(arrays).replace_schema_metadata(schema)
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _column(cells: Sequence[str | np.ndarray]) -> pa.Array:
    if isinstance(cells[0], str):
        return pa.array(cells, pa.string())
    values = np.concatenate([np.asarray(cell).reshape(-1) for cell in cells])
    return pa.FixedSizeListArray.from_arrays(pa.array(values), len(values) // len(cells))
