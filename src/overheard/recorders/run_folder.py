"""The folder of a recording, which one run alone writes to."""

import logging
from pathlib import Path

from overheard.archive.layout import transcript_path
from overheard.disk.folders import make_new_folder, make_output_folder

_LOG = logging.getLogger("overheard")


def claim_folder(folder: Path, group: str | int | None = None) -> Path:
    """Make the folder of a new run: this one, or the first free `NAME-2`, `NAME-3`, ...

    A folder is taken by whoever makes `transcript` in it, even if nothing is recorded yet. So
    of two runs that begin at once, each has its own folder.

    Args:
        folder: the folder that the user named.
        group: the group that may read it, see `make_output_folder`.

    Raises:
        OutputError: if it cannot be made.

    """
    number, free = 1, folder
    make_output_folder(free, group)
    while not make_new_folder(transcript_path(free), inside=free):
        number += 1
        free = folder.with_name(f"{folder.name}-{number}")
        make_output_folder(free, group)
    if free != folder:
        _LOG.warning("overheard: %s has a recording already; this run goes to %s", folder, free)
    return free
