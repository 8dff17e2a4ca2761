"""Records are put into a run by a die, and bound epsilon where its recording is audited."""

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from overheard.archive.manifest import DefenseRecord as StoredDefense
from overheard.archive.manifest import read_manifest, write_manifest
from overheard.archive.truth import read_truth, truth_path, write_truth
from overheard.auditing.canaries import DrawnCanaries, draw_canaries
from overheard.auditing.folder import AuditFolder
from overheard.auditing.run import audit
from overheard.auditing.supplies import deal_examples
from overheard.core.errors import OutputError, PlanError, TranscriptError
from overheard.core.parties import SERVER, Party, client
from overheard.data.datasets.own import Own
from overheard.data.partition.candidates import Candidates
from overheard.data.splits.dirichlet import Dirichlet
from overheard.defenses.local_dp import LocalDp
from overheard.epsilon.epsilon import EpsilonLine, epsilon_lines
from overheard.findings.finding import Audit
from overheard.learning.models.mlp import Mlp
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.membership.attacks.loss_membership import LossMembership
from tests.auditing.conftest import HERE, supplies_of
from tests.auditing.plans import TINY, changed

LITTLE, MUCH = LocalDp(5.0, 1e-4), LocalDp(5.0, 20.0)
PLAN = Plan(
    data=DataPlan(
        source=Own(reference="tests.auditing.remembered:table"),
        split=Dirichlet(alpha=0.3),
        clients=3,
        examples=20,
        auxiliary=30,
        candidates=Candidates(members=30, outsiders=90, canaries="mislabelled"),
    ),
    training=TrainingPlan(model=Mlp(hidden=(24,)), rounds=2, batch=10, rate=0.3, epochs=20),
    arms=(
        ArmPlan(name="little", defenses=(LITTLE,)),
        ArmPlan(name="much", defenses=(MUCH,)),
    ),
    threats=(ThreatPlan(attacks=(LossMembership(), BiasInversion()), by_round=False),),
)
"""Clients who differ learn by heart."""


@dataclass(frozen=True)
class Ran:
    """The plan simulated and audited, and its canaries on the disk."""

    found: Audit
    runs: AuditFolder
    drawn: DrawnCanaries
    folder: Path


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    home = tmp_path_factory.mktemp("canaries")
    drawn = draw_canaries(PLAN, home / "drawn", resources=HERE)
    found = audit(PLAN, home / "audit", resources=HERE)
    return Ran(found, AuditFolder(home / "audit"), drawn, home / "drawn")


def elsewhere(ran: Ran, arm: str, to: Path, states: LocalDp = MUCH) -> Path:
    """The run as if it were recorded elsewhere; all that is known of it are its canaries."""
    copy = shutil.copytree(ran.runs.run(arm, 0), to)
    shutil.copy(truth_path(ran.folder), truth_path(copy))
    stated = StoredDefense("mod", repr(states), "client", "each client", states.mechanism())
    manifest = read_manifest(copy)
    write_manifest(
        copy / "transcript", replace(manifest, data="", task=None, defenses=(stated,))
    )
    return copy


def towards_server(found: Audit) -> dict[str, EpsilonLine]:
    lines = epsilon_lines(found)
    return {line.arm: line for line in lines if line.observers == (SERVER,)}


def test_each_client_gets_a_file_and_the_truth_says_who_got_which(ran: Ran) -> None:
    dealt = deal_examples(PLAN, supplies_of(PLAN).dataset, 0)
    records, truth = dealt.candidates, read_truth(ran.folder)
    assert records is not None
    assert truth.members == dealt.members
    assert len(truth.canaries) == 24
    assert not truth.are_counts_told
    for number in range(3):
        own = list(truth.members[client(number)])
        file = ran.folder / f"client-{number}.npz"
        assert ran.drawn.files[client(number)] == file
        with np.load(file, allow_pickle=False) as stored:
            assert torch.equal(torch.from_numpy(stored["x"]), records.inputs[own])
            assert torch.equal(torch.from_numpy(stored["y"]), records.labels[own])
        assert ran.drawn.counts[client(number)] == len(own)
    assert ran.drawn.outsiders == 180 - sum(ran.drawn.counts.values())


