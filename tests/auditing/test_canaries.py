"""Randomly assigned canaries bound epsilon when the recorded run is audited."""

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from overheard.archive.manifest import DefenseRecord as StoredDefense
from overheard.archive.manifest import read_manifest, write_manifest
from overheard.archive.truth import truth_path, write_truth
from overheard.auditing.canaries import DrawnCanaries, draw_canaries
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import partition_for_plan, partitions_of_seed
from overheard.auditing.recording import check_recording
from overheard.core.errors import OutputError, PlanError, TranscriptError
from overheard.core.facts import Facts
from overheard.core.parties import SERVER, Party, client
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.true_facts.record_owners import (
    BoundDigest,
    OfferedCanaries,
    RecordOwners,
    RecordsDigest,
)
from overheard.core.truth import GroundTruth
from overheard.data.datasets.custom import Own
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.splits.dirichlet import Dirichlet
from overheard.defenses.dp_sgd import DpSgd
from overheard.defenses.local_dp import LocalDp
from overheard.disk.folder_lock import lock_folder
from overheard.epsilon.epsilon_results import EpsilonResult, epsilon_results
from overheard.epsilon.table import COLUMN_NAMES, epsilon_table
from overheard.findings.audit import Audit
from overheard.findings.privacy.epsilon_rows import BoundByGuesses
from overheard.learning.models.mlp import Mlp
from overheard.plans.data_plan import DataPlan
from overheard.plans.epsilon_plan import EpsilonPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.membership.attacks.crafted_gradients import CraftedGradients
from overheard.questions.membership.attacks.loss_membership import LossMembership
from overheard.report.exports import epsilon_row
from tests.archive.stored_truth import read_truth
from tests.auditing.conftest import HERE, audit_here, inputs_for
from tests.auditing.plans import TINY, replace_tables

WEAK, STRONG = LocalDp(5.0, 1e-4), LocalDp(5.0, 20.0)
PLAN = Plan(
    data=DataPlan(
        source=Own(reference="tests.auditing.remembered:table"),
        split=Dirichlet(alpha=0.3),
        clients=3,
        examples=20,
        auxiliary=30,
        candidates=CandidateSettings(members=30, outsiders=90, canaries="mislabelled"),
    ),
    training=TrainingPlan(model=Mlp(hidden=(24,)), rounds=2, batch=10, rate=0.3, epochs=20),
    arms=(
        ArmPlan(name="little", defenses=(WEAK,)),
        ArmPlan(name="much", defenses=(STRONG,)),
    ),
    threats=(ThreatPlan(attacks=(LossMembership(), BiasInversion()), by_round=False),),
)
"""Non-IID clients that overfit."""


@dataclass(frozen=True)
class AuditedCanaries:
    """The plan, simulated and audited, and the files of its canaries."""

    found: Audit
    runs: AuditFolder
    drawn: DrawnCanaries
    folder: Path


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> AuditedCanaries:
    home = tmp_path_factory.mktemp("canaries")
    drawn = draw_canaries(PLAN, home / "drawn", resources=HERE)
    found = audit_here(PLAN, home / "audit")
    return AuditedCanaries(found, AuditFolder(home / "audit"), drawn, home / "drawn")


def test_canaries_are_not_drawn_twice_at_once_into_one_folder(tmp_path: Path):
    with lock_folder(tmp_path), pytest.raises(OutputError, match="another process works here"):
        draw_canaries(PLAN, tmp_path, resources=HERE)
    assert list(tmp_path.iterdir()) == []


def external_copy(ran: AuditedCanaries, arm: str, to: Path, states: LocalDp = STRONG) -> Path:
    """Copy a run as an external recording, of which only the canaries are known."""
    copy = shutil.copytree(ran.runs.run_path(arm, 0), to)
    shutil.copy(truth_path(ran.folder), truth_path(copy))
    stated = StoredDefense("mod", repr(states), "client", "each client", states.mechanism())
    manifest = read_manifest(copy)
    write_manifest(
        copy / "transcript", replace(manifest, data="", task=None, defenses=(stated,))
    )
    return copy


