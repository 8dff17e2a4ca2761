"""Download of public files, checked by checksum and cached."""

import logging
from dataclasses import dataclass
from pathlib import Path

import pooch

from overheard.core.errors import DataError

TIMEOUT = 30
"""Seconds without a response after which a server counts as unreachable."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A public file on the web.

    Args:
        file_name: its name, in the cache and in messages.
        urls: URLs, tried in this order.
        md5: published checksum, which detects damage and mix-ups, but no forgery.

    """

    file_name: str
    urls: tuple[str, ...]
    md5: str


def fetch(remote: RemoteFile, cache: Path | None = None) -> Path:
    """Return the path of a local copy, which is downloaded if it is not cached.

    Args:
        remote: the file.
        cache: the cache folder; None = that of the operating system.

    Raises:
        DataError: if no URL returns the file, or the checksum is wrong.

    """
    # Pooch logs each download on stderr; only the command line may print.
    pooch.get_logger().setLevel(logging.WARNING)
    folder = cache if cache is not None else Path(pooch.os_cache("overheard"))
    failures = []
    for address in remote.urls:
        try:
            path = pooch.retrieve(
                address,
                known_hash=f"md5:{remote.md5}",
                fname=f"{remote.md5[:8]}-{remote.file_name}",
                path=folder,
                downloader=pooch.HTTPDownloader(timeout=TIMEOUT),
            )
        # Network failures are OSErrors; a wrong checksum is a ValueError.
        except (OSError, ValueError) as failure:
            failures.append(f"{address} ({_first_line(failure)})")
            continue
        return Path(path)
    raise DataError(f"{remote.file_name} could not be downloaded from {' or '.join(failures)}")


def _first_line(failure: Exception) -> str:
    """Return the first line of an error; nested network errors have many lines."""
    lines = str(failure).splitlines() or [type(failure).__name__]
    return lines[0][:200]
