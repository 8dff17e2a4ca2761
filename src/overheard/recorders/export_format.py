"""The formats in which runs are saved, and the choice of the one of a folder."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from overheard.core.plugin_registry import discover_plugins
from overheard.recorders.exported_run import ExportedRun, read_exported_run
from overheard.recorders.exports.reply_content import ImportOptions

FORMATS = "overheard.recorders.formats"
"""The package with a file for each format. Its files import this one, so it is named here."""


class ExportFormat(ABC):
    """A format in which a framework saves its runs.

    A file in `overheard.recorders.formats` defines one; there is no list to maintain.
    """

    name: ClassVar[str]
    """The name of its file."""

    @abstractmethod
    def is_of(self, folder: Path) -> bool:
        """Return whether a folder has this format, from the names in it."""

    @abstractmethod
    def read(self, folder: Path, options: ImportOptions) -> ExportedRun:
        """Read a run without its tensors.

        Args:
            folder: its folder.
            options: what the caller states about it.

        Raises:
            TranscriptError: if something is invalid; the message says what to do.

        """


def read_run(folder: Path, options: ImportOptions) -> ExportedRun:
    """Read a run in the format of its folder; by default, weights by round and client.

    Args:
        folder: its folder.
        options: what the caller states about it.

    Raises:
        TranscriptError: if something is invalid; the message says what to do.

    """
    for one in discover_plugins(FORMATS, ExportFormat).values():
        if one().is_of(folder):
            return one().read(folder, options)
    return read_exported_run(folder, options)
