"""A followed recording gives claims after each round, and in the end those of a plain audit."""

from dataclasses import replace
from pathlib import Path

import pytest

from overheard.archive.manifest import DefenseRecord, read_manifest, write_manifest
from overheard.archive.run_end import mark_end
from overheard.auditing.folder import AuditFolder
from overheard.auditing.following.follow import (
    FollowEvents,
    FollowSettings,
    begin_to_follow,
    check_followed_folder,
    follow_recording,
)
from overheard.auditing.following.round_attacker import FollowedRound
from overheard.core.errors import OutputError, PlanError, TranscriptError
from overheard.core.mechanism import Mechanism
from overheard.findings.audit import Audit
from overheard.plans.plan import Plan, ThreatPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from tests.auditing.conftest import HERE, FinishedAudit, audit_here
from tests.auditing.following.growing_copy import GrowingCopy
from tests.auditing.plans import SERVER_THREAT, TINY, TRAINING, replace_tables

QUICK = FollowSettings(timeout=20.0, pause=0.01)

LAST = 2
"""The number of the round with the final model of the recording."""


@pytest.fixture
def growing(recording: Path, tmp_path: Path) -> GrowingCopy:
    """The recording of the tiny plan, of which nothing is written yet."""
    return GrowingCopy(recording, tmp_path / "growing")


def wait(
    out: Path,
    recording: Path,
    events: FollowEvents,
    plan: Plan = TINY,
    settings: FollowSettings = QUICK,
) -> bool:
    return follow_recording(plan, out, recording, events, resources=HERE, settings=settings)


def follow(
    growing: GrowingCopy, out: Path, plan: Plan = TINY, settings: FollowSettings = QUICK
) -> list[FollowedRound]:
    """Follow a recording to its end; a round is written once the last one was attacked."""
    found = list[FollowedRound]()

    def on_round(followed: FollowedRound) -> None:
        found.append(followed)
        if followed.number + 1 == LAST:
            growing.reveal_truth()
        growing.commit_round(followed.number + 1)

    events = FollowEvents(lambda: growing.commit_round(0), on_round)
    assert wait(out, growing.folder, events, plan=plan, settings=settings)
    return found


def rounds_of(found: Audit) -> set[tuple[int, ...]]:
    """Return the rounds that claims rest on."""
    return {finding.cell.rounds for finding in found.findings}


def test_attacks_each_round_of_a_run_and_ends_with_it(
    growing: GrowingCopy, recording: Path, tmp_path: Path
) -> None:
    found = follow(growing, tmp_path / "out")
    assert [(one.number, one.rounds) for one in found] == [(0, 1), (1, 2)]
    assert all(0 <= one.delay < 60 for one in found)
    first, last = (one.audit for one in found)
    assert (rounds_of(first), rounds_of(last)) == ({(0,)}, {(0, 1)})
    # Two attacks on three clients. The truth came only after the second round.
    assert (len(first.findings), len(last.findings)) == (6, 6)
    assert not any(finding.is_checked for finding in first.findings)
    assert last.subject.startswith("a recorded run of 4 parties over 2 rounds")
    assert last.subject.endswith("attacks saw its rounds 0 to 1 at most")
    assert last.title == f"{TINY.title} (the run goes on)"
    # The claims so far are those of an audit of these rounds, ...
    threat = SERVER_THREAT.model_copy(update={"by_round": False})
    plan = replace_tables(TINY, threats=(threat,))
    so_far = audit_here(plan, tmp_path / "so far", recording=growing.folder).findings
    assert [(one.cell, one.target, one.claimed) for one in last.findings] == [
        (one.cell, one.target, one.claimed) for one in so_far
    ]
    # ... and the audit in the end is that of the finished recording.
    followed = audit_here(TINY, tmp_path / "out", recording=growing.folder)
    assert followed == audit_here(TINY, tmp_path / "plain", recording=recording)
    assert followed.findings[0].is_checked


def test_attacks_look_at_the_latest_rounds_only(growing: GrowingCopy, tmp_path: Path) -> None:
    found = follow(growing, tmp_path / "out", settings=replace(QUICK, most_rounds=1))
    assert rounds_of(found[1].audit) == {(1,)}
    assert found[1].rounds == 2


def test_claims_are_scored_once_the_truth_is_known(
    growing: GrowingCopy, recording: Path, tmp_path: Path
) -> None:
    growing.commit_round(0)
    growing.reveal_truth()
    found = follow(growing, tmp_path / "out")
    assert all(finding.scores for one in found for finding in one.audit.findings)