def towards_server(found: Audit) -> dict[str, EpsilonResult]:
    lines = epsilon_results(found)
    return {line.arm: line for line in lines if line.observers == (SERVER,)}


def test_writes_a_file_for_each_client_and_the_ground_truth(ran: AuditedCanaries) -> None:
    partition = partition_for_plan(PLAN, inputs_for(PLAN).dataset, 0)
    records, truth = partition.candidates, read_truth(ran.folder)
    assert records is not None
    owners = truth.facts.need(RecordOwners)
    assert owners.members == partition.members
    assert len(truth.facts.need(RecordsDigest).digest) == 24
    assert truth.facts.get(LabelCounts) is None
    for number in range(3):
        own = list(owners.members[client(number)])
        file = ran.folder / f"client-{number}.npz"
        assert ran.drawn.files[client(number)] == file
        with np.load(file, allow_pickle=False) as stored:
            assert torch.equal(torch.from_numpy(stored["x"]), records.inputs[own])
            assert torch.equal(torch.from_numpy(stored["y"]), records.labels[own])
        assert ran.drawn.counts[client(number)] == len(own)
    assert ran.drawn.held_out == 180 - sum(ran.drawn.counts.values())


def test_redraws_the_same_canaries_and_refuses_another_plan(
    ran: AuditedCanaries, tmp_path: Path
) -> None:
    draw_canaries(PLAN, tmp_path / "again", resources=HERE)
    for path in ran.folder.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()
    draw_canaries(PLAN, tmp_path / "again", resources=HERE)
    with pytest.raises(OutputError, match="holds the audit of another plan"):
        draw_canaries(replace_tables(PLAN, seeds=(1,)), tmp_path / "again", resources=HERE)


@pytest.mark.parametrize("candidates", [None, CandidateSettings(2, 5)])
def test_refuses_a_plan_without_canaries(
    tmp_path: Path, candidates: CandidateSettings | None
) -> None:
    plan = replace_tables(PLAN, data=PLAN.data.model_copy(update={"candidates": candidates}))
    with pytest.raises(PlanError, match='canaries = "labelled" or "mislabelled"'):
        draw_canaries(plan, tmp_path / "out", resources=HERE)
    assert not (tmp_path / "out").exists()


def test_bounds_epsilon_for_non_iid_clients(ran: AuditedCanaries) -> None:
    lines = towards_server(ran.found)
    assert all(line.verdict == "holds" for line in lines.values())
    (little, much) = (lines[name].lower_bound for name in ("little", "much"))
    assert little is not None
    assert much is not None
    assert little.epsilon > 1.0
    assert much.epsilon == 0.0


def test_an_external_recording_has_the_bound_of_the_simulation(
    ran: AuditedCanaries, tmp_path: Path
) -> None:
    copy = external_copy(ran, "little", tmp_path / "run", WEAK)
    found = audit_here(PLAN, tmp_path / "out", recording=copy)
    (line,), simulated = towards_server(found).values(), towards_server(ran.found)["little"]
    assert line.verdict == "holds"
    assert line.lower_bound is not None
    assert simulated.lower_bound is not None
    assert line.lower_bound.evidence == simulated.lower_bound.evidence
    # The level is divided by the claims that could be violated: the simulation has two arms.
    assert (line.lower_bound.level, simulated.lower_bound.level) == (0.05, 0.025)
    assert line.lower_bound.epsilon > simulated.lower_bound.epsilon
    assert line.lower_bound.method == "curve"


