"""Files that are either whole or not there, and the fingerprints that tell."""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def write_atomically(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write `content` to `path` by way of a temporary name, so that no reader ever sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def to_json(document: Any) -> bytes:
    """Render a document the same way every time; NaN is refused, so what is written is valid JSON."""
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def sha256(parts: bytes | Iterable[bytes]) -> str:
    """Fingerprint of bytes, or of pieces taken one after the other."""
    digest = hashlib.sha256()
    for part in [parts] if isinstance(parts, bytes) else parts:
        digest.update(part)
    return digest.hexdigest()
