"""Where everything stands in a run's folder.

`transcript/manifest.json` says what was run. `transcript/rounds/r0003/` holds, for each message
of round 3, its tensors (`0001-client-3-update.safetensors`) and, written last, the list of them
all (`messages.jsonl`): its presence commits the round. `truth.json` stands beside the
transcript, so that the one can be handed out without the other, and so does `seconds.json`,
which says how long the run took.
"""

import re
import stat
from pathlib import Path

from overheard.archive.spelled import spelled
from overheard.core.errors import TranscriptError
from overheard.core.parties import Party

LARGEST = 2**28
"""Bytes of a JSON file at most: some 900,000 messages in a round. A file without content may
promise far more, as it takes no room on the disk."""

_WEIGHTS_NAME = re.compile(r"[0-9]{4,9}-[A-Za-z0-9_.-]{1,160}\.safetensors")


def truth_path(folder: Path) -> Path:
    """Where a run's folder holds the ground truth."""
    return folder / "truth.json"


def seconds_path(folder: Path) -> Path:
    """Where a run's folder says how long it took."""
    return folder / "seconds.json"


def transcript_folder(folder: Path) -> Path:
    """Where a run's folder holds the transcript; a transcript handed over alone is itself."""
    return folder if is_there(manifest_path(folder)) else folder / "transcript"


def manifest_path(transcript: Path) -> Path:
    """Where a transcript says what was run."""
    return transcript / "manifest.json"


def round_folder(transcript: Path, number: int) -> Path:
    """Where a transcript holds what was said in a round."""
    return transcript / "rounds" / f"r{number:04d}"


def messages_path(transcript: Path, number: int) -> Path:
    """Where a round lists its messages."""
    return round_folder(transcript, number) / "messages.jsonl"


def weights_name(place: int, sender: Party, kind: str) -> str:
    """Name the file of the tensors in one message.

    The message's place in its round makes the name its own, whatever parties are called and
    whether or not the disk tells "a" from "A"; the rest is for those who look.
    """
    return f"{place:04d}-{sender.replace('/', '-')}-{kind}.safetensors"


def weights_path(transcript: Path, number: int, name: str) -> Path:
    """Where a round holds the tensors that one of its messages names.

    Raises:
        TranscriptError: if the name, which comes from the outside, is no plain file name.

    """
    if not _WEIGHTS_NAME.fullmatch(name):
        raise TranscriptError(
            f"{messages_path(transcript, number)} names the file "
            f"{spelled(repr(name))}, which is no name of a weights file in the same folder: "
            "get the transcript anew from where it came"
        )
    return round_folder(transcript, number) / name


def is_there(path: Path) -> bool:
    """Whether there is something under this name.

    Raises:
        TranscriptError: if the permission to look is missing.

    """
    try:
        return path.exists()
    except OSError as error:
        raise TranscriptError(
            f"{path} cannot be looked at ({error.strerror}): ask for the permission to read it"
        ) from error


def size_inside(path: Path, transcript: Path) -> int:
    """How many bytes a file of the transcript has.

    Raises:
        TranscriptError: if it is missing, no plain file, or a link leads out of the folder.

    """
    try:
        status = path.stat()
        inside = path.resolve().is_relative_to(transcript.resolve())
    except (OSError, RuntimeError) as error:
        raise TranscriptError(
            f"{path} cannot be read ({error}): copy the transcript anew, whole"
        ) from error
    if not inside:
        raise TranscriptError(
            f"{path} leads out of the transcript's folder: put the file itself there, no link"
        )
    if not stat.S_ISREG(status.st_mode):
        raise TranscriptError(
            f"{path} cannot be read, it is no plain file: copy it anew, whole"
        )
    return status.st_size


def read_inside(path: Path, transcript: Path) -> bytes:
    """Everything in a JSON file of the transcript; refused as in `size_inside`, or if huge."""
    size = size_inside(path, transcript)
    if size > LARGEST:
        raise TranscriptError(
            f"{path} has {size} bytes, {LARGEST} at most can be read: get the transcript anew "
            "from where it came"
        )
    try:
        return path.read_bytes()
    except OSError as error:
        raise TranscriptError(
            f"{path} cannot be read ({error}): check the permissions, or copy it anew"
        ) from error


def committed_rounds(folder: Path) -> int:
    """How many rounds of a run are written whole; 0 where there is no transcript yet.

    Raises:
        TranscriptError: if a round is missing before the last.

    """
    transcript = transcript_folder(folder)
    if not is_there(manifest_path(transcript)):
        return 0
    count = 0
    while is_there(messages_path(transcript, count)):
        count += 1
    found = sum(1 for _ in transcript.glob("rounds/*/messages.jsonl"))
    if found != count:
        raise TranscriptError(
            f"{transcript} lacks round {count} yet has later ones: copy the transcript anew, "
            "whole"
        )
    return count