def test_the_truth_may_name_clients_as_the_app_does(
    ran: AuditedCanaries, tmp_path: Path
) -> None:
    copy = external_copy(ran, "little", tmp_path / "run")
    inputs = inputs_for(PLAN)
    expected = check_recording(PLAN, inputs, copy).open_run().truth.truth
    stated = json.loads(truth_path(copy).read_text())
    for key in ("members", "offered"):
        stated[key] = {f"client/{5 + n}": stated[key][f"client/{n}"] for n in range(3)}
    truth_path(copy).write_text(json.dumps(stated))
    with pytest.raises(TranscriptError, match="names client/5, client/6, client/7"):
        check_recording(PLAN, inputs, copy).open_run()
    names = {f"client/{n}": str(5 + n) for n in range(3)}
    (copy / "node_names.json").write_text(json.dumps(names))
    found = check_recording(PLAN, inputs, copy).open_run().truth.truth
    assert expected is not None
    assert found is not None
    for kind in (RecordOwners, OfferedCanaries):
        assert found.facts.need(kind) == expected.facts.need(kind)


def test_detects_that_a_recording_lacks_its_stated_noise(
    ran: AuditedCanaries, tmp_path: Path
) -> None:
    # Both state noise of 20 clips; only one adds it.
    audits = {
        arm: audit_here(
            PLAN, tmp_path / f"{arm} out", recording=external_copy(ran, arm, tmp_path / arm)
        )
        for arm in ("little", "much")
    }
    standing = {arm: towards_server(one)["recorded"].verdict for arm, one in audits.items()}
    assert standing == {"little": "violated", "much": "holds"}


def test_refuses_questions_that_the_ground_truth_does_not_cover(
    ran: AuditedCanaries, tmp_path: Path
) -> None:
    copy = external_copy(ran, "little", tmp_path / "run")
    found = audit_here(PLAN, tmp_path / "out", recording=copy)
    assert {one.cell.question for one in found.findings} == {"membership"}
    assert {one.cell.question for one in found.refusals} == {"label_shares"}
    (why,) = {one.missing for one in found.refusals}
    assert why == (
        "the ground truth has no label counts: ask another question, or add the counts",
    )


def test_without_ground_truth_there_are_claims_and_no_bound(
    ran: AuditedCanaries, tmp_path: Path
) -> None:
    copy = external_copy(ran, "little", tmp_path / "run")
    truth_path(copy).unlink()
    found = audit_here(PLAN, tmp_path / "out", recording=copy)
    assert not any(one.is_checked for one in found.findings)
    assert len(found.findings) == 6
    line = towards_server(found)["recorded"]
    assert (line.verdict, line.lower_bound) == ("unchecked", None)


def test_refuses_canaries_of_another_draw(ran: AuditedCanaries, tmp_path: Path) -> None:
    copy = external_copy(ran, "little", tmp_path / "run")
    with pytest.raises(TranscriptError, match="lists other canaries than the plan draws"):
        audit_here(replace_tables(PLAN, seeds=(1,)), tmp_path / "out", recording=copy)
    assert not (tmp_path / "out").exists()


def test_refuses_candidate_records_of_unknown_membership(
    ran: AuditedCanaries, tmp_path: Path
) -> None:
    copy = external_copy(ran, "little", tmp_path / "run")
    data = PLAN.data.model_copy(update={"candidates": CandidateSettings(5, 20)})
    with pytest.raises(PlanError, match="use canaries, which `overheard canaries` draws"):
        audit_here(replace_tables(PLAN, data=data), tmp_path / "out", recording=copy)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        (
            {client(9): (1,)},
            "'members' names client/9, but the parties of the run are client/0, client/1",
        ),
        ({client(1): (180,)}, "the records of client/1 are not those that the plan gives"),
    ],
)
def test_refuses_impossible_members(
    ran: AuditedCanaries, tmp_path: Path, members: dict[object, tuple[int, ...]], words: str
) -> None:
    copy = with_members(ran, members, tmp_path / "run")
    with pytest.raises(TranscriptError, match=words):
        audit_here(PLAN, tmp_path / "out", recording=copy)


def owners_of(folder: Path) -> RecordOwners:
    return read_truth(folder).facts.need(RecordOwners)


