"""CPU time of all commands that worked in one folder."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, final

from pydantic import Field, TypeAdapter, ValidationError

from overheard.auditing.audited_run import core_seconds
from overheard.core.errors import OutputError
from overheard.disk.reading import read_small_file
from overheard.disk.writing import write_text

CORE_TIME_FILE = "core_seconds.json"
"""File name of the sum."""

_SECONDS = TypeAdapter(Annotated[float, Field(strict=True, ge=0, le=1e9)])
"""A sum of at most thirty years; others are errors."""


@final
class CoreTime:
    """Counts the CPU seconds of a command, and adds those of the commands that ended before.

    Commands may work in the folder at the same time, each on other audits.

    Args:
        folder: the folder in which the commands work.

    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._begun = core_seconds()

    def total(self) -> float | None:
        """Return the seconds of this and all ended commands; None if the system tells none."""
        now = core_seconds()
        if now is None or self._begun is None:
            return None
        return round(_read(self._folder / CORE_TIME_FILE) + now - self._begun, 1)

    def store(self) -> None:
        """Write the sum into the folder; one that cannot be written is not counted later."""
        total = self.total()
        if total is not None and self._folder.is_dir():
            with suppress(OutputError):
                write_text(self._folder / CORE_TIME_FILE, f"{total}\n", inside=self._folder)


def _read(path: Path) -> float:
    """Return a sum; 0 if there is none, or if the file is damaged."""
    try:
        return _SECONDS.validate_json(read_small_file(path, OutputError))
    except (OSError, OutputError, ValidationError):
        return 0.0
