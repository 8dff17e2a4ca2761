"""How long a run took, in a file of its own beside its transcript."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from overheard.archive.atomic import write_ahead
from overheard.archive.layout import is_there, read_inside, seconds_path
from overheard.archive.manifest import told
from overheard.core.errors import TranscriptError


@dataclass(frozen=True, slots=True)
class Seconds:
    """What the clocks counted while a run went on.

    Args:
        wall: seconds that passed, 0 or more.
        cores: seconds that cores were busy, of all cores together; None = not measured.

    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False
    )

    wall: float
    cores: float | None

    def __post_init__(self) -> None:
        """Refuse a clock that ran backwards."""
        if self.wall < 0 or (self.cores is not None and self.cores < 0):
            raise ValueError(f"seconds are 0 or more, got {self.wall} and {self.cores}")

    def __add__(self, more: "Seconds") -> "Seconds":
        """Both together; what one of them did not measure stays unmeasured."""
        both = None
        if self.cores is not None and more.cores is not None:
            both = self.cores + more.cores
        return Seconds(self.wall + more.wall, both)


_PARSER = TypeAdapter(Seconds)


def write_seconds(folder: Path, seconds: Seconds) -> None:
    """Write beside the transcript of a run how long it took so far.

    It stands apart from transcript and truth, which two runs of one federation have alike to
    the byte. A power cut may take the last one.

    Raises:
        OutputError: if the disk or the permissions do not allow it.

    """
    write_ahead(seconds_path(folder), _PARSER.dump_json(seconds) + b"\n")


def read_seconds(folder: Path) -> Seconds | None:
    """How long a run took; None where nobody measured it.

    Raises:
        TranscriptError: if the file is damaged.

    """
    path = seconds_path(folder)
    if not is_there(path):
        return None
    content = read_inside(path, folder)
    try:
        return _PARSER.validate_json(content)
    except ValidationError as error:
        raise TranscriptError(
            f"{path} is damaged: {told(error)}; delete it, and the run's time is not measured"
        ) from error
