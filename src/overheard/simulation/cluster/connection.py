"""The connection to a Ray cluster, or to a Ray that this process starts on its machine."""

import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any
from urllib.parse import urlsplit
from warnings import catch_warnings, simplefilter

from overheard.core.errors import PlanError
from overheard.core.escape import escape_unprintable
from overheard.learning.threads import available_cores

LOCAL = "local"
"""The address that stands for this machine."""

CONNECT_TIMEOUT = 5.0
"""Seconds within which a cluster must respond."""


def connect(address: str) -> Any:  # a module without types
    """Connect to the cluster at this address, and return the module `ray`.

    Args:
        address: "ray://host:port" of a running cluster. "local" starts one here with one worker
            per core, which runs until Python exits. If this process is already connected to a
            cluster, that one is used.

    Raises:
        PlanError: if Ray is not installed, or the cluster does not respond or cannot be joined.

    """
    _check_address(address)
    try:
        import ray
    except ImportError as missing:
        raise PlanError(
            f"the cluster {address!r} needs Ray: pip install '.[ray]' in a checkout of "
            "Overheard, or leave `cluster` out"
        ) from missing
    if not ray.is_initialized():
        _join(ray, address)
    return ray


def _check_address(address: str) -> None:
    """Refuse an address that does not respond; Ray itself would try for minutes."""
    if address == LOCAL:
        return
    message = (
        f"the Ray cluster {address!r} does not respond: give 'local', or 'ray://host:port' of"
    )
    try:
        parts = urlsplit(address)
        if parts.scheme != "ray" or parts.hostname is None or parts.port is None:
            raise PlanError(f"{message} the Ray Client server of a cluster")
        socket.create_connection((parts.hostname, parts.port), timeout=CONNECT_TIMEOUT).close()
    except (OSError, ValueError) as error:
        raise PlanError(f"{message} one that runs; {error}") from error


def _join(ray: Any, address: str) -> None:  # a module without types
    # Ray warns of its own future changes at every start.
    with _sigterm_restored(), catch_warnings():
        simplefilter("ignore", FutureWarning)
        if address == LOCAL:
            ray.init(
                address=LOCAL,
                num_cpus=available_cores(),
                include_dashboard=False,
                configure_logging=False,
                log_to_driver=False,
            )
            return
        try:
            ray.init(address=address, configure_logging=False, log_to_driver=False)
        # In this order: no ray[client]; another service on that port; other versions there.
        except (ValueError, ConnectionError, RuntimeError) as error:
            raise PlanError(
                f"the Ray cluster {address!r} cannot be joined: give the port of its Ray "
                "Client server, and have ray[client] here in its version of Ray and of Python; "
                f"{escape_unprintable(str(error))}"
            ) from error


@contextmanager
def _sigterm_restored() -> Generator[None, None, None]:
    """Restore the handler of SIGTERM, which Ray replaces by one that prints and aborts."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if callable(handler) and current_thread() is main_thread():
            signal.signal(signal.SIGTERM, handler)