def test_a_truth_that_does_not_fit_yet_is_told_and_not_used(
    growing: GrowingCopy, tmp_path: Path
) -> None:
    growing.commit_round(0)
    known = '{"round": 0, "party": "client/0", "labels": [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]}'
    (growing.folder / "truth.json").write_text(f'{{"counts": [{known}], "accuracy": []}}')
    (first, *_) = follow(growing, tmp_path / "out")
    assert not any(finding.is_checked for finding in first.audit.findings)
    (note,) = first.notes
    assert note.startswith("claims are not scored yet: ")
    assert "has no label counts of client/1 in round 0" in note


def test_epsilon_is_that_of_all_rounds_so_far(growing: GrowingCopy, tmp_path: Path) -> None:
    pytest.importorskip("dp_accounting")
    growing.commit_round(0)
    transcript = growing.folder / "transcript"
    noise = Mechanism(5.0, 1.0, 1e-5, "server", "server")
    defense = DefenseRecord("noisy", "Noisy()", "server", "the server", noise)
    write_manifest(transcript, replace(read_manifest(growing.folder), defenses=(defense,)))
    spent = []
    for one in follow(growing, tmp_path / "out", settings=replace(QUICK, most_rounds=1)):
        (accounted,) = [made.accounted for made in one.audit.arms[0].defenses]
        assert accounted is not None
        assert accounted.recomputed is not None
        spent.append((accounted.run.rounds, accounted.recomputed.pld))
    assert [rounds for rounds, _ in spent] == [1, 2]
    assert spent[0][1] < spent[1][1]


def test_an_observer_that_has_not_appeared_is_told_and_waited_for(
    growing: GrowingCopy, tmp_path: Path
) -> None:
    late = ThreatPlan(observers=("client/9",), attacks=(BiasInversion(),), by_round=False)
    plan = replace_tables(TINY, threats=(SERVER_THREAT, late))
    first, *_ = follow(growing, tmp_path / "out", plan)
    assert first.notes == ("client/9 took no part yet: the threat with it waits",)
    assert {one.cell.observers for one in first.audit.findings} == {("server",)}


def test_a_finished_recording_is_left_to_the_audit(
    growing: GrowingCopy, recording: Path, tmp_path: Path
) -> None:
    events = FollowEvents(pytest.fail, lambda followed: pytest.fail("it has ended"))
    assert wait(tmp_path / "out", recording, events)


def test_a_run_that_falls_silent_counts_as_over_and_may_go_on(
    growing: GrowingCopy, recording: Path, tmp_path: Path
) -> None:
    growing.commit_round(0)
    found, out = list[FollowedRound](), tmp_path / "out"
    events = FollowEvents(lambda: None, found.append)
    silent = FollowSettings(timeout=0.05, pause=0.01)
    assert not wait(out, growing.folder, events, settings=silent)
    assert [one.number for one in found] == [0]
    partial_audit = audit_here(TINY, out, recording=growing.folder)
    assert rounds_of(partial_audit) == {(0,)}
    # The run goes on: the same folder follows it, and no cell of fewer rounds is used again.
    growing.commit_round(1)
    growing.reveal_truth()
    growing.commit_round(LAST)
    assert wait(out, growing.folder, events, settings=silent)
    assert [one.number for one in found] == [0]
    plain = audit_here(TINY, tmp_path / "plain", recording=recording)
    assert audit_here(TINY, out, recording=growing.folder) == plain


