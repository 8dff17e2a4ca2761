"""A recorded run is audited like a simulated one, after strict checks."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from overheard.archive.layout import round_folder
from overheard.archive.manifest import UNTOLD_FRAMEWORK, read_manifest, write_manifest
from overheard.archive.manifest import DefenseRecord as StoredDefense
from overheard.archive.reader import open_transcript
from overheard.archive.truth import truth_path
from overheard.auditing import attack_runner
from overheard.auditing.audited_run import AuditedRun
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import partition_for_plan
from overheard.auditing.knowledge import attacker_knowledge
from overheard.auditing.progress import ProgressStep
from overheard.auditing.recording import (
    check_recording,
    digest_of_first_rounds,
    recording_digest,
)
from overheard.core.errors import OutputError, PlanError, TranscriptError
from overheard.core.knowledge import Knowledge
from overheard.core.mechanism import Mechanism
from overheard.core.messages import Broadcast, Timestamps, Update, apply_update
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.epsilon.epsilon_results import epsilon_results
from overheard.findings.audit import Audit
from overheard.learning.initialization import initial_weights
from overheard.learning.models.logistic import Logistic
from overheard.learning.models.mlp import Mlp
from overheard.plans.description import describe_recording
from overheard.plans.plan import Plan, ThreatPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.claim import LabelShares
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.run_info import RunInfo
from overheard.report.page import render_page
from tests.auditing.conftest import FinishedAudit, audit_here, inputs_for
from tests.auditing.plans import (
    DATA,
    NO_DEFENSE,
    SECURE_AGGREGATION,
    SERVER_THREAT,
    TINY,
    TRAINING,
    replace_tables,
)
from tests.auditing.shift_attack import Pull

ADAPTIVE = ThreatPlan(
    attacks=(BiasInversion(),),
    knows=("auxiliary", "model", "recipe", "defenses"),
    by_round=False,
)


@pytest.fixture
def copy(recording: Path, tmp_path: Path) -> Path:
    """A copy of the recording that a test may damage."""
    return shutil.copytree(recording, tmp_path / "recording")


def known_in(run: AuditedRun, threat: ThreatPlan) -> Knowledge:
    return attacker_knowledge(run.observed.spec.arm, threat, run.observed.inputs)


def test_a_recorded_run_gives_the_findings_of_the_simulation(
    tiny: FinishedAudit, recording: Path, tmp_path: Path
):
    steps = list[ProgressStep]()
    found = audit_here(TINY, tmp_path / "out", recording=recording, on_step=steps.append)
    assert [run.arm for run in found.arms] == ["recorded"]
    renamed = tuple(
        replace(finding, cell=replace(finding.cell, arm="no defense"))
        for finding in found.findings
    )
    # Only a simulation can draw its partition anew.
    assert any(finding.fits for finding in tiny.audit.findings)
    assert renamed == tuple(replace(finding, fits=()) for finding in tiny.audit.findings)
    assert found.refusals == ()
    assert found.arms[0].accuracy == tiny.audit.arms[0].accuracy
    # Traffic can be counted from a recording; its time is unknown.
    assert found.arms[0].traffic == tiny.audit.arms[0].traffic is not None
    assert found.arms[0].seconds is None
    # two attacks, each on all rounds and on each of two
    assert [step.done for step in steps] == [1, 2, 3, 4, 5, 6]
    assert {step.total for step in steps} == {6}
    assert not (tmp_path / "out" / "runs").exists()


def test_progress_counts_the_recorded_rounds(recording: Path, tmp_path: Path):
    longer = replace_tables(TINY, training=TRAINING.model_copy(update={"rounds": 9}))
    steps = list[ProgressStep]()
    audit_here(longer, tmp_path / "out", recording=recording, on_step=steps.append)
    assert (steps[-1].done, steps[-1].total) == (6, 6)


def test_the_subject_describes_the_recording_instead_of_the_plan(
    recording: Path, tmp_path: Path
):
    longer = replace_tables(TINY, training=TRAINING.model_copy(update={"rounds": 9}))
    found = audit_here(longer, tmp_path / "out", recording=recording)
    assert found.subject.startswith(
        "a recorded run of 4 parties over 2 rounds; model Logistic()"
    )
    assert "9" not in found.subject


def test_the_subject_names_no_framework_that_was_not_told(recording: Path):
    manifest = read_manifest(recording)
    described = [
        describe_recording(TINY, replace(manifest, framework=one), 4, 2)
        for one in (UNTOLD_FRAMEWORK, "FedML 0.9.6")
    ]
    assert described[0].startswith("a recorded run of 4 parties")
    assert described[1].startswith("a recorded run of FedML 0.9.6 of 4 parties")


def test_distinguishes_recordings_with_the_same_folder_name(
    copy: Path, recording: Path, tmp_path: Path
):
    audit_here(TINY, tmp_path / "out", recording=copy)
    other = tmp_path / "elsewhere" / copy.name
    shutil.copytree(recording, other)
    assert recording_digest(other) == recording_digest(copy)
    shutil.rmtree(round_folder(other / "transcript", 2))
    with pytest.raises(OutputError, match="another plan"):
        audit_here(TINY, tmp_path / "out", recording=other)


def test_a_truth_that_is_added_later_is_scored_without_an_attack(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    truth = truth_path(copy).read_text()
    scored = audit_here(TINY, tmp_path / "at once", recording=copy)
    truth_path(copy).unlink()
    unchecked = audit_here(TINY, tmp_path / "out", recording=copy)
    assert not any(finding.is_checked for finding in unchecked.findings)
    truth_path(copy).write_text(truth)
    monkeypatch.setattr(attack_runner, "make_claims_in_batches", None)
    monkeypatch.setattr(attack_runner, "make_claims", None)
    later = audit_here(TINY, tmp_path / "out", recording=copy)
    assert later.findings == scored.findings
    assert later.refusals == scored.refusals


def test_another_truth_changes_scores_and_no_claim(copy: Path, tmp_path: Path):
    before = audit_here(TINY, tmp_path / "out", recording=copy)
    change_truth(copy, lambda counts: counts[0]["labels"].reverse())
    after = audit_here(TINY, tmp_path / "out", recording=copy)
    assert [one.claimed.numbers for one in after.findings] == [
        one.claimed.numbers for one in before.findings
    ]
    assert [one.scores for one in after.findings] != [one.scores for one in before.findings]
    other = "other label counts than the partition of the plan: 1, such as those of client/0"
    assert "truth.json" not in before.subject
    assert other in after.subject


def test_the_digest_of_the_first_rounds_stays_while_a_recording_grows(copy: Path):
    first = digest_of_first_rounds(copy, 1)
    shutil.rmtree(round_folder(copy / "transcript", 2))
    truth_path(copy).unlink()
    assert digest_of_first_rounds(copy, 1) == first != digest_of_first_rounds(copy, 2)


def test_a_simulated_run_that_is_not_finished_has_the_planned_partition(
    copy: Path, tmp_path: Path
):
    for number in (1, 2):
        shutil.rmtree(round_folder(copy / "transcript", number))
    found = audit_here(TINY, tmp_path / "out", recording=copy)
    assert {finding.cell.rounds for finding in found.findings} == {(0,)}


def change_truth(
    folder: Path, change: Callable[[list[dict[str, Any]]], object] = len, **values: object
) -> None:
    """Change the label counts of a ground truth, and state further values."""
    truth = json.loads(truth_path(folder).read_text()) | values
    change(truth["counts"])
    truth_path(folder).write_text(json.dumps(truth))


def shift(party: str, *rounds: int) -> dict[str, object]:
    return {"shifts": [{"party": party, "rounds": rounds}]}


def test_without_a_truth_the_page_says_why_an_attack_doubts_its_intervals(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    truth_path(copy).unlink()
    plan = replace_tables(TINY, threats=(SERVER_THREAT,))
    trusted = audit_here(plan, tmp_path / "trusted", recording=copy)
    assert {one.claimed.doubt for one in trusted.findings} == {None}
    assert "not trusted here" not in render_page(trusted)
    monkeypatch.setattr(LabelShares, "doubt", lambda _: "the clients are unlike mine")
    doubted = audit_here(plan, tmp_path / "doubted", recording=copy)
    assert {one.claimed.doubt for one in doubted.findings} == {"the clients are unlike mine"}
    page = render_page(doubted)
    assert "Intervals not trusted here: the clients are unlike mine." in page


def test_takes_recorded_shifts_as_ground_truth(copy: Path, tmp_path: Path):
    change_truth(copy, **shift("client/1", 1))
    plan = replace_tables(TINY, threats=(ThreatPlan(attacks=(Pull(),)),))
    found = audit_here(plan, tmp_path / "out", recording=copy)
    assert [(one.target, one.true_since) for one in found.findings] == [
        (client(0), None), (client(1), 1), (client(2), None)
    ]  # fmt: skip
    assert not any(run.is_control for run in found.arms)


@pytest.mark.parametrize(
    ("change", "values", "words"),
    [
        (list.pop, {}, "in which it sent an update: add them"),
        (lambda counts: counts[0].update(labels=[0] * 10), {}, "are not counts of 10"),
        (
            lambda counts: counts.append({**counts[0], "party": "client/99"}),
            {},
            "has label counts of client/99 in round 0, but the parties of the run are client/0",
        ),
        (
            lambda counts: counts.append({**counts[0], "round": 7}),
            {},
            "what holds in round 7, but the rounds of the run are 0 to 2: remove the entry",
        ),
        (len, shift("client/9", 1), "client/9 shifts in the rounds"),
        (len, shift("client/1", 0), "name its clients, and rounds from 1 to 1"),
        (len, shift("client/1", 2), "its last round is 1"),
        (
            len,
            {"users": {"client/9": "ann"}},
            "'users' names client/9, but the parties of the run are client/0, client/1",
        ),
    ],
    ids=[
        *("missing counts", "no example", "of an unknown party", "of an unknown round"),
        *("shift of an unknown party", "a shift at the start", "a shift after the end"),
        "user of an unknown party",
    ],
)
def test_refuses_a_truth_that_does_not_fit_before_it_writes(
    copy: Path,
    tmp_path: Path,
    change: Callable[[list[dict[str, Any]]], object],
    values: dict[str, object],
    words: str,
):
    change_truth(copy, change, **values)
    with pytest.raises(TranscriptError, match=words):
        audit_here(TINY, tmp_path / "out", recording=copy)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (
            replace_tables(
                TINY, training=TRAINING.model_copy(update={"model": Mlp(hidden=(8,))})
            ),
            r"training.model has .*: set training.model to the model of the run, Logistic\(\)",
        ),
        (
            replace_tables(TINY, training=TRAINING.model_copy(update={"rate": 0.2})),
            r"change \[training\] of the plan to the recipe of the run",
        ),
    ],
    ids=["model", "recipe"],
)
def test_refuses_a_plan_whose_model_or_recipe_differs_from_the_run(
    recording: Path, tmp_path: Path, plan: Plan, words: str
):
    with pytest.raises(PlanError, match=words):
        audit_here(plan, tmp_path / "out", recording=recording)
    assert not (tmp_path / "out").exists()


def test_the_precision_of_this_computer_says_nothing_of_the_run(recording: Path) -> None:
    rounded = TRAINING.model_copy(update={"precision": "tf32"})
    plan = replace_tables(TINY, training=rounded)
    check_recording(plan, inputs_for(plan), recording).open_run()


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("class_names", tuple("abcdefghij"), "has the classes a, b, c"),
        ("class_names", ("a", "b"), "has the classes a, b, the plan's data have 0, 1"),
        ("shape", (1, 28, 28), "examples of shape"),
    ],
)
def test_refuses_a_run_about_other_data(copy: Path, field: str, value: object, words: str):
    manifest = read_manifest(copy)
    write_manifest(
        copy / "transcript", replace(manifest, task=replace(manifest.task, **{field: value}))
    )
    with pytest.raises(PlanError, match=f"{words}.*: name the data of the run in the plan"):
        check_recording(TINY, inputs_for(TINY), copy).open_run()


def test_refuses_an_observer_that_is_not_a_party_of_the_recording(
    recording: Path, tmp_path: Path
):
    plan = replace_tables(
        TINY, threats=(SERVER_THREAT.model_copy(update={"observers": ("site-1",)}),)
    )
    with pytest.raises(PlanError, match="site-1 is not a party of the run"):
        audit_here(plan, tmp_path / "out", recording=recording)


def test_the_first_client_of_a_recording_observes(recording: Path, tmp_path: Path):
    first = SERVER_THREAT.model_copy(update={"observers": ("client/first",), "about": "cohort"})
    plan = replace_tables(TINY, threats=(first,))
    found = audit_here(plan, tmp_path / "out", recording=recording)
    assert {one.cell.observers for one in found.findings} == {("client/0",)}


def test_an_attacker_that_knows_the_defenses_knows_the_recorded_ones(tmp_path: Path):
    plan = replace_tables(TINY, arms=(NO_DEFENSE, SECURE_AGGREGATION))
    audit_here(plan, tmp_path / "simulated")
    masked = AuditFolder(tmp_path / "simulated").run_path(SECURE_AGGREGATION.name, 0)
    audit_inputs = inputs_for(TINY)
    adaptive = replace_tables(plan, threats=(ADAPTIVE,))
    heard = check_recording(adaptive, audit_inputs, masked).open_run()
    assert known_in(heard, ADAPTIVE).defenses == SECURE_AGGREGATION.defenses
    assert heard.record.defenses[0].promise == "as recorded: not verified"
    lacking = check_recording(replace_tables(TINY, threats=(ADAPTIVE,)), audit_inputs, masked)
    with pytest.raises(PlanError, match="no arm of the plan has them: add an arm with them"):
        lacking.open_run()
    # Who does not know them needs no such arm.
    heard = check_recording(TINY, audit_inputs, masked).open_run()
    assert known_in(heard, SERVER_THREAT).defenses is None


@pytest.mark.parametrize(
    "other",
    [
        # More auxiliary examples, or another seed, would be some that clients trained on.
        replace_tables(TINY, data=DATA.model_copy(update={"auxiliary_per_class": 7})),
        replace_tables(TINY, seeds=(1,)),
    ],
)
def test_refuses_a_partition_other_than_that_of_the_run(other, recording):
    with pytest.raises(PlanError, match="auxiliary example could be a client's: use"):
        check_recording(other, inputs_for(other), recording).open_run()


def test_auxiliary_examples_are_those_that_the_run_set_aside(recording: Path):
    audit_inputs = inputs_for(TINY)
    run = check_recording(TINY, audit_inputs, recording).open_run()
    known = known_in(run, SERVER_THREAT).auxiliary
    aside = partition_for_plan(TINY, audit_inputs.dataset, TINY.seeds[0]).auxiliary
    assert known is not None
    assert torch.equal(known.inputs, aside.inputs)


def test_accepts_any_partition_for_an_external_recording(recording: Path, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(recording, elsewhere)
    manifest = elsewhere / "transcript" / "manifest.json"
    told = json.loads(manifest.read_text()) | {"data": ""}
    manifest.write_text(json.dumps(told))
    other = replace_tables(TINY, seeds=(1,))
    assert check_recording(other, inputs_for(other), elsewhere).open_run().observed.spec.rounds


@pytest.fixture(scope="session")
def elsewhere(recording: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny run as another framework records it, with full weights in both directions.

    The model also has running means and batch counts. Recipe, task and ground truth are
    missing. Rounds have config and times.
    """
    folder = tmp_path_factory.mktemp("elsewhere") / "recording"
    noise = Mechanism(1.0, 1.0, 1e-5, "client", "client", stated=8.0, stated_for="round")
    stated = StoredDefense("mod", "Mod(clip=1)", "client", "whoever ships the app", noise)
    writer = AsyncWriter(folder, RunInfo("flower 1.41", defenses=(stated,)))
    transcript, besides = open_transcript(recording), {"norm.running_mean": torch.zeros(2)}
    counted = besides | {"norm.num_batches": torch.tensor(3)}
    for number in range(3):
        writer.begin_round([SERVER])
        start = dict[str, torch.Tensor]()
        for message in transcript.messages:
            if message.round != number:
                continue
            body = message.body
            if isinstance(body, Broadcast):
                start = dict(body.weights)
                body = Broadcast(start | counted, {"lr": "0.1"})
            elif isinstance(body, Update):
                arrived = apply_update(start, body.delta)
                delta = {name: arrived[name] - start[name] for name in start}
                body = replace(body, delta=delta | besides)
            writer.write(
                message.sender, message.readers, lambda body=body: body, times=Timestamps(1.0)
            )
        writer.commit()
    writer.close()
    assert writer.stopped is None
    return folder