def test_the_same_plan_draws_the_same_and_another_is_kept_out_of_its_folder(
    ran: Ran, tmp_path: Path
) -> None:
    draw_canaries(PLAN, tmp_path / "again", resources=HERE)
    for path in ran.folder.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()
    draw_canaries(PLAN, tmp_path / "again", resources=HERE)
    with pytest.raises(OutputError, match="holds the audit of another plan"):
        draw_canaries(changed(PLAN, seeds=(1,)), tmp_path / "again", resources=HERE)


@pytest.mark.parametrize("candidates", [None, Candidates(2, 5)])
def test_a_plan_without_canaries_draws_none(
    tmp_path: Path, candidates: Candidates | None
) -> None:
    plan = changed(PLAN, data=PLAN.data.model_copy(update={"candidates": candidates}))
    with pytest.raises(PlanError, match='canaries = "labelled" or "mislabelled"'):
        draw_canaries(plan, tmp_path / "out", resources=HERE)
    assert not (tmp_path / "out").exists()


def test_clients_that_differ_are_no_hindrance_to_a_bound(ran: Ran) -> None:
    lines = towards_server(ran.found)
    assert all(line.standing == "holds" for line in lines.values())
    (little, much) = (lines[name].bound for name in ("little", "much"))
    assert little is not None
    assert much is not None
    assert little.epsilon > 1.0
    assert much.epsilon == 0.0


def test_a_run_recorded_elsewhere_is_bounded_as_the_simulation_is(
    ran: Ran, tmp_path: Path
) -> None:
    copy = elsewhere(ran, "little", tmp_path / "run", LITTLE)
    found = audit(PLAN, tmp_path / "out", recording=copy, resources=HERE)
    (line,), simulated = towards_server(found).values(), towards_server(ran.found)["little"]
    assert (line.standing, line.bound) == ("holds", simulated.bound)


def test_noise_that_was_switched_off_is_found_out_in_a_recording(
    ran: Ran, tmp_path: Path
) -> None:
    # Both say that they add noise of 20 clips; one does.
    told = {
        arm: audit(
            PLAN,
            tmp_path / f"{arm} out",
            recording=elsewhere(ran, arm, tmp_path / arm),
            resources=HERE,
        )
        for arm in ("little", "much")
    }
    standing = {arm: towards_server(one)["recorded"].standing for arm, one in told.items()}
    assert standing == {"little": "violated", "much": "holds"}


def test_what_the_truth_leaves_out_is_not_measured(ran: Ran, tmp_path: Path) -> None:
    copy = elsewhere(ran, "little", tmp_path / "run")
    found = audit(PLAN, tmp_path / "out", recording=copy, resources=HERE)
    assert {one.cell.question for one in found.findings} == {"membership"}
    assert {one.cell.question for one in found.refusals} == {"label_shares"}
    (why,) = {one.missing for one in found.refusals}
    assert why == (
        "the ground truth has no label counts: ask another question, or add the counts",
    )


def test_without_a_truth_canaries_are_claimed_of_and_nothing_is_bounded(
    ran: Ran, tmp_path: Path
) -> None:
    copy = elsewhere(ran, "little", tmp_path / "run")
    truth_path(copy).unlink()
    found = audit(PLAN, tmp_path / "out", recording=copy, resources=HERE)
    assert not any(one.is_checked for one in found.findings)
    assert len(found.findings) == 6
    line = towards_server(found)["recorded"]
    assert (line.standing, line.bound) == ("unchecked", None)


def test_canaries_of_another_draw_are_refused(ran: Ran, tmp_path: Path) -> None:
    copy = elsewhere(ran, "little", tmp_path / "run")
    with pytest.raises(TranscriptError, match="is about other canaries than the plan draws"):
        audit(changed(PLAN, seeds=(1,)), tmp_path / "out", recording=copy, resources=HERE)
    assert not (tmp_path / "out").exists()


