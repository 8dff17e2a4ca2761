"""The run time of a run, stored in a separate file beside its transcript."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from annotated_types import Ge
from pydantic import ConfigDict, TypeAdapter

from overheard.archive.layout import path_exists, seconds_path
from overheard.archive.manifest import describe_damage
from overheard.archive.repeated_keys import refuse_repeated_keys
from overheard.core.errors import TranscriptError
from overheard.core.settings import Settings
from overheard.disk.reading import read_json_text
from overheard.disk.writing import write_unflushed


@dataclass(frozen=True, slots=True)
class RunTime(Settings):
    """The wall time and processor time of a run.

    Args:
        wall: wall time in seconds, 0 or more.
        cores: processor time in seconds, summed over cores; None = not measured.

    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False
    )

    wall: Annotated[float, Ge(0)]
    cores: Annotated[float, Ge(0)] | None

    def __add__(self, more: "RunTime") -> "RunTime":
        """Add two run times; the sum of processor times needs both."""
        both = None
        if self.cores is not None and more.cores is not None:
            both = self.cores + more.cores
        return RunTime(self.wall + more.wall, both)


_PARSER = TypeAdapter(RunTime)


def write_run_time(folder: Path, run_time: RunTime, *, inside: Path | None = None) -> None:
    """Write the run time so far beside the transcript.

    It has a separate file because transcript and truth are reproducible to the byte. A power
    cut may lose the last one.

    Args:
        folder: the folder of the run.
        run_time: the run time so far.
        inside: the output folder that the folder of the run is in; None = they are one.

    Raises:
        OutputError: if the disk or the permissions do not allow it.

    """
    content = _PARSER.dump_json(run_time) + b"\n"
    write_unflushed(seconds_path(folder), content, inside=folder if inside is None else inside)


def read_run_time(folder: Path) -> RunTime | None:
    """Read the run time of a run; None if it was not measured.

    Raises:
        TranscriptError: if the file is damaged.

    """
    path = seconds_path(folder)
    if not path_exists(path):
        return None
    content = read_json_text(path, TranscriptError, inside=folder)
    try:
        refuse_repeated_keys(content)
        return _PARSER.validate_json(content)
    except ValueError as error:
        raise TranscriptError(
            f"{path} is damaged: {describe_damage(error)}; delete it to leave the "
            "run time unknown"
        ) from error
