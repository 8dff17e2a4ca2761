"""Whether a recorded run has ended: no further round will be recorded."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import ConfigDict, TypeAdapter

from overheard.archive.layout import (
    count_committed_rounds,
    end_path,
    messages_path,
    path_exists,
    transcript_folder,
)
from overheard.archive.manifest import describe_damage, read_manifest
from overheard.archive.repeated_keys import refuse_repeated_keys
from overheard.core.errors import TranscriptError
from overheard.core.settings import RoundNumber
from overheard.disk.reading import read_json_text
from overheard.disk.writing import write_bytes


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The end of a recording.

    Args:
        rounds: number of committed rounds, the one with the final model included.
        folder: full path of the run's folder where it was recorded; "" = not told.

    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")

    rounds: RoundNumber
    folder: str = ""


_PARSER = TypeAdapter(RunEnd)


def mark_end(folder: Path) -> None:
    """Write into a transcript that no further round will be recorded.

    A mark does not count any more once a further round is committed.

    Raises:
        OutputError: if the folder cannot be written.

    """
    end = RunEnd(count_committed_rounds(folder), str(folder.absolute()))
    write_bytes(
        end_path(transcript_folder(folder)), _PARSER.dump_json(end) + b"\n", inside=folder
    )


def has_ended(folder: Path) -> bool:
    """Return whether all planned rounds are committed, or the recorder marked the end.

    Raises:
        TranscriptError: if the folder has no transcript, or a damaged one.

    """
    transcript, planned = transcript_folder(folder), read_manifest(folder).rounds
    # Rounds are counted only if there is a sign of the end, as a run may have thousands.
    if planned is not None and path_exists(messages_path(transcript, planned)):
        return count_committed_rounds(folder) == planned + 1
    path = end_path(transcript)
    if not path_exists(path):
        return False
    try:
        content = read_json_text(path, TranscriptError, inside=transcript)
        refuse_repeated_keys(content)
        end = _PARSER.validate_json(content)
    except ValueError as error:
        raise TranscriptError(
            f"{path} is damaged: {describe_damage(error)}; delete it"
        ) from error
    return end.rounds == count_committed_rounds(folder)
