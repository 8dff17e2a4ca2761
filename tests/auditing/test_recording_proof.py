"""What a recording proves."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from overheard.archive.layout import truth_path
from overheard.archive.manifest import read_manifest
from overheard.archive.reader import open_transcript
from overheard.archive.recorder import Recorder
from overheard.archive.truth import write_truth
from overheard.auditing.following.growing_recording import GrowingRecording
from overheard.auditing.following.round_attacker import RoundAttacker
from overheard.auditing.recorded_truth import compare_counts, read_recorded_truth
from overheard.cli.audit_and_report import refuse_empty_audit
from overheard.cli.following import describe_round
from overheard.core.errors import PlanError, TranscriptError
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.messages import Aggregate, Broadcast, Message, MissingReply, Update
from overheard.core.parties import COHORT, SERVER, Party, client, late_joiner
from overheard.core.transcript import Transcript
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import GroundTruth
from overheard.data.partition.data_partition import DataPartition
from overheard.findings.audit import Audit
from overheard.findings.document import read_findings
from overheard.gate.check import check
from overheard.gate.policy import LeakRule, Policy, VerdictRule
from overheard.planning.plan_check import check_plan
from overheard.plans.plan import ThreatPlan, parse_plan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.report.page import render_page
from overheard.report.show import show
from overheard.report.write import write_report
from tests.auditing.conftest import HERE, audit_here, inputs_for
from tests.auditing.following.growing_copy import GrowingCopy
from tests.auditing.plans import SERVER_THREAT, TINY, replace_tables

QUICK = SERVER_THREAT.model_copy(update={"by_round": False})


# No guess leaves as much open as this margin, so that there is nothing to read.
PLAN = replace_tables(TINY, threats=(QUICK,), margins={"l1": 1.9})


OTHERWISE = "they do if they are differences that were read as weights"


MEND = "overheard import --kind differences"


ACCEPTED = '[recording]\naccept = "Our server is a special one."\n'


def rewrite(
    recording: Path,
    folder: Path,
    change: Callable[[Message], Message] = lambda message: message,
    rounds: int | None = None,
) -> Path:
    """Record the messages of a recording anew, each of them changed, with the same truth."""
    messages = open_transcript(recording).messages
    recorder = Recorder(folder, read_manifest(recording))
    last = max(message.round for message in messages)
    for number in range(last + 1 if rounds is None else rounds):
        with recorder.open_round() as opened:
            for message in messages:
                if message.round == number:
                    opened.record(change(message))
    truth_path(folder).write_bytes(truth_path(recording).read_bytes())
    return folder


@pytest.fixture
def misread(recording: Path, tmp_path: Path) -> Path:
    """The recording as if its differences had been taken for weights."""
    models = {
        message.round: message.body.weights
        for message in open_transcript(recording).messages
        if message.sender == SERVER and not isinstance(message.body, Update)
    }

    def take_for_weights(message: Message) -> Message:
        if not isinstance(message.body, Update):
            return message
        model = models[message.round]
        delta = {name: one - model[name] for name, one in message.body.delta.items()}
        return replace(message, body=replace(message.body, delta=delta))

    return rewrite(recording, tmp_path / "misread", take_for_weights)


def statuses(found: Audit) -> set[str]:
    """Return the statuses of all rules, under a policy that lets everything else pass."""
    attacks = ("bias_inversion", "mean_softmax")
    limit = LeakRule(
        name="limit",
        question="label_shares",
        score="l1",
        no_better_than=1e-9,
        may_be_refused=attacks,
    )
    policy = Policy(
        straddles="pass",
        recording_incomplete=False,
        verdicts=(VerdictRule(name="v"),),
        leaks=(limit,),
    )
    return {one.status for one in check(policy, found).verdicts}


def test_a_recording_that_follows_may_have_nothing_to_read(recording: Path, tmp_path: Path):
    found = audit_here(PLAN, tmp_path / "out", recording=recording)
    (result,) = found.arm_results[0].threat_results
    assert result.verdict == "nothing to read"
    assert statuses(found) == {"pass"}
    assert found.recording is not None
    first = "The replies lead to the next broadcasts by the mean of the replies."
    assert found.recording.sentences[0] == first
    assert first in render_page(found)
    assert ("check", first) in show(recording).facts
    assert first in check_plan(PLAN, HERE, recording, with_estimate=False).lines()


def test_attacks_on_a_recording_that_contradicts_itself_are_refused_with_what_to_do(
    misread: Path, tmp_path: Path
):
    found = audit_here(PLAN, tmp_path / "out", recording=misread)
    assert found.findings == ()
    assert {one.kind for one in found.refusals} == {"contradicted"}
    assert all(OTHERWISE in one.missing[0] for one in found.refusals)
    assert all(MEND in one.missing[0] for one in found.refusals)
    assert statuses(found) == {"inconclusive"}
    page = render_page(found)
    assert page.index(OTHERWISE) < page.index("How bad, compared with what")
    with pytest.raises(PlanError, match=r"(?s)differences that were read as weights.*accept ="):
        refuse_empty_audit(found)
    assert any(OTHERWISE in text for _, text in show(misread).facts)
    checked = check_plan(PLAN, HERE, misread, with_estimate=False)
    assert not checked.can_run
    assert any(OTHERWISE in line for line in checked.lines())


def test_findings_json_tells_what_the_check_found(misread: Path, tmp_path: Path):
    found = audit_here(PLAN, tmp_path / "out", recording=misread)
    write_report(found, tmp_path)
    document = read_findings(tmp_path / "findings.json")
    assert document.recording is not None
    assert document.recording.outcome == "contradicts"
    assert MEND in document.recording.mend
    assert OTHERWISE in document.recording.sentences[0]
    assert OTHERWISE in document.verdicts[0].withheld
    assert {one.kind for one in document.refusals} == {"contradicted"}


def test_attacks_that_read_broadcasts_alone_run_without_a_verdict_of_no_leak(
    misread: Path, tmp_path: Path
):
    joiner = ThreatPlan(
        observers=(late_joiner(0),), attacks=(BiasInversion(),), about="cohort", by_round=False
    )
    plan = replace_tables(PLAN, threats=(QUICK, joiner), margins={"l1_of_cohort": 1.9})
    found = audit_here(plan, tmp_path / "out", recording=misread)
    assert {one.cell.observers for one in found.findings} == {(late_joiner(0),)}
    verdicts = {one.observers: one.judgement for one in found.arm_results[0].threat_results}
    assert OTHERWISE in verdicts[(late_joiner(0),)].withheld


def test_a_user_who_knows_better_has_its_reason_in_the_first_lines(
    misread: Path, tmp_path: Path
):
    audit_here(PLAN, tmp_path / "out", recording=misread)
    accepted = parse_plan(PLAN.toml() + ACCEPTED, "plan")
    # The folder still belongs to the plan.
    found = audit_here(accepted, tmp_path / "out", recording=misread)
    assert found.refusals == ()
    assert found.arm_results[0].threat_results[0].verdict == "nothing to read"
    told = "The user accepts it nevertheless: Our server is a special one."
    page = render_page(found)
    assert page.index(told) < page.index("How bad, compared with what")
    assert "[recording]" not in PLAN.toml()


def test_what_cannot_be_told_is_not_said_not_to_leak(recording: Path, tmp_path: Path):
    unfinished = rewrite(recording, tmp_path / "short", rounds=1)
    found = audit_here(PLAN, tmp_path / "out", recording=unfinished)
    assert {one.cell.part for one in found.findings} == {"bias_inversion", "mean_softmax"}
    (result,) = found.arm_results[0].threat_results
    assert result.verdict == "not enough to judge"
    assert "no round with updates has a next broadcast" in result.judgement.withheld
    assert statuses(found) == {"inconclusive"}
    assert "About attacks by the server it is not said that nothing leaks" in render_page(found)


def test_the_lines_of_a_run_that_goes_on_tell_of_a_contradiction(misread: Path, tmp_path: Path):
    copy = GrowingCopy(misread, tmp_path / "growing")
    growing = GrowingRecording(copy.folder, 10)
    attacker = RoundAttacker(inputs_for(PLAN), copy.folder, growing)
    copy.commit_round(0)
    growing.read_new_rounds()
    first = attacker.attack_quickly()
    assert first.notes == ()
    assert first.audit.findings
    copy.commit_round(1)
    growing.read_new_rounds()
    second = attacker.attack_quickly()
    assert any(OTHERWISE in note for note in second.notes)
    assert second.audit.findings == ()
    assert "The recording contradicts itself" in describe_round(second)


WEIGHTS = {"b": torch.zeros(2)}


NONE = Examples(torch.zeros(0, 1), torch.zeros(0, dtype=torch.int64))


NOBODY = DataPartition(NONE, (), NONE, NONE, {})


TO_SERVER = frozenset({SERVER})


def broadcast(number: int) -> Message:
    return Message(number, SERVER, frozenset({COHORT}), Broadcast(WEIGHTS))


def update(number: int, sender: Party) -> Message:
    return Message(number, sender, TO_SERVER, Update(WEIGHTS, 4))


def truth_of(*keys: tuple[int, Party]) -> GroundTruth:
    return GroundTruth(Facts(LabelCounts({key: torch.tensor([3, 1]) for key in keys})))


def read(folder: Path, messages: list[Message], *keys: tuple[int, Party]) -> GroundTruth | None:
    write_truth(folder, truth_of(*keys))
    run = Transcript(tuple(messages))
    return read_recorded_truth(folder, run, 2, NOBODY, is_external=True)


def test_refuses_counts_of_a_client_in_a_round_in_which_it_did_not_take_part(tmp_path: Path):
    run = [broadcast(0), update(0, client(0)), update(0, client(1)), update(1, client(0))]
    known = ((0, client(0)), (0, client(1)), (1, client(0)))
    assert read(tmp_path, run, *known) is not None
    with pytest.raises(TranscriptError, match="client/1 in round 1, but in that round only"):
        read(tmp_path, run, *known, (1, client(1)))


def test_takes_counts_of_a_client_whose_update_arrived_but_was_not_recorded(tmp_path: Path):
    lost = Message(0, client(1), TO_SERVER, MissingReply("not recorded: it is a tree"))
    late = Message(0, client(2), TO_SERVER, MissingReply("late"))
    run = [broadcast(0), update(0, client(0)), lost, late]
    assert read(tmp_path, run, (0, client(0)), (0, client(1))) is not None
    with pytest.raises(TranscriptError, match="client/2 in round 0"):
        read(tmp_path, run, (0, client(0)), (0, client(2)))


def test_takes_counts_of_any_client_where_only_global_models_were_recorded(tmp_path: Path):
    assert read(tmp_path, [broadcast(0), broadcast(1)], (0, client(7))) is not None
    with pytest.raises(TranscriptError, match="round 2, but the rounds of the run are 0 to 1"):
        read(tmp_path, [broadcast(0), broadcast(1)], (2, client(7)))


def test_takes_facts_on_a_client_that_was_expected_and_never_selected(tmp_path: Path):
    users = {client(number): f"user {number}" for number in (0, 1)}
    write_truth(tmp_path, GroundTruth(Facts(UsersOfClients(users))))
    run = Transcript((broadcast(0), update(0, client(0))))
    found = read_recorded_truth(
        tmp_path, run, 2, NOBODY, is_external=False, planned_parties=(SERVER, *users)
    )
    assert found is not None
    assert found.facts.need(UsersOfClients).users == users
    with pytest.raises(TranscriptError, match="names client/1, but the parties of the run"):
        read_recorded_truth(tmp_path, run, 2, NOBODY, is_external=False)


def test_takes_counts_of_the_clients_of_a_mean(tmp_path: Path):
    mean = Message(0, SERVER, TO_SERVER, Aggregate(WEIGHTS, frozenset({client(0), client(1)})))
    run = [broadcast(0), mean]
    assert read(tmp_path, run, (0, client(0)), (0, client(1))) is not None
    with pytest.raises(TranscriptError, match="client/2 in round 0"):
        read(tmp_path, run, (0, client(2)))


def test_tells_of_a_reply_that_reports_another_number_of_examples():
    truth = truth_of((0, client(0)))
    assert compare_counts(truth, Transcript((update(0, client(0)),))) == ()
    other = Message(0, client(0), TO_SERVER, Update(WEIGHTS, 9))
    (sentence,) = compare_counts(truth, Transcript((other,)))
    assert "states 4 examples of client/0 in round 0, but its reply reports 9" in sentence
    hidden = Message(0, client(0), TO_SERVER, Update(WEIGHTS, None))
    assert compare_counts(truth, Transcript((hidden,))) == ()
