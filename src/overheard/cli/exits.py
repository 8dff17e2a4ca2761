"""How the command ends: exit codes, signals, and errors as one message."""

import logging
import os
import sys
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any, final

import typer
from rich.console import Console

from overheard.cli.terminal import escaped_text
from overheard.core.errors import AuditError
from overheard.core.failures import HOW_TO_REPORT, are_failures_raised

USER_ERROR = 2
"""Exit code for errors that the user can correct."""

FAILURE = 70
"""Exit code for a failure of Overheard itself, by the convention of sysexits.h."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, by the convention of shells."""

BROKEN_PIPE = 141
"""Exit code if the reader of the output has gone, by the convention of shells."""

TERMINATED = 143
"""Exit code after SIGTERM, by the convention of shells."""

EXIT_CODES = (
    "Exit codes: 0 done. 1 a rule of check fails, doctor finds a critical fault, or verify "
    "finds a changed file. 2 an error that you can correct, or check is inconclusive. 70 a "
    "failure of Overheard itself. 130 interrupted. 141 the reader of the output has gone. 143 "
    "terminated."
)
"""What the help says of exit codes."""

RESUME = "finished work is saved: run the same command again to resume"
"""What to do after an interruption."""

# Any: up to 0.25, typer raises errors of the package click, and then those of its own copy.
_ERRORS: tuple[Any, ...] = typer.BadParameter.__mro__
_, UsageError, ClickException, *_ = _ERRORS

_LOG = logging.getLogger("overheard")


@final
class SigtermHandler:
    """Turns the first SIGTERM into a Ctrl-C, which ends workers before the command.

    Later signals are ignored, since they would interrupt this shutdown.
    """

    def __init__(self) -> None:
        self.is_received = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise what Ctrl-C raises, at the first signal only."""
        if not self.is_received:
            self.is_received = True
            # While Ray waits, it passes on this exception but aborts on any other.
            raise KeyboardInterrupt


# The result is whatever a command returns; only a number is an exit code.
def run_command(app: Callable[..., object], sigterm: SigtermHandler) -> int:
    """Run the command and return its exit code; an error is one message on stderr.

    A failure of Overheard itself is printed in full if failures are raised.
    """
    message, code = "", 0
    try:
        result = app(standalone_mode=False)
        code = result if isinstance(result, int) else 0
        sys.stdout.flush()
    except ClickException as error:
        error.show()
        code = USER_ERROR
    except AuditError as error:
        _LOG.debug("the error in full", exc_info=True)
        message, code = str(error), USER_ERROR
    except BrokenPipeError:
        code = _end_output()
    except SystemExit as stop:
        # Rich ends the command so if the reader of the output has gone.
        is_broken = isinstance(stop.__context__, BrokenPipeError)
        code = _end_output() if is_broken else 0
        if stop.code and not is_broken:
            # Not 1, which means a failed rule.
            message, code = f"the command was ended by its own code ({stop.code})", FAILURE
    except OSError as error:
        # The user can correct a full disk or a missing permission.
        _LOG.debug("the error in full", exc_info=True)
        message = f"{error.filename or 'system error'}: {error.strerror or error}"
        code = USER_ERROR
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:
        if are_failures_raised():
            traceback.print_exc()
        said = ": ".join(filter(None, (type(error).__name__, str(error))))
        message, code = f"failed, {said}. {HOW_TO_REPORT}", FAILURE
        # Python 3.11 wraps a Ctrl-C that comes while a class is made.
        if isinstance(error.__cause__, KeyboardInterrupt):
            code = INTERRUPTED
    # Depending on its version, Typer returns this code on Ctrl-C or raises.
    if code == INTERRUPTED:
        cause = "terminated" if sigterm.is_received else "interrupted"
        code = TERMINATED if sigterm.is_received else INTERRUPTED
        message = f"{cause}; {RESUME}"
    if message:
        Console(stderr=True, soft_wrap=True).print(escaped_text(f"overheard: {message}"))
    return code


def _end_output() -> int:
    """Send what is still to be written nowhere, so that the end of Python cannot fail on it."""
    try:
        target = os.open(os.devnull, os.O_WRONLY)
        os.dup2(target, sys.stdout.fileno())
    except (OSError, ValueError):  # standard output may be no file
        pass
    return BROKEN_PIPE