@pytest.fixture(scope="session")
def unchecked(elsewhere: Path, tmp_path_factory: pytest.TempPathFactory) -> Audit:
    folder = tmp_path_factory.mktemp("unchecked") / "out"
    return audit_here(TINY, folder, recording=elsewhere)


def test_an_external_recording_gives_the_claims_of_the_simulation(
    tiny: FinishedAudit, unchecked: Audit
):
    assert len(unchecked.findings) == len(tiny.audit.findings)
    for there, here in zip(unchecked.findings, tiny.audit.findings, strict=True):
        assert there.target == here.target
        assert there.claimed.numbers == pytest.approx(here.claimed.numbers, abs=1e-6)


def test_without_ground_truth_claims_have_guesses_instead_of_scores(
    tiny: FinishedAudit, unchecked: Audit
):
    assert not unchecked.arms[0].has_truth
    assert all(run.has_truth for run in tiny.audit.arms)
    for finding in unchecked.findings:
        assert not finding.is_checked
        assert finding.scores == finding.true_numbers == ()
        assert finding.guesses["uniform"] == pytest.approx([0.1] * 10)
        assert finding.guesses["auxiliary prior"] == pytest.approx([0.1] * 10)
    assert all(one.is_checked and not one.guesses for one in tiny.audit.findings)
    assert unchecked.refusals == ()