def test_records_of_which_nobody_knows_who_held_them_are_not_asked_about(
    ran: Ran, tmp_path: Path
) -> None:
    copy = elsewhere(ran, "little", tmp_path / "run")
    data = PLAN.data.model_copy(update={"candidates": Candidates(5, 20)})
    with pytest.raises(PlanError, match="ask about canaries, which `overheard canaries` draws"):
        audit(changed(PLAN, data=data), tmp_path / "out", recording=copy, resources=HERE)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({client(9): (1,)}, "says what client/9 hold, but the run is of client/0, client/1"),
        ({SERVER: (1,)}, "says what server hold, but the run is of client/0, client/1"),
        ({client(1): (10**60,)}, "client/1 has records that the plan gives to nobody"),
        ({client(1): (180,)}, "client/1 has records that the plan gives to nobody"),
    ],
)
def test_members_that_cannot_be_are_refused(
    ran: Ran, tmp_path: Path, members: dict[object, tuple[int, ...]], words: str
) -> None:
    copy = elsewhere(ran, "little", tmp_path / "run")
    write_truth(copy, replace(read_truth(copy), members=members))
    with pytest.raises(TranscriptError, match=words):
        audit(PLAN, tmp_path / "out", recording=copy, resources=HERE)


def told_of(ran: Ran, members: dict[Party, tuple[int, ...]], to: Path) -> Path:
    """The run as if it were recorded elsewhere, with these records in its clients' hands."""
    copy = elsewhere(ran, "little", to)
    write_truth(copy, replace(read_truth(copy), members=members))
    return copy


def test_canaries_in_other_hands_than_the_die_gave_them_to_are_refused(
    ran: Ran, tmp_path: Path
) -> None:
    first, second, third = (read_truth(ran.folder).members[client(n)] for n in range(3))
    nobodys = min({*range(180)} - {*first, *second, *third})
    for number, members in enumerate(
        (
            {client(0): first, client(1): first},
            {client(0): first[:3], client(1): first[3:]},
            {client(0): first[1:]},
            {client(0): ()},
            {client(0): (*first, *second)},
            {client(0): first, client(1): (*second, nobodys)},
            {client(2): (nobodys,)},
        )
    ):
        copy = told_of(ran, members, tmp_path / f"run {number}")
        with pytest.raises(TranscriptError, match="has records that the plan gives to nobody"):
            audit(PLAN, tmp_path / "out", recording=copy, resources=HERE)
    # As many canaries, the same ones, dealt by another die.
    other = PLAN.data.model_copy(update={"candidates": Candidates(50, 30, "mislabelled")})
    copy = elsewhere(ran, "little", tmp_path / "run")
    with pytest.raises(TranscriptError, match="has records that the plan gives to nobody"):
        audit(changed(PLAN, data=other), tmp_path / "out", recording=copy, resources=HERE)
    assert not (tmp_path / "out").exists()


def test_clients_may_have_other_names_and_leave_canaries_out(ran: Ran, tmp_path: Path) -> None:
    first, _, third = (read_truth(ran.folder).members[client(n)] for n in range(3))
    members = {client(0): third, client(1): first}
    copy = told_of(ran, members, tmp_path / "run")
    found = audit(PLAN, tmp_path / "out", recording=copy, resources=HERE)
    assert {one.target for one in found.findings if one.is_checked} == {client(0), client(1)}


def test_a_simulated_run_that_is_audited_again_gives_the_same_claims_of_its_canaries(
    ran: Ran, tmp_path: Path
) -> None:
    found = audit(PLAN, tmp_path / "out", recording=ran.runs.run("little", 0), resources=HERE)
    bound = towards_server(found)["recorded"].bound
    assert bound is not None
    assert bound == towards_server(ran.found)["little"].bound
    claims = [
        [one.claimed for one in told.findings if one.cell.arm in ("recorded", "little")]
        for told in (found, ran.found)
    ]
    assert claims[0] == claims[1]


def test_what_a_truth_says_of_records_that_no_plan_asks_about_is_passed_over(
    recording: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(recording, tmp_path / "run")
    told = json.loads(truth_path(copy).read_text()) | {"members": {"client/0": [5]}}
    truth_path(copy).write_text(json.dumps(told))
    assert audit(TINY, tmp_path / "out", recording=copy, resources=HERE).findings
