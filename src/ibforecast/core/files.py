"""Files that are written whole or not at all, and their fingerprints."""

import errno
import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ibforecast.core.errors import UsageError

DISK_ERRORS = (errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOENT, errno.ENOSPC, errno.EROFS)
"""Errors of a disk, which may not name a file."""

HOST = re.sub("[^A-Za-z0-9]", "_", platform.node())
"""This machine, in temporary names: a process of another may use the same disk."""


def temporary_prefix(path: Path) -> str:
    """Return the beginning of a temporary name for a path: its own name, the machine and the process.

    If the process is killed, `ibforecast.core.folders.sweep` finds it.
    """
    return f".{path.name}.{HOST}-{os.getpid()}."


def write_atomically(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write `content` under a temporary name and rename it to `path`, so that no reader sees part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder: a rename is atomic only within one file system.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=temporary_prefix(path))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # on disk before the rename, or a crash could leave an empty file at `path`
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def is_of_disk(error: Exception) -> bool:
    """Return whether an error is about files or the disk, and not a mistake of ours."""
    if not isinstance(error, OSError):
        return False
    return error.filename is not None or error.errno in DISK_ERRORS or isinstance(error, shutil.Error)


def not_usable(error: OSError, path: Path | str | None = None) -> UsageError:
    """Return the error for a path that could not be read or written; by default the one that the error names."""
    why = error.strerror or type(error).__name__
    if isinstance(error, shutil.Error):  # it lists the failures of a copied folder
        _, path, why = error.args[0][0]
    return UsageError(
        "a path must be one that can be read and written",
        f"{path or error.filename2 or error.filename or 'the disk'}: {why}",
        "choose another, or check its permissions and the free space",
    )


def to_json(document: Any) -> bytes:
    """Return a document as JSON, always in the same form; refuse NaN, which JSON does not have."""
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def sha256(parts: bytes | Iterable[bytes]) -> str:
    """Return the SHA-256 of bytes, or of pieces one after the other."""
    digest = hashlib.sha256()
    for part in [parts] if isinstance(parts, bytes) else parts:
        digest.update(part)
    return digest.hexdigest()
