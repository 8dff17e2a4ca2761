"""The output folder of an audit that follows a recording, which changes while it is audited."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from overheard.archive.layout import count_committed_rounds
from overheard.auditing.folder import RECORDING_LINE, AuditFolder
from overheard.auditing.recording import digest_of_first_rounds
from overheard.core.errors import OutputError
from overheard.disk.reading import read_json_text
from overheard.disk.writing import write_bytes


@dataclass(frozen=True, slots=True)
class _FollowedRecording:
    """The first rounds of the recording that is followed; they do not change any more."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")

    rounds: Annotated[int, Field(ge=0)]
    digest: str


_PARSER = TypeAdapter(_FollowedRecording)


def check_followed_folder(home: AuditFolder, claim: str, recording: Path | None) -> None:
    """Check that a folder is free, or belongs to this plan and recording; change nothing.

    The recording may have grown since the folder was used, and got a ground truth.

    Args:
        home: the folder.
        claim: the text that says to whom it belongs, see `auditing.run.folder_claim`.
        recording: the folder of the recording; None = it does not exist yet, so only the plan
            is compared.

    Raises:
        OutputError: if it belongs to another plan or recording, was purged, or holds other
            files.

    """
    home.refuse_purged()
    existing = home.plan_text()
    is_same_plan = existing is not None and _without_recording(existing) == _without_recording(
        claim
    )
    if not (is_same_plan and (recording is None or _is_followed(home, recording))):
        home.check_plan(claim)


def begin_to_follow(home: AuditFolder, claim: str, recording: Path) -> None:
    """Write to a folder that it belongs to this plan and to this growing recording.

    Raises:
        OutputError: as `check_followed_folder`, or if the folder cannot be written.

    """
    check_followed_folder(home, claim, recording)
    # The last round may be committed a second time, with more messages.
    rounds = max(0, count_committed_rounds(recording) - 1)
    first = _FollowedRecording(rounds, digest_of_first_rounds(recording, rounds))
    # First, so that a folder whose plan names an earlier state is always known to follow it.
    write_bytes(home.followed_path, _PARSER.dump_json(first) + b"\n", inside=home.path)
    home.replace_plan(claim)


def _is_followed(home: AuditFolder, recording: Path) -> bool:
    """Return whether the folder has followed this recording before."""
    try:
        stored = _PARSER.validate_json(read_json_text(home.followed_path, OutputError))
    except (OutputError, ValidationError):
        return False
    return (
        stored.rounds <= count_committed_rounds(recording)
        and digest_of_first_rounds(recording, stored.rounds) == stored.digest
    )


def _without_recording(claim: str) -> list[str]:
    """Return the lines of a claim without the one that names the state of the recording."""
    return [line for line in claim.splitlines() if not line.startswith(RECORDING_LINE)]
