"""Fetches a public file once, holds it against its checksum and keeps it."""

import logging
from dataclasses import dataclass
from pathlib import Path

import pooch

from overheard.core.errors import DataError

PATIENCE = 30
"""Seconds without an answer after which a server counts as unreachable."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A public file: where it lies and what it must be.

    Args:
        file: its name, in the cache and in messages.
        addresses: tried in this order.
        md5: as published; against damage and mix-ups, not against a forger.

    """

    file: str
    addresses: tuple[str, ...]
    md5: str


def fetch(remote: Remote, cache: Path | None = None) -> Path:
    """A local copy of the file, downloaded only if there is none yet.

    Args:
        remote: the file.
        cache: the folder that keeps it; None = the operating system's cache folder.

    Raises:
        DataError: if no address gives the file, or what it gives is not the file.

    """
    # Pooch tells of each download on stderr; in this project only the command line speaks.
    pooch.get_logger().setLevel(logging.WARNING)
    kept = cache if cache is not None else Path(pooch.os_cache("overheard"))
    failures = []
    for address in remote.addresses:
        try:
            path = pooch.retrieve(
                address,
                known_hash=f"md5:{remote.md5}",
                fname=f"{remote.md5[:8]}-{remote.file}",
                path=kept,
                downloader=pooch.HTTPDownloader(timeout=PATIENCE),
            )
        # Network failures are OSErrors; a wrong checksum is a ValueError.
        except (OSError, ValueError) as failure:
            failures.append(f"{address} ({_first_line(failure)})")
            continue
        return Path(path)
    raise DataError(f"{remote.file} could not be fetched from {' or '.join(failures)}")


def _first_line(failure: Exception) -> str:
    """What went wrong, short: nested network errors run over many lines."""
    lines = str(failure).splitlines() or [type(failure).__name__]
    return lines[0][:200]
