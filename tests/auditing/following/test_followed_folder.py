"""A folder belongs to one plan and to one recording, however far that has grown."""

from pathlib import Path

import pytest

from overheard.auditing.folder import AuditFolder
from overheard.auditing.following.followed_folder import begin_to_follow, check_followed_folder
from overheard.core.errors import OutputError
from tests.auditing.following.growing_copy import GrowingCopy

PLAN = "# overheard 1\n# recording {}\na = 1\n"
OTHER_PLAN = "# overheard 1\n# recording {}\na = 2\n"


@pytest.fixture
def growing(recording: Path, tmp_path: Path) -> GrowingCopy:
    """The first two rounds of a recording."""
    copy = GrowingCopy(recording, tmp_path / "growing")
    copy.commit_round(0)
    copy.commit_round(1)
    return copy


@pytest.fixture
def home(growing: GrowingCopy, tmp_path: Path) -> AuditFolder:
    """A folder that follows this recording."""
    home = AuditFolder(tmp_path / "out")
    begin_to_follow(home, PLAN.format("early"), growing.folder)
    return home


def test_the_recording_may_grow(home: AuditFolder, growing: GrowingCopy) -> None:
    growing.commit_round(2)
    check_followed_folder(home, PLAN.format("late"), growing.folder)
    assert home.plan_text() == PLAN.format("early")


def test_refuses_another_plan(home: AuditFolder, growing: GrowingCopy) -> None:
    with pytest.raises(OutputError, match="another plan"):
        check_followed_folder(home, OTHER_PLAN.format("early"), growing.folder)
    with pytest.raises(OutputError, match="another plan"):
        check_followed_folder(home, OTHER_PLAN.format("early"), None)


def test_only_the_plan_is_compared_before_there_is_a_recording(home: AuditFolder) -> None:
    check_followed_folder(home, PLAN.format("unknown"), None)


def test_refuses_another_recording(
    home: AuditFolder, growing: GrowingCopy, tmp_path: Path
) -> None:
    lines = growing.folder / "transcript" / "rounds" / "r0000" / "messages.jsonl"
    lines.write_text(lines.read_text().replace('"examples":', '"examples": '))
    with pytest.raises(OutputError, match="another plan"):
        check_followed_folder(home, PLAN.format("late"), growing.folder)


def test_the_folder_of_a_plain_audit_is_not_followed(
    growing: GrowingCopy, tmp_path: Path
) -> None:
    home = AuditFolder(tmp_path / "plain")
    home.reserve(PLAN.format("early"))
    check_followed_folder(home, PLAN.format("early"), growing.folder)
    with pytest.raises(OutputError, match="another plan"):
        check_followed_folder(home, PLAN.format("late"), growing.folder)


def test_a_damaged_note_of_the_recording_is_no_proof(
    home: AuditFolder, growing: GrowingCopy
) -> None:
    home.followed_path.write_text('{"rounds": 0}')
    with pytest.raises(OutputError, match="another plan"):
        check_followed_folder(home, PLAN.format("late"), growing.folder)
