"""Download of public files over https, checked by their SHA-256 and cached."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pooch

from overheard.core.errors import DataError

TIMEOUT = 30
"""Seconds without a response after which a server counts as unreachable."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A public file on the web.

    Args:
        file_name: its name, in the cache and in messages.
        urls: addresses that begin with https, tried in this order.
        sha256: the SHA-256 of its bytes, in hexadecimal digits.

    Raises:
        ValueError: if an address does not begin with https.

    """

    file_name: str
    urls: tuple[str, ...]
    sha256: str

    def __post_init__(self) -> None:
        """Refuse addresses whose server and bytes are not authenticated."""
        for address in self.urls:
            if not address.startswith("https://"):
                raise ValueError(f"expected an address that begins with https, got {address}")


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
                known_hash=f"sha256:{remote.sha256}",
                fname=f"{remote.sha256[:8]}-{remote.file_name}",
                path=folder,
                downloader=pooch.HTTPDownloader(
                    timeout=TIMEOUT, hooks={"response": _refuse_other_than_https}
                ),
            )
        # Network failures are OSErrors; a wrong checksum is a ValueError.
        except (OSError, ValueError) as failure:
            failures.append(f"{address} ({_first_line(failure)})")
            continue
        return Path(path)
    raise DataError(f"{remote.file_name} could not be downloaded from {' or '.join(failures)}")


# Any: requests has no types, and gives a hook the keywords of its own call.
def _refuse_other_than_https(response: Any, *_: Any, **__: Any) -> None:
    """Refuse a redirect away from https before it is followed.

    Raises:
        OSError: if the server sends the download on to an address without https.

    """
    if response.is_redirect:
        target = urljoin(response.url, response.headers["location"])
        if not target.startswith("https://"):
            raise OSError(f"it redirects to {target[:200]}, which is not https")


def _first_line(failure: Exception) -> str:
    """Return the first line of an error; nested network errors have many lines."""
    lines = str(failure).splitlines() or [type(failure).__name__]
    return lines[0][:200]