@pytest.mark.slow
def test_an_external_recording_with_ground_truth_is_scored(
    tiny: FinishedAudit, elsewhere: Path, recording: Path, tmp_path: Path
):
    copy = shutil.copytree(elsewhere, tmp_path / "recording")
    shutil.copy(truth_path(recording), truth_path(copy))
    found = audit_here(TINY, tmp_path / "out", recording=copy)
    for there, here in zip(found.findings, tiny.audit.findings, strict=True):
        assert there.true_numbers == here.true_numbers
        assert [one.value for one in there.scores] == pytest.approx(
            [one.value for one in here.scores], abs=1e-5
        )


@pytest.mark.slow
def test_tensors_that_are_not_parameters_count_as_traffic_only(
    tiny: FinishedAudit, elsewhere: Path, unchecked: Audit
):
    plain, wider = tiny.audit.arms[0].traffic, unchecked.arms[0].traffic
    assert plain is not None
    assert wider is not None
    # two numbers of four bytes in each of 3 x 2 updates
    assert wider.up == plain.up + 6 * 8
    assert read_manifest(elsewhere).left_out == ("norm.num_batches",)
    heard = check_recording(TINY, inputs_for(TINY), elsewhere).open_run()
    build = partial(Logistic().build, inputs_for(TINY).dataset.task)
    names = [name for name, _ in initial_weights(build, Seed(0)).items()]
    for weights in heard.observed.transcript.seen_by(SERVER).broadcasts().values():
        assert list(weights) == names
        assert "norm.running_mean" not in weights


