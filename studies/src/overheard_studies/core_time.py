"""CPU time of all commands that worked in one folder."""

from pathlib import Path
from types import TracebackType
from typing import Self, final

from pydantic import TypeAdapter, ValidationError

from overheard.auditing.audited_run import core_seconds
from overheard.disk.writing import write_text

CORE_TIME_FILE = "core_seconds.json"
"""File name of the sum."""

_SECONDS = TypeAdapter(float)


@final
class CoreTime:
    """Counts the CPU seconds of a command, and adds those of earlier commands.

    As a context it writes the sum when the command ends, also by an error or an interruption.
    A command that is killed at once is not counted.

    Args:
        folder: the folder in which the commands work.

    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._begun = core_seconds()
        self._earlier = _read(folder / CORE_TIME_FILE)

    def total(self) -> float | None:
        """Return the seconds of all commands so far; None if this system does not tell."""
        now = core_seconds()
        if now is None or self._begun is None:
            return None
        return round(self._earlier + now - self._begun, 1)

    def __enter__(self) -> Self:
        """Return this."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Write the sum."""
        total = self.total()
        if total is not None and self._folder.is_dir():
            write_text(self._folder / CORE_TIME_FILE, f"{total}\n", inside=self._folder)


def _read(path: Path) -> float:
    """Return a sum; 0 if there is none, or if the file is damaged."""
    try:
        return _SECONDS.validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return 0.0
