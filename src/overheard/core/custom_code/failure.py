"""Describes an error in custom code or in a plugin, in one sentence."""

import sys
import traceback
from pathlib import Path

MAX_LENGTH = 300
"""Most characters of an error's text that a message quotes."""

_PACKAGE = Path(__file__).resolve().parents[2]


def is_from_custom_code(error: BaseException) -> bool:
    """Return whether a line of code that is neither Overheard's nor a library's raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    return any(_is_custom_code(Path(frame.filename)) for frame in frames)


def describe_failure(error: BaseException) -> str:
    """Return the kind of an error, its text on one line, and the line of code that raised it.

    The line is the last one that is neither in Overheard nor in an installed library. Without
    such a line, the place is left out.
    """
    text = " ".join(str(error).split())
    short = text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}..."
    said = f"{type(error).__name__}: {short}" if short else type(error).__name__
    places = [
        f"{Path(frame.filename).name}, line {frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if _is_custom_code(Path(frame.filename))
    ]
    return f"{said} ({places[-1]})" if places else said


def _is_custom_code(path: Path) -> bool:
    if not path.is_absolute() or "site-packages" in path.parts:
        return False
    libraries = (_PACKAGE, Path(sys.base_prefix) / "lib")
    return not any(path.is_relative_to(folder) for folder in libraries)