def test_recomputes_the_epsilon_of_recorded_noise(unchecked: Audit):
    (line,) = (one for one in epsilon_results(unchecked) if one.observers == (SERVER,))
    found = line.accounted.recomputed
    assert found is not None
    # Noise of one clip on what a client can move by two: delta is 1e-5 at epsilon 9.997 by
    # Phi(mu / 2 - e / mu) - exp(e) Phi(-mu / 2 - e / mu) at mu = 2.
    assert found.one_round == pytest.approx(9.997, abs=0.01)
    assert line.accounted.run.rounds == 2
    assert line.verdict == "false"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stated", "standing"),
    [
        # As `LocalDpMod` with a sensitivity of 1e-4 where the clip is 1, and as `SVTPrivacy`.
        (Mechanism(4.8e-5, 1.0, 1e-5, "client", "client", stated=10.0, stated_for="round"),
         "false"),
        (Mechanism(2.0, 1.0, 1e-5, "client", "client", stated=0.1, stated_for="round",
                   unproven="a sparse vector that never stops"), "not confirmed"),
    ],
    ids=["a sensitivity too small", "no proof"],
)  # fmt: skip
def test_flags_recorded_mechanisms_with_broken_claims(
    elsewhere: Path, tmp_path: Path, stated: Mechanism, standing: str
):
    copy = shutil.copytree(elsewhere, tmp_path / "recording")
    manifest = read_manifest(copy)
    (one,) = manifest.defenses
    write_manifest(
        copy / "transcript", replace(manifest, defenses=(replace(one, mechanism=stated),))
    )
    found = audit_here(TINY, tmp_path / "out", recording=copy)
    lines = epsilon_results(found)
    assert {line.verdict for line in lines} == {standing}
    told = render_page(found)
    assert ("Does not hold" in told) == (standing == "false")
    assert (stated.unproven or "claim is false") in told
