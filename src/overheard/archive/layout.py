"""The layout of a run's folder.

- `transcript/manifest.json` describes the run.
- `transcript/rounds/r0003/` has the tensors of each message of round 3, such as
  `0001-client-3-update.safetensors`, and the list of messages, `messages.jsonl`. The list is
  written last: its presence commits the round.
- `transcript/ended.json` tells that no further round will be recorded.
- `truth.json` has the ground truth, outside of the transcript, so that the transcript can be
  shared without it.
- `seconds.json` has the run time.
"""

import os
import re
import stat
from functools import lru_cache
from pathlib import Path

from overheard.archive.excerpt import printable_excerpt
from overheard.core.errors import TranscriptError
from overheard.core.parties import Party
from overheard.disk.limits import is_sparse, refuse_sparse

_WEIGHTS_NAME = re.compile(r"[0-9]{4,9}-[A-Za-z0-9_.-]{1,160}\.safetensors")
_BEYOND_ASCII = re.compile(r"[^A-Za-z0-9_.-]+")


TRUTH_FILE = "truth.json"


def truth_path(folder: Path) -> Path:
    """Return the path of the ground truth of a run."""
    return folder / TRUTH_FILE


def seconds_path(folder: Path) -> Path:
    """Return the path of the run time of a run."""
    return folder / "seconds.json"


def transcript_folder(folder: Path) -> Path:
    """Return the transcript's folder, given it or the folder of its run."""
    return folder if path_exists(manifest_path(folder)) else transcript_path(folder)


def transcript_path(folder: Path) -> Path:
    """Return the path of the transcript of a run."""
    return folder / "transcript"


def manifest_path(transcript: Path) -> Path:
    """Return the path of a transcript's manifest."""
    return transcript / "manifest.json"


def end_path(transcript: Path) -> Path:
    """Return the path of the mark that a recording has ended."""
    return transcript / "ended.json"


@lru_cache
def round_folder(transcript: Path, number: int) -> Path:
    """Return the folder of a round in a transcript."""
    return transcript / "rounds" / f"r{number:04d}"


def messages_path(transcript: Path, number: int) -> Path:
    """Return the path of the message list of a round."""
    return round_folder(transcript, number) / "messages.jsonl"


def weights_file_name(index: int, sender: Party, kind: str) -> str:
    """Return the name of the tensor file of a message.

    The index of the message in its round makes the name unique, even on case-insensitive disks.
    Sender and kind are there for human readers; letters beyond ASCII are left out.
    """
    plain = _BEYOND_ASCII.sub("_", sender.replace("/", "-"))
    return f"{index:04d}-{plain}-{kind}.safetensors"


def weights_path(transcript: Path, number: int, name: str) -> Path:
    """Return the path of a tensor file of a round.

    Raises:
        TranscriptError: if the name, which is untrusted, is no plain file name.

    """
    if not _WEIGHTS_NAME.fullmatch(name):
        raise TranscriptError(
            f"{messages_path(transcript, number)} names the file "
            f"{printable_excerpt(repr(name))}, which is no name of a weights file in the same "
            "folder: get the transcript again from its source"
        )
    return round_folder(transcript, number) / name


def path_exists(path: Path) -> bool:
    """Return whether a path exists.

    Raises:
        TranscriptError: if the permission to check is missing.

    """
    try:
        return path.exists()
    except OSError as error:
        raise TranscriptError(
            f"{path} cannot be accessed ({error.strerror}): ask for the permission to read it"
        ) from error


def checked_file_size(path: Path, transcript: Path) -> int:
    """Return the size in bytes of a file in a transcript.

    Raises:
        TranscriptError: if it is missing, no regular file, or linked to outside of the folder.

    """
    try:
        status = path.stat()
        inside = path.resolve().is_relative_to(transcript.resolve())
    except (OSError, RuntimeError) as error:
        raise TranscriptError(
            f"{path} cannot be read ({error}): copy the whole transcript again"
        ) from error
    if not inside:
        raise TranscriptError(
            f"{path} links to outside of its folder: replace the link by the file itself"
        )
    if not stat.S_ISREG(status.st_mode):
        raise TranscriptError(f"{path} cannot be read, it is no regular file: copy it again")
    refuse_sparse(path, TranscriptError)
    return status.st_size


def plain_file_sizes(folder: Path, transcript: Path) -> dict[str, int]:
    """Return the size in bytes of each regular file directly in a folder of a transcript.

    One look at the folder takes a tenth of the time of `checked_file_size` for each file. Links
    and sparse files are left out. Nothing is returned if the folder cannot be listed, or is
    not inside the transcript's: ask `checked_file_size` why.
    """
    try:
        if not folder.resolve().is_relative_to(transcript.resolve()):
            return {}
        with os.scandir(folder) as entries:
            return {
                entry.name: entry.stat(follow_symlinks=False).st_size
                for entry in entries
                if entry.is_file(follow_symlinks=False)
                and not is_sparse(Path(entry.path), entry.stat(follow_symlinks=False))
            }
    except (OSError, RuntimeError):
        return {}


def count_committed_rounds(folder: Path) -> int:
    """Return the number of committed rounds of a run; 0 if it has no transcript yet.

    Raises:
        TranscriptError: if a round is missing before the last.

    """
    transcript = transcript_folder(folder)
    if not path_exists(manifest_path(transcript)):
        return 0
    count = 0
    while path_exists(messages_path(transcript, count)):
        count += 1
    found = sum(1 for _ in transcript.glob("rounds/*/messages.jsonl"))
    if found != count:
        raise TranscriptError(
            f"{transcript} has no round {count} but later ones: copy the whole transcript again"
        )
    return count
