"""Internal errors: Overheard itself fails in an attack, a scorer, a question or a page."""

import logging
import os

from overheard.core.errors import AuditError, WorkerError
from overheard.core.escape import escape_unprintable

DEBUG_VARIABLE = "OVERHEARD_DEBUG"
"""The environment variable that makes failures end the command; worker processes inherit it."""

HOW_TO_REPORT = (
    "This is a fault of Overheard: please report it with what `overheard --debug audit` prints "
    "for the same plan"
)
"""What a user should do about a failure."""

MAX_LENGTH = 300
"""Most characters of an error's text that a reason quotes."""

_LOG = logging.getLogger("overheard")


def are_failures_raised() -> bool:
    """Return whether failures are raised, as in tests and with --debug."""
    return os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")


def raise_failures() -> None:
    """Raise failures from now on, in worker processes that start later too."""
    os.environ[DEBUG_VARIABLE] = "1"


def is_internal_error(error: Exception) -> bool:
    """Return whether an error is a failure of Overheard, and none that a user can correct.

    That training failed in a worker process counts, as one attack may be the cause of it.
    """
    return isinstance(error, WorkerError) or not isinstance(error, AuditError | OSError)


def describe_internal_error(what: str, error: Exception) -> str:
    """Return what failed, with the class of the error and its message, on one printable line.

    Raises:
        Exception: the error itself, if failures are raised or the user can correct it.

    """
    if are_failures_raised() or not is_internal_error(error):
        raise error
    _LOG.debug("%s failed", what, exc_info=error)
    text = escape_unprintable(" ".join(str(error).split()))
    short = text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}..."
    name = type(error).__name__
    return f"{what} failed: {name}: {short}" if short else f"{what} failed: {name}"