def test_an_interrupted_follower_is_resumed(
    growing: GrowingCopy, recording: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"

    def interrupt(followed: FollowedRound) -> None:
        raise KeyboardInterrupt

    events = FollowEvents(lambda: growing.commit_round(0), interrupt)
    with pytest.raises(KeyboardInterrupt):
        wait(out, growing.folder, events)
    growing.commit_round(1)
    resumed = list[FollowedRound]()

    def on_round(followed: FollowedRound) -> None:
        resumed.append(followed)
        growing.reveal_truth()
        growing.commit_round(LAST)

    events = FollowEvents(pytest.fail, on_round)
    assert wait(out, growing.folder, events)
    assert [(one.number, one.rounds) for one in resumed] == [(1, 2)]
    plain = audit_here(TINY, tmp_path / "plain", recording=recording)
    assert audit_here(TINY, out, recording=growing.folder) == plain


def test_nothing_recorded_in_time_is_an_error(growing: GrowingCopy, tmp_path: Path) -> None:
    waits = list[int]()
    events = FollowEvents(lambda: waits.append(1), lambda followed: None)
    with pytest.raises(PlanError, match=r"no update was recorded within 0\.05 seconds"):
        wait(
            tmp_path / "out",
            growing.folder,
            events,
            settings=FollowSettings(timeout=0.05, pause=0.01),
        )
    assert waits == [1]


def test_a_run_that_ends_without_updates_is_an_error(
    growing: GrowingCopy, tmp_path: Path
) -> None:
    growing.commit_round(0)
    lines = growing.folder / "transcript" / "rounds" / "r0000" / "messages.jsonl"
    lines.write_text(lines.read_text().splitlines(keepends=True)[0])
    mark_end(growing.folder)
    events = FollowEvents(lambda: None, lambda followed: None)
    with pytest.raises(PlanError, match="the run ended without any update"):
        wait(tmp_path / "out", growing.folder, events)


def test_refuses_a_damaged_recording(growing: GrowingCopy, tmp_path: Path) -> None:
    growing.commit_round(0)
    (growing.folder / "transcript" / "rounds" / "r0000" / "messages.jsonl").write_text("{}\n")
    events = FollowEvents(lambda: None, lambda followed: None)
    with pytest.raises(TranscriptError, match="line 1"):
        wait(tmp_path / "out", growing.folder, events)


def test_refuses_the_folder_of_another_plan_before_it_waits(
    growing: GrowingCopy, tiny: FinishedAudit, tmp_path: Path
) -> None:
    other = replace_tables(TINY, training=TRAINING.model_copy(update={"rounds": 9}))
    AuditFolder(tmp_path / "out").reserve(other.toml())
    events = FollowEvents(pytest.fail, lambda followed: None)
    with pytest.raises(OutputError, match="another plan"):
        wait(tmp_path / "out", growing.folder, events)


@pytest.mark.parametrize(
    "wrong", [{"most_rounds": 0}, {"timeout": -1.0}, {"timeout": float("nan")}, {"pause": 0.0}]
)
def test_refuses_settings_out_of_range(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        FollowSettings(**wrong)


PLAN = "# overheard 1\n# recording {}\na = 1\n"
OTHER_PLAN = "# overheard 1\n# recording {}\na = 2\n"


@pytest.fixture
def grown(growing: GrowingCopy) -> GrowingCopy:
    """The first two rounds of the recording."""
    growing.commit_round(0)
    growing.commit_round(1)
    return growing


@pytest.fixture
def home(grown: GrowingCopy, tmp_path: Path) -> AuditFolder:
    """A folder that follows this recording."""
    home = AuditFolder(tmp_path / "out")
    begin_to_follow(home, PLAN.format("early"), grown.folder)
    return home


def test_the_recording_may_grow(home: AuditFolder, grown: GrowingCopy) -> None:
    grown.commit_round(2)
    check_followed_folder(home, PLAN.format("late"), grown.folder)
    assert home.plan_text() == PLAN.format("early")


def test_refuses_another_plan(home: AuditFolder, grown: GrowingCopy) -> None:
    with pytest.raises(OutputError, match="another plan"):
        check_followed_folder(home, OTHER_PLAN.format("early"), grown.folder)
    with pytest.raises(OutputError, match="another plan"):
        check_followed_folder(home, OTHER_PLAN.format("early"), None)


def test_only_the_plan_is_compared_before_there_is_a_recording(home: AuditFolder) -> None:
    check_followed_folder(home, PLAN.format("unknown"), None)


def test_refuses_another_recording(
    home: AuditFolder, grown: GrowingCopy, tmp_path: Path
) -> None:
    lines = grown.folder / "transcript" / "rounds" / "r0000" / "messages.jsonl"
    lines.write_text(lines.read_text().replace('"examples":', '"examples": '))
    with pytest.raises(OutputError, match="another plan"):
        check_followed_folder(home, PLAN.format("late"), grown.folder)


def test_the_folder_of_a_plain_audit_is_not_followed(
    grown: GrowingCopy, tmp_path: Path
) -> None:
    home = AuditFolder(tmp_path / "plain")
    home.reserve(PLAN.format("early"))
    check_followed_folder(home, PLAN.format("early"), grown.folder)
    with pytest.raises(OutputError, match="another plan"):
        check_followed_folder(home, PLAN.format("late"), grown.folder)


def test_a_damaged_note_of_the_recording_is_no_proof(
    home: AuditFolder, grown: GrowingCopy
) -> None:
    home.followed_path.write_text('{"rounds": 0}')
    with pytest.raises(OutputError, match="another plan"):
        check_followed_folder(home, PLAN.format("late"), grown.folder)