def with_members(ran: AuditedCanaries, members: dict[Party, tuple[int, ...]], to: Path) -> Path:
    """Copy a run as an external recording in which clients have these canaries."""
    copy = external_copy(ran, "little", to)
    write_truth(copy, read_truth(copy).having(replace(owners_of(copy), members=members)))
    return copy


def offers_of(folder: Path) -> dict[Party, tuple[int, ...]]:
    return dict(read_truth(folder).facts.need(OfferedCanaries).offered)


def test_refuses_canaries_that_were_not_assigned_to_these_clients(
    ran: AuditedCanaries, tmp_path: Path
) -> None:
    first, second, third = (owners_of(ran.folder).members_of(client(n)) for n in range(3))
    held_out = min({*range(180)} - {*first, *second, *third})
    for number, members in enumerate(
        (
            {client(0): first, client(1): first},
            {client(0): first[:3], client(1): first[3:]},
            {client(0): first[1:]},
            {client(0): ()},
            {client(0): (*first, *second)},
            {client(0): first, client(1): (*second, held_out)},
            {client(2): (held_out,)},
        )
    ):
        copy = with_members(ran, members, tmp_path / f"run {number}")
        with pytest.raises(TranscriptError, match="are not those that the plan gives to one"):
            audit_here(PLAN, tmp_path / "out", recording=copy)
    # The same canaries under another random assignment.
    other = PLAN.data.model_copy(
        update={"candidates": CandidateSettings(20, 120, "mislabelled")}
    )
    copy = external_copy(ran, "little", tmp_path / "run")
    with pytest.raises(TranscriptError, match="are not those that the plan gives to one"):
        audit_here(replace_tables(PLAN, data=other), tmp_path / "out", recording=copy)
    assert not (tmp_path / "out").exists()


def test_clients_may_be_renamed_or_left_out_of_the_ground_truth(
    ran: AuditedCanaries, tmp_path: Path
) -> None:
    first, _, third = (owners_of(ran.folder).members_of(client(n)) for n in range(3))
    members = {client(0): third, client(1): first}
    copy = with_members(ran, members, tmp_path / "run")
    with pytest.raises(TranscriptError, match="names of clients, in 'members' and in"):
        audit_here(PLAN, tmp_path / "out", recording=copy)
    offers = offers_of(copy)
    offers = {client(0): offers[client(2)], client(1): offers[client(0)]}
    write_truth(copy, read_truth(copy).having(OfferedCanaries(offers)))
    found = audit_here(PLAN, tmp_path / "out", recording=copy)
    assert {one.target for one in found.findings if one.is_checked} == {client(0), client(1)}
    bound = towards_server(found)["recorded"].lower_bound
    assert bound is not None
    # Half of the canaries of these two clients alone, held-out ones too.
    assert bound.members + bound.non_members == sum(map(len, offers.values())) // 2


def test_a_plan_that_was_changed_after_the_draw_proves_nothing(
    ran: AuditedCanaries, tmp_path: Path
) -> None:
    copy = external_copy(ran, "little", tmp_path / "run")
    for number, table in enumerate(
        (
            EpsilonPlan(guesses=0.2),
            EpsilonPlan(level=0.04),
            EpsilonPlan(attack="loss_membership"),
        )
    ):
        changed = replace_tables(PLAN, epsilon=table)
        found = audit_here(changed, tmp_path / f"out {number}", recording=copy)
        line = towards_server(found)["recorded"]
        assert line.verdict == "estimate"
        assert (
            "not proven"
            in dict(zip(COLUMN_NAMES, epsilon_table([line]).rows[0], strict=True))["Verdict"]
        )
        row = epsilon_row(line, found.bound_settings.digest)
        assert isinstance(row.measured, BoundByGuesses)
        assert row.measured.digest == changed.bound_settings().digest
        assert row.guaranteed_epsilon is None
    # Canaries that a fair coin gave, and no choice stated with them: nobody knows what it was.
    known = read_truth(copy)
    facts = (known.facts.need(kind) for kind in (RecordOwners, RecordsDigest, OfferedCanaries))
    write_truth(copy, GroundTruth(Facts(*facts)))
    line = towards_server(audit_here(PLAN, tmp_path / "unstated", recording=copy))["recorded"]
    assert line.verdict == "estimate"
    # The same choice, stated with the canaries, proves. It names an attack: all canaries count.
    write_truth(copy, read_truth(copy).having(BoundDigest(row.measured.digest)))
    line = towards_server(audit_here(changed, tmp_path / "out", recording=copy))["recorded"]
    assert line.verdict == "violated"
    assert line.lower_bound is not None
    assert line.lower_bound.members + line.lower_bound.non_members == 180


