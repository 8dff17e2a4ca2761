"""Limits on the memory that one file from outside may fill; one option raises all of them."""

import errno
import os
import re
from pathlib import Path

from overheard.core.errors import AuditError, PlanError

VARIABLE = "OVERHEARD_MAX_UNPACKED"
"""The environment variable with the limit in force; worker processes inherit it."""

OPTION = "--max-unpacked"
"""The option of the command that sets it."""

DEFAULT_BYTES = 2**32
"""The most bytes that one file may unpack to, unless the user sets another limit."""

ARRAY = 1
"""An array or an image set may take all of the limit."""

TABLE = 4
"""A table may take a quarter, as its columns are copied while they are converted."""

JSON = 4
"""The values of a JSON document may take a quarter, as texts of 256 MiB do."""

FINDINGS = 1
"""The findings of an audit may take all of the limit, as texts of 1 GiB do."""

ANY_RATIO = 64
"""A sixty-fourth (64 MiB) may be unpacked however small the file is."""

SMALL_FILE = 1024
"""A small text file, such as a plan, may have a 1024th (4 MiB)."""

SOURCE_FILES = 8192
"""All source files of an app may have an 8192nd (512 KiB): a syntax tree takes up to 900 times
as much."""

MAX_RATIO = 100
"""Largest ratio of unpacked to packed size for larger files. Trained weights hardly compress,
images about ten times; a ratio of a thousand is a zip bomb."""

BLOCK_BYTES = 512
"""Bytes of a block as `stat` counts them."""

MAX_DIGITS = 300
"""The most digits of a number: longer ones exceed every float."""

LONG_NUMBER = f"it has a number of more than {MAX_DIGITS} digits"

ITEM_BYTES = 64
"""Bytes of memory that a value of a JSON or TOML document takes beside its text."""

JSON_BYTE = 4
"""Bytes of memory that a letter of a JSON document may take, as in a text beyond ASCII."""

_DIGITS = bytes(ord("0") if chr(code) in "0123456789" else 0 for code in range(256))
_UNITS = {"": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
_SIZE = re.compile(r"([0-9]{1,15}) ?([KMGT]B)?", re.ASCII | re.IGNORECASE)


def parse_size(text: str) -> int:
    """Return the bytes of a size such as "8GB", where a KB has 1024 bytes.

    >>> parse_size("8GB"), parse_size("100")
    (8589934592, 100)

    Raises:
        ValueError: if it is no size, or none at all.

    """
    match = _SIZE.fullmatch(text.strip())
    size = int(match[1]) * _UNITS[(match[2] or "").upper()] if match else 0
    if not size:
        raise ValueError(f"{text[:30]!r} is no size: give a number and a unit, such as 8GB")
    return size


def set_max_unpacked(size: int) -> None:
    """Let files unpack to this many bytes from now on, in later worker processes too."""
    os.environ[VARIABLE] = str(size)


def limit_of(part: int) -> int:
    """Return the most bytes that a kind of file may take, such as `TABLE`.

    Raises:
        PlanError: if the environment variable holds no size.

    """
    text = os.environ.get(VARIABLE, "")
    try:
        return (parse_size(text) if text else DEFAULT_BYTES) // part
    except ValueError as error:
        raise PlanError(f"{VARIABLE}: {error}") from error


def refuse_large(
    what: str, size: int, error: type[AuditError], *, part: int, packed: int | None = None
) -> None:
    """Check that something unpacks to no more than is allowed.

    Args:
        what: the file, and the part of it, for the message.
        size: the bytes that it unpacks to.
        error: the class of the error.
        part: its kind, such as `TABLE`.
        packed: the bytes that it takes on the disk; None = they do not matter.

    Raises:
        AuditError: of class `error`, with the option that raises the limit.

    """
    limit = limit_of(part)
    if size > limit:
        raise error(
            f"{what} takes {size} bytes of memory, more than {limit}{_remedy(size, part)}"
        )
    if packed is None or size <= MAX_RATIO * packed or size <= limit_of(ANY_RATIO):
        return
    raise error(
        f"{what} has {packed} bytes on the disk and unpacks to {size}, more than "
        f"{limit_of(ANY_RATIO)} and more than {MAX_RATIO} times as many"
        f"{_remedy(size, ANY_RATIO)}"
    )


def check_json(
    content: bytes, place: str, error: type[AuditError], *, part: int = JSON
) -> None:
    """Refuse a JSON text whose values would take too much memory, or have too many digits."""
    if b"0" * (MAX_DIGITS + 1) in content.translate(_DIGITS):
        raise error(f"{place} is damaged: {LONG_NUMBER}; correct it, or copy it again")
    refuse_large(f"{place}: its content", json_memory(content), error, part=part)


def json_memory(content: bytes) -> int:
    """Return an estimate of the bytes of memory that the values of a JSON text take."""
    # Each value follows one of these signs, and they are faster to count than values.
    items = sum(content.count(sign) for sign in (b",", b":", b"[", b"{"))
    return JSON_BYTE * len(content) + ITEM_BYTES * items


def unpack_limit(packed: int, part: int) -> int:
    """Return the most bytes that `refuse_large` lets packed bytes unpack to."""
    return min(limit_of(part), max(limit_of(ANY_RATIO), MAX_RATIO * packed))


def refuse_sparse(path: Path, error: type[AuditError], *, is_eager: bool = False) -> None:
    """Check that a file is stored in full, and not for the most part as a hole.

    Args:
        path: the file.
        error: the class of the error.
        is_eager: whether many such files are read at once, so that small ones matter too.

    Raises:
        AuditError: of class `error`, with the option that allows it.
        OSError: if the file cannot be read.

    """
    status = path.stat()
    if is_sparse(path, status, is_eager=is_eager):
        raise error(
            f"{path} claims {status.st_size} bytes, of which the disk stores less than a "
            f"hundredth{_remedy(status.st_size, ANY_RATIO)}"
        )


def is_sparse(path: Path, status: os.stat_result, *, is_eager: bool = False) -> bool:
    """Return whether a file claims over a hundred times as many bytes as the disk stores.

    A file system tells how many blocks it has stored, which may be too few for a file that was
    written just now, and for one that it has compressed. So parts without data are counted.

    Args:
        path: the file.
        status: its status.
        is_eager: whether small files matter too.

    """
    size, blocks = status.st_size, getattr(status, "st_blocks", None)
    most = size // MAX_RATIO
    is_small = not is_eager and size <= limit_of(ANY_RATIO)
    if blocks is None or is_small or blocks * BLOCK_BYTES >= most:
        return False
    with path.open("rb") as file:
        stored = end = 0
        try:
            while stored < most:
                start = os.lseek(file.fileno(), end, os.SEEK_DATA)
                end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
                stored += end - start
        except OSError as failure:
            # ENXIO: there are no further data. Otherwise, the file system does not know.
            return failure.errno == errno.ENXIO
    return False


def _remedy(size: int, part: int) -> str:
    needed = -(-size * part // 2**30)
    return (
        ": get a new copy or, if you trust it, raise the limit with "
        f"`overheard {OPTION} {needed}GB ...`"
    )