def test_canaries_of_older_versions_keep_their_odds(
    ran: AuditedCanaries, tmp_path: Path
) -> None:
    dataset = inputs_for(PLAN).dataset
    _, drawn = partitions_of_seed(PLAN, dataset, 0, canaries_at_odds=True)
    (older,) = drawn.values()
    copy = external_copy(ran, "little", tmp_path / "run")
    known = read_truth(copy).facts.need(RecordsDigest)
    write_truth(copy, GroundTruth(Facts(RecordOwners(older.members), known)))
    found = audit_here(PLAN, tmp_path / "out", recording=copy)
    bound = towards_server(found)["recorded"].lower_bound
    assert bound is not None
    assert (bound.method, bound.members + bound.non_members) == ("guesses", 90)
    assert not found.arms[0].canary_clients


def test_auditing_a_simulated_run_as_a_recording_repeats_its_claims(
    ran: AuditedCanaries, tmp_path: Path
) -> None:
    found = audit_here(PLAN, tmp_path / "out", recording=ran.runs.run_path("little", 0))
    bound = towards_server(found)["recorded"].lower_bound
    simulated = towards_server(ran.found)["little"].lower_bound
    assert bound is not None
    assert simulated is not None
    assert bound.evidence == simulated.evidence
    claims = [
        [
            one.claimed.numbers
            for one in result.findings
            if one.cell.arm in ("recorded", "little")
        ]
        for result in (found, ran.found)
    ]
    assert claims[0] == claims[1]


def test_ignores_members_if_the_plan_has_no_candidates(recording: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(recording, tmp_path / "run")
    content = json.loads(truth_path(copy).read_text()) | {"members": {"client/0": [5]}}
    truth_path(copy).write_text(json.dumps(content))
    assert audit_here(TINY, tmp_path / "out", recording=copy).findings


def test_crafted_gradients_show_who_holds_a_canary(tmp_path: Path) -> None:
    canaries = CandidateSettings(members=30, outsiders=30, canaries="crafted")
    plan = PLAN.model_copy(
        update={
            "data": PLAN.data.model_copy(update={"candidates": canaries}),
            "arms": tuple(
                ArmPlan(name=f"{noise:g}", defenses=(DpSgd(1.0, noise, batches=2),))
                for noise in (0.3, 30.0)
            ),
            "training": PLAN.training.model_copy(update={"epochs": 5}),
            "threats": (
                ThreatPlan(attacks=(CraftedGradients(), LossMembership()), by_round=False),
            ),
        }
    )
    found = audit_here(plan, tmp_path / "audit")
    bounds = {
        one.arm: one.lower_bound.epsilon
        for one in epsilon_results(found)
        if one.lower_bound is not None and one.observers == (SERVER,)
    }
    assert bounds["0.3"] > 1.0
    assert bounds["30"] == 0.0
    best = next(one for one in epsilon_results(found) if one.lower_bound is not None)
    assert best.lower_bound is not None
    assert best.lower_bound.attack == CraftedGradients.name
    assert best.accounted.mechanism.unit == "record"
    with pytest.raises(PlanError, match="can only be simulated"):
        draw_canaries(plan, tmp_path / "drawn", resources=HERE)
