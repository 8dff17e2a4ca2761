"""The audit loop: claims are scored, impossible ones are refused, and no result is lost."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, final

import pytest
import torch

from overheard.archive.layout import messages_path, transcript_folder
from overheard.archive.run_time import read_run_time
from overheard.auditing import inputs
from overheard.auditing.attack_runner import NO_OTHER_UPDATE
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import partitions_of_seed
from overheard.auditing.progress import ProgressStep
from overheard.auditing.run_kinds import RunKind
from overheard.auditing.threat_results import with_verdicts
from overheard.core.attack import Attack, TrainingSource
from overheard.core.claims import Interval, Timeline
from overheard.core.errors import NeedsError, OutputError, PlanError
from overheard.core.knowledge import Knowledge
from overheard.core.needs import AUXILIARY, RECIPE, UPDATES
from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.core.seeds import Seed
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.true_facts.shifts import Shifts
from overheard.core.view import View
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import DataPartition
from overheard.data.partition.schedule import DataShift
from overheard.data.splits.iid import Iid
from overheard.disk.folder_lock import LOCK_FILE, lock_folder
from overheard.findings.audit import Audit
from overheard.findings.finding import Finding, Refusal
from overheard.findings.planned_sizes import REDRAWN_PARTITIONS
from overheard.findings.traffic import Traffic
from overheard.plans.plan import Plan, ThreatPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.shift.claim import Shift
from tests.archive.stored_truth import read_truth
from tests.auditing.conftest import FinishedAudit, audit_here
from tests.auditing.plans import (
    DATA,
    NO_DEFENSE,
    SECURE_AGGREGATION,
    SERVER_THREAT,
    SMALL,
    TINY,
    TRAINING,
    replace_tables,
)
from tests.auditing.shift_attack import Pull

pytestmark = pytest.mark.slow

CLIENTS = (client(0), client(1), client(2))


def where(cells: Sequence[Any], **values: Any) -> list[Any]:
    """Return the findings or refusals whose cells have these values."""
    return [
        one
        for one in cells
        if all(getattr(one.cell, name) == value for name, value in values.items())
    ]


def findings_of(found: Audit, **values: Any) -> list[Finding]:
    return where(found.findings, **values)


def refusals_of(found: Audit, **values: Any) -> list[Refusal]:
    return where(found.refusals, **values)


def stamps(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("attack", ["bias_inversion", "mean_softmax"])
@pytest.mark.parametrize("rounds", [(0, 1), (0,), (1,)])
def test_every_attack_makes_claims_about_every_target_over_all_and_single_rounds(
    small: FinishedAudit, seed: int, attack: str, rounds: tuple[int, ...]
):
    where = {"arm": "no defense", "observers": (SERVER,)}
    found = findings_of(small.audit, seed=seed, attack=attack, rounds=rounds, **where)
    assert tuple(finding.target for finding in found) == CLIENTS


def test_an_audit_holds_its_verdicts_by_arm(small: FinishedAudit):
    arms = small.audit.arm_results
    assert {arm.name for arm in arms} == {run.arm for run in small.audit.arms}
    judged = {one.observers: one.judgement for arm in arms for one in arm.threat_results}
    cells = {one.cell for one in (*small.audit.findings, *small.audit.refusals)}
    assert judged.keys() == {cell.observers for cell in cells}
    assert judged[SERVER,].p_value is not None
    assert with_verdicts(small.audit).arm_results == arms


def test_examples_are_partitioned_once_for_all_arms_and_threats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    seeds = list[int]()

    def counted(
        plan: Plan, dataset: Dataset, seed: int, kind: RunKind, **options: bool
    ) -> tuple[Seed, Mapping[RunKind, DataPartition]]:
        seeds.append(seed)
        return partitions_of_seed(plan, dataset, seed, kind, **options)

    monkeypatch.setattr(inputs, "partitions_of_seed", counted)
    audit_here(SMALL, tmp_path)  # two seeds, two arms, three threats
    assert sorted(seeds) == [0, 1]


def test_a_finding_compares_claimed_and_true_shares_and_has_guesses(small: FinishedAudit):
    for finding in small.audit.findings:
        assert len(finding.claimed.numbers) == len(finding.true_numbers) == 10
        assert sum(finding.true_numbers) == pytest.approx(1)
        first = finding.scores[0]
        gaps = [
            abs(a - b)
            for a, b in zip(finding.claimed.numbers, finding.true_numbers, strict=True)
        ]
        assert first.name == "l1"
        assert first.value == pytest.approx(sum(gaps), abs=1e-5)
        assert set(first.uninformed) == {"uniform", "auxiliary prior"}


def test_claims_over_all_rounds_are_compared_with_redrawn_partitions(small: FinishedAudit):
    for finding in small.audit.findings:
        is_whole = len(finding.cell.rounds) == 2
        assert len(finding.fits) == (1 + REDRAWN_PARTITIONS if is_whole else 0)
        assert set(finding.sent_rounds) <= {0, 1}
    # Whatever an attack claims, it is compared with the same partitions.
    fits = [finding.fits for finding in small.audit.findings if finding.fits]
    assert len(set(fits)) > 1
    assert all(len(set(one)) > REDRAWN_PARTITIONS / 2 for one in fits)


def test_secure_aggregation_refuses_claims_about_single_clients(small: FinishedAudit):
    masked = {"arm": "secure aggregation", "observers": (SERVER,)}
    assert {finding.target for finding in findings_of(small.audit, **masked)} == {COHORT}
    refused = refusals_of(small.audit, **masked)
    assert {refusal.target for refusal in refused} == set(CLIENTS)
    assert {refusal.missing for refusal in refused} == {(UPDATES.description,)}


def test_the_cohort_is_a_target_with_and_without_secure_aggregation(small: FinishedAudit):
    about = "bias_inversion, about the cohort"
    for arm in ("no defense", "secure aggregation"):
        found = findings_of(small.audit, arm=arm, attack=about)
        assert [(one.target, one.cell.rounds) for one in found] == [(COHORT, (0, 1))] * 2
    # The runs differ only in their masks, so the cohort's true label shares are the same.
    first, second = (findings_of(small.audit, arm=arm, attack=about, seed=0)[0] for arm in
                     ("no defense", "secure aggregation"))  # fmt: skip
    assert first.true_numbers == second.true_numbers


def test_an_observing_client_cannot_read_updates_of_others(small: FinishedAudit):
    assert findings_of(small.audit, observers=(client(0),)) == []
    refused = refusals_of(small.audit, observers=(client(0),), arm="no defense", seed=0)
    assert [refusal.target for refusal in refused] == [client(1), client(2)]
    assert {refusal.missing for refusal in refused} == {(UPDATES.description,)}


RIVAL = ThreatPlan(observers=("client/0",), attacks=(BiasInversion(),), about="cohort")
SECRETLY_TWO = replace_tables(
    TINY,
    data=DATA.model_copy(update={"clients": 2, "examples": (40, 40)}),
    training=TRAINING.model_copy(update={"rounds": 3, "rate": 0.05}),
    arms=(NO_DEFENSE, SECURE_AGGREGATION),
    threats=(
        RIVAL,
        ThreatPlan(attacks=(BiasInversion(),)),
        ThreatPlan(
            attacks=(BiasInversion(),), observers=("server", "client/0"), about="cohort"
        ),
    ),
)
"""Two clients of equal size: subtracting one from the mean gives the other's update."""


def test_an_observing_client_infers_the_rest_as_well_as_the_server(tmp_path: Path):
    found = audit_here(SECRETLY_TWO, tmp_path / "out")
    rest = findings_of(
        found, arm="no defense", attack="bias_inversion, about the other clients"
    )
    server = [
        finding
        for finding in findings_of(found, arm="no defense", attack="bias_inversion")
        if finding.target == client(1)
    ]
    rival = [finding for finding in rest if finding.cell.observers == (client(0),)]
    assert [finding.cell.rounds for finding in rival] == [(0, 1, 2), (0,), (1,), (2,)]
    for one, other in zip(rival, server, strict=True):
        assert one.target == COHORT
        assert one.cell.rounds == other.cell.rounds
        # Truth and claim are those of the other client. The sizes differ, since clients send
        # them in plaintext to the server only.
        assert one.true_numbers == other.true_numbers
        assert one.scores[0].gain is not None
        assert one.scores[0].gain > 0.2


def test_each_client_in_turn_claims_about_the_others(tmp_path: Path):
    each = RIVAL.model_copy(update={"observers": ("client/*",)})
    steps = list[ProgressStep]()
    found = audit_here(replace_tables(TINY, threats=(each,)), tmp_path, on_step=steps.append)
    whole = [one for one in found.findings if len(one.cell.rounds) == 2]
    assert [one.cell.observers for one in whole] == [(client(n),) for n in range(3)]
    assert len({one.claimed.numbers for one in whole}) == 3
    # 2 rounds, and 3 cells for each of 3 clients
    assert (steps[-1].done, steps[-1].total) == (11, 11)
    assert 'observers = [\n    "client/*",\n]' in found.plan


def test_observers_are_subtracted_from_a_secure_aggregate(tmp_path: Path):
    found = audit_here(SECRETLY_TWO, tmp_path / "out")
    pair = (SERVER, client(0))
    open_, masked = (
        findings_of(found, arm=arm, observers=pair)
        for arm in ("no defense", "secure aggregation")
    )
    for one, other in zip(open_, masked, strict=True):
        assert one.true_numbers == other.true_numbers
        assert one.claimed.numbers == pytest.approx(other.claimed.numbers, abs=1e-3)


def test_refuses_rounds_in_which_only_the_observer_sent_an_update(tmp_path: Path):
    # One of three clients per round: rounds with an update of the observer only say nothing
    # about the others, and there is no ground truth to score a claim.
    lonely = replace_tables(
        TINY,
        training=TRAINING.model_copy(update={"participation": 0.34, "rounds": 1}),
        seeds=tuple(range(6)),
        threats=(RIVAL,),
    )
    found = audit_here(lonely, tmp_path / "out")
    alone = {one.cell.seed for one in found.refusals}
    assert {refusal.missing for refusal in found.refusals} == {(NO_OTHER_UPDATE,)}
    assert 0 < len(alone) < 6
    assert {finding.cell.seed for finding in found.findings} == set(range(6)) - alone


@final
@dataclass(frozen=True, slots=True)
class Patient(Attack[LabelShares]):
    """Reports its progress and caches its results."""

    name: ClassVar[str] = "patient"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset({UPDATES})
    source: ClassVar[str] = "ours"

    def training_source(self) -> TrainingSource:
        return "virtual clients"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        means, key = knowledge.compute, f"{len(view.rounds()):08x}"
        kept = means.cache.load(key)
        for number in range(2 if kept is None else 0):
            means.on_progress("virtual clients", number + 1, means.virtual_clients)
        means.cache.save(key, {"w": torch.ones(1)})
        bounds = Interval((0.0,) * 10, (0.5,) * 10)
        shares = torch.full((10,), 0.1)
        return {target: LabelShares(shares, bounds=bounds) for target in targets}


PATIENT = ThreatPlan(attacks=(Patient(),), virtual=VirtualPlan(clients=190))


def test_progress_within_a_work_item_does_not_change_the_count(tmp_path: Path):
    steps = list[ProgressStep]()
    plan = replace_tables(TINY, threats=(PATIENT,))
    audit_here(plan, tmp_path / "out", on_step=steps.append)
    within = [step for step in steps if "of 190" in step.description]
    name = "no defense, seed 0: patient, with 190 virtual clients"
    # Two rounds are trained; then both are attacked together, then the first alone. The second
    # alone uses the cached result of the first.
    assert within == [
        ProgressStep(f"{name}: virtual clients 1 of 190", 2, 5),
        ProgressStep(f"{name}: virtual clients 2 of 190", 2, 5),
        ProgressStep(f"{name}, round 0: virtual clients 1 of 190", 3, 5),
        ProgressStep(f"{name}, round 0: virtual clients 2 of 190", 3, 5),
    ]
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert len(list((tmp_path / "out" / "bank").iterdir())) == 2


def test_findings_contain_the_bounds_of_claims(tmp_path: Path):
    found = audit_here(replace_tables(TINY, threats=(PATIENT,)), tmp_path / "out")
    first = found.findings[0]
    assert (first.claimed.low, first.claimed.high) == ((0.0,) * 10, (0.5,) * 10)
    inside = sum(share <= 0.5 for share in first.true_numbers) / 10
    assert {score.name: score.value for score in first.scores}["coverage"] == inside


def test_refuses_the_folder_of_a_plan_with_other_virtual_clients(
    recording: Path, tmp_path: Path
):
    plans = [
        replace_tables(
            TINY, threats=(PATIENT.model_copy(update={"virtual": VirtualPlan(clients=n)}),)
        )
        for n in (190, 191)
    ]
    for recorded in (None, recording):
        home = tmp_path / f"out-{recorded is None}"
        audit_here(plans[0], home, recording=recorded)
        with pytest.raises(OutputError, match=r"another plan .*clients = 19"):
            audit_here(plans[1], home, recording=recorded)


def test_refusals_name_the_knowledge_that_attackers_lack(tmp_path: Path):
    threat = ThreatPlan(
        attacks=(MeanSoftmax(), BiasInversion()), knows=("model",), by_round=False
    )
    found = audit_here(replace_tables(TINY, threats=(threat,)), tmp_path / "out")
    refused = refusals_of(found, attack="bias_inversion, without auxiliary and recipe")
    assert [refusal.target for refusal in refused] == list(CLIENTS)
    assert refused[0].missing == (AUXILIARY.description, RECIPE.description)


def test_records_accuracy_updates_and_defenses_of_each_run(small: FinishedAudit):
    assert [(run.arm, run.seed) for run in small.audit.arms] == [
        ("no defense", 0),
        ("no defense", 1),
        ("secure aggregation", 0),
        ("secure aggregation", 1),
    ]
    assert not any(run.is_control for run in small.audit.arms)
    for run in small.audit.arms:
        assert sorted(run.accuracy) == [0, 1, 2]  # two rounds and the final model
        assert (run.answers, run.missing) == (6, 0)  # three clients, two rounds
    assert small.audit.arms[0].defenses == ()
    (record,) = small.audit.arms[2].defenses
    assert record.settings == "SecureAggregation()"
    assert record.enforced_at == "protocol"
    assert "2 rounds" in record.promise


def test_records_traffic_and_time_of_each_run(small: FinishedAudit):
    # 64 pixels x 10 labels and 10 biases: 650 numbers, 2600 bytes. Three clients answer in two
    # rounds; two broadcasts and the closing one go to all three. Masks change nothing of that.
    due = Traffic(up=6 * 2600, down=9 * 2600, answers=6, heard=9)
    home = AuditFolder(small.folder)
    for one in small.audit.arms:
        assert one.traffic == due
        assert one.seconds is not None
        assert one.seconds.wall > 0
        assert one.seconds == read_run_time(home.run_path(one.arm, one.seed))
    # The two runs of an arm train side by side and share the time.
    first, second, *_ = small.audit.arms
    assert first.seconds == second.seconds


def test_describes_what_was_audited(small: FinishedAudit):
    assert small.audit.title == "Three clients"
    assert small.audit.class_names == tuple("0123456789")
    assert small.audit.subject == (
        "3 clients with 20 to 30 examples each of digits, partitioned by dirichlet; model "
        "logistic; 2 rounds of FedAvg, 1 local epoch of sgd at learning rate 0.1 with batches "
        "of 10"
    )
    assert small.audit.plan == SMALL.toml()
    assert {"overheard", "torch", "python"} <= set(small.audit.versions)


def test_progress_increases_up_to_its_total(small: FinishedAudit):
    # Two seeds x two arms x (2 rounds + 2 attacks of 3 cells + 1 + 1 cells) = 4 * 10
    done = [step.done for step in small.steps]
    assert {step.total for step in small.steps} == {40}
    assert done == sorted(done)
    assert done[-1] == 40
    # A round of the two runs of an arm, which train together, is reported as two.
    trained = {1, 3, 21, 23}
    assert set(range(1, 41)) - trained <= set(done)


def test_a_second_audit_reuses_all_results(tiny: FinishedAudit):
    before, steps = stamps(tiny.folder), list[ProgressStep]()
    again = audit_here(TINY, tiny.folder, on_step=steps.append)
    assert again == tiny.audit
    assert stamps(tiny.folder) == before
    assert (steps[-1].done, steps[-1].total) == (8, 8)  # 2 rounds + 2 attacks of 3 cells


@pytest.mark.slow
def test_recomputes_a_removed_cell_identically(tiny: FinishedAudit, tmp_path: Path):
    folder = shutil.copytree(tiny.folder, tmp_path / "copy")
    before = {name: content for name, (_, content) in stamps(folder).items()}
    for cell in (folder / "cells").iterdir():
        cell.unlink()
    assert audit_here(TINY, folder) == tiny.audit
    assert {name: content for name, (_, content) in stamps(folder).items()} == before


@pytest.mark.parametrize("stop", [1, 2, 4, 7])
def test_an_interrupted_audit_resumes_to_the_same_findings(
    tiny: FinishedAudit, tmp_path: Path, stop: int
):
    def pull_the_plug(step: ProgressStep) -> None:
        if step.done == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit_here(TINY, tmp_path / "out", on_step=pull_the_plug)
    home = AuditFolder(tmp_path / "out").run_path("no defense", 0)
    before = read_run_time(home)
    assert audit_here(TINY, tmp_path / "out") == tiny.audit
    broken, whole = stamps(tmp_path / "out"), stamps(tiny.folder)
    clocks = {"runs/no_defense-seed0/seconds.json"}
    assert broken.keys() == whole.keys() > clocks
    for name in broken.keys() - clocks:
        assert broken[name][1] == whole[name][1]
    # No two runs take the same time; what it took before the stop is a part of it.
    after = read_run_time(home)
    assert before is not None
    assert after is not None
    trained_before = stop >= 2
    assert after == before if trained_before else 0 < before.wall < after.wall


@pytest.mark.parametrize(
    ("more", "factor"),
    [
        (TINY.model_copy(update={"seeds": (*TINY.seeds, 7)}), 2),
        # All claims about single clients are refused under secure aggregation.
        (replace_tables(TINY, arms=(NO_DEFENSE, SECURE_AGGREGATION)), 1),
    ],
    ids=["seeds", "arms"],
)
def test_an_audit_with_more_runs_keeps_those_there_and_equals_a_fresh_one(
    tiny: FinishedAudit, tmp_path: Path, more: Plan, factor: int
):
    audit_here(TINY, tmp_path / "grown")
    before = stamps(tmp_path / "grown")
    grown = audit_here(more, tmp_path / "grown")
    after = stamps(tmp_path / "grown")
    # The time of a run counts the time to open it, too.
    for name in ("plan.toml", "runs/no_defense-seed0/seconds.json"):
        del before[name]
    assert {name: after[name] for name in before} == before
    assert len(grown.arms) > len(tiny.audit.arms)
    assert len(grown.findings) == factor * len(tiny.audit.findings)
    assert grown == audit_here(more, tmp_path / "fresh")


def test_refuses_a_folder_in_which_another_audit_works(tmp_path: Path):
    with lock_folder(tmp_path / "out"):
        with pytest.raises(OutputError, match="another process works here since"):
            audit_here(TINY, tmp_path / "out")
        assert [path.name for path in (tmp_path / "out").iterdir()] == [LOCK_FILE]


@final
@dataclass(frozen=True, slots=True)
class Fussy(Attack[LabelShares]):
    """Raises a needs error while it runs."""

    name: ClassVar[str] = "fussy"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset({UPDATES})
    source: ClassVar[str] = "ours"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        raise NeedsError("fussy needs a model with three layers")


def test_refuses_an_attack_that_raises_a_needs_error(tmp_path: Path):
    threat = ThreatPlan(attacks=(Fussy(),))
    # A plan accepts attack objects that are not defined in a plugin file.
    found = audit_here(replace_tables(TINY, threats=(threat,)), tmp_path / "out")
    assert found.findings == ()
    assert [(one.target, one.missing) for one in found.refusals] == [
        (who, ("fussy needs a model with three layers",)) for who in CLIENTS
    ]
    assert {one.cell.rounds for one in found.refusals} == {(0, 1)}


def test_refuses_every_claim_if_no_client_sends_an_update(tmp_path: Path):
    silent = TRAINING.model_copy(update={"failure_rate": 0.999999})
    found = audit_here(replace_tables(TINY, training=silent), tmp_path / "out")
    assert found.findings == ()
    assert {one.missing for one in found.refusals} == {(UPDATES.description,)}
    assert (found.arms[0].answers, found.arms[0].missing) == (0, 6)


def test_makes_no_claim_about_a_client_in_a_round_without_its_update(tmp_path: Path):
    # Two of three clients are sampled per round; there is a claim about each of these.
    some = TRAINING.model_copy(update={"participation": 0.67, "rounds": 3})
    steps = list[ProgressStep]()
    found = audit_here(
        replace_tables(TINY, training=some), tmp_path / "out", on_step=steps.append
    )
    for number in range(3):
        assert len(findings_of(found, attack="bias_inversion", rounds=(number,))) == 2
    assert (steps[-1].done, steps[-1].total) == (11, 11)  # 3 + 2 * (1 + 3)


def test_a_run_of_one_round_is_attacked_once(tmp_path: Path):
    once = TRAINING.model_copy(update={"rounds": 1})
    steps = list[ProgressStep]()
    found = audit_here(replace_tables(TINY, training=once), tmp_path, on_step=steps.append)
    assert {finding.cell.rounds for finding in found.findings} == {(0,)}
    assert len(found.findings) == 6  # two attacks on three clients
    assert steps[-1].done == steps[-1].total


SHIFTING = replace_tables(
    TINY,
    seeds=(0, 1),
    data=DATA.model_copy(
        update={
            "split": Iid(),
            "examples": 30,
            "refresh_every": 1,
            "shifts": (DataShift(client=1, round=2, shares=(1.0, *(0.0,) * 9)),),
        }
    ),
    training=TRAINING.model_copy(update={"rounds": 4}),
    arms=(NO_DEFENSE, SECURE_AGGREGATION),
    threats=(
        ThreatPlan(attacks=(Pull(), MeanSoftmax())),
        ThreatPlan(observers=("client/1",), attacks=(Pull(),), by_round=False),
    ),
)
"""From round 2 of 4 on, one of three clients holds nothing but zeros."""


@pytest.fixture(scope="module")
def shifting(tmp_path_factory: pytest.TempPathFactory) -> FinishedAudit:
    folder, steps = tmp_path_factory.mktemp("audits") / "shifting", list[ProgressStep]()
    found = audit_here(SHIFTING, folder, on_step=steps.append)
    return FinishedAudit(found, folder, tuple(steps))


SUFFIXES = ("", "-control", "-control-exact-0")
"""The folders of a planned run, of its natural control and of its exact control."""


def test_shift_attacks_run_on_each_run_and_its_controls(shifting: FinishedAudit):
    findings = findings_of(shifting.audit, attack="pull", arm="no defense", seed=1)
    assert [(one.cell.is_control, one.cell.control, one.target) for one in findings] == [
        *((False, "", who) for who in CLIENTS),
        *((True, "natural", who) for who in CLIENTS),
        *((True, "exact", who) for who in CLIENTS),
    ]
    assert {one.cell.rounds for one in findings} == {(0, 1, 2, 3)}


def test_detects_a_shift_and_none_in_the_control(shifting: FinishedAudit):
    for finding in findings_of(shifting.audit, attack="pull", arm="no defense"):
        shifts = finding.target == client(1) and not finding.cell.is_control
        assert finding.claimed.timeline is not None
        assert finding.claimed.timeline.alarm == (2 if shifts else None)
        assert finding.true_since == (2 if shifts else None)


def test_other_attacks_skip_controls_and_attack_single_rounds(shifting: FinishedAudit):
    heard = findings_of(shifting.audit, attack="mean_softmax")
    assert not any(one.cell.is_control for one in heard)
    assert {one.cell.rounds for one in heard} == {(0, 1, 2, 3), (0,), (1,), (2,), (3,)}


def test_refusals_include_the_control(shifting: FinishedAudit):
    for where in ({"arm": "secure aggregation"}, {"observers": (client(1),)}):
        refused = refusals_of(shifting.audit, attack="pull", seed=0, **where)
        assert {one.cell.is_control for one in refused} == {False, True}
        assert {one.missing for one in refused} == {(UPDATES.description,)}


def test_the_control_is_a_separate_run_without_a_shift(shifting: FinishedAudit):
    runs = [(run.arm, run.seed, run.is_control, run.control) for run in shifting.audit.arms]
    assert runs == [
        (arm, seed, control != "", control)
        for arm in ("no defense", "secure aggregation")
        for seed in (0, 1)
        for control in ("", "natural", "exact")
    ]
    home = AuditFolder(shifting.folder)
    for seed in (0, 1):
        for suffix in SUFFIXES:
            truth = read_truth(home.run_path("no defense", seed, suffix))
            assert truth.facts.get(Shifts) == (None if suffix else Shifts({client(1): (2,)}))
            counts = truth.facts.need(LabelCounts)
            first, held = (counts.counts_of(client(1), (one,)).tolist() for one in (0, 2))
            assert (held == [30, *[0] * 9]) is not bool(suffix)
            # Only the exact control copies the label counts.
            assert (held == first) is (suffix == "-control-exact-0")


def test_a_run_and_its_control_are_identical_until_the_shift(shifting: FinishedAudit):
    home = AuditFolder(shifting.folder)
    for seed in (0, 1):
        planned, control, _ = (
            transcript_folder(home.run_path("no defense", seed, suffix)) for suffix in SUFFIXES
        )
        for number in range(4):
            one, other = (
                messages_path(folder, number).read_bytes() for folder in (planned, control)
            )
            # The stored messages include digests of their weights.
            assert (one == other) is (number < 2)


def test_progress_counts_the_controls(shifting: FinishedAudit):
    # Two seeds x two arms x (three runs of 4 rounds, and 1 + 5 + 1 cells beside twice 1 + 1).
    assert {step.total for step in shifting.steps} == {4 * (12 + 7 + 4)}
    done = [step.done for step in shifting.steps]
    assert done == sorted(done)
    assert done[-1] == 92
    assert any(
        step.description == "no defense, seed 1, exact control: pull" for step in shifting.steps
    )


def test_an_audit_with_controls_reuses_all_results(shifting: FinishedAudit, tmp_path: Path):
    before = stamps(shifting.folder)
    assert audit_here(SHIFTING, shifting.folder) == shifting.audit
    assert stamps(shifting.folder) == before


def test_attacks_get_the_same_seed_for_a_run_and_its_control(tmp_path: Path):
    seeds = list[Seed]()

    @final
    @dataclass(frozen=True, slots=True)
    class Drawing(Attack[Shift]):
        name: ClassVar[str] = "drawing"
        claim_type: ClassVar = Shift
        needs: ClassVar = frozenset({UPDATES})
        source: ClassVar[str] = "ours"

        def infer(
            self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
        ) -> Mapping[Party, Shift]:
            seeds.append(seed)
            return {target: Shift(Timeline()) for target in targets}

    plan = replace_tables(
        SHIFTING, arms=(NO_DEFENSE,), threats=(ThreatPlan(attacks=(Drawing(),)),)
    )
    audit_here(plan, tmp_path / "out")
    assert seeds[0] == seeds[1] == seeds[2] != seeds[3] == seeds[4] == seeds[5]


def test_there_is_no_control_without_a_shift_attack(tmp_path: Path):
    plan = replace_tables(SHIFTING, seeds=(0,), threats=(ThreatPlan(attacks=(MeanSoftmax(),)),))
    found = audit_here(plan, tmp_path / "out")
    assert not any(run.is_control for run in found.arms)
    assert [path.name for path in sorted((tmp_path / "out" / "runs").iterdir())] == [
        "no_defense-seed0",
        "secure_aggregation-seed0",
    ]


def with_data(**fields: object) -> Plan:
    return replace_tables(TINY, data=DATA.model_copy(update=fields))


STRANGER = ThreatPlan(observers=("sever",), attacks=(MeanSoftmax(),))


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (with_data(examples=2000), "clients want .* take fewer or smaller clients"),
        (
            with_data(auxiliary_per_class=999),
            "999 examples with label '0' are needed.*fewer auxiliary examples",
        ),
        (with_data(test=301), "301 is not in 1 to 300"),
        (with_data(shifts=(DataShift(client=0, round=1, shares=(0.5, 0.5)),)), "10 labels"),
        (
            replace_tables(TINY, threats=(SERVER_THREAT, STRANGER)),
            "threats.1.observers: sever is not a party of the run: choose from server, "
            "client/0, client/1, client/2",
        ),
    ],
    ids=["too many examples", "too much auxiliary", "too much test", "shares", "observer"],
)
def test_refuses_an_impossible_plan_before_it_writes(tmp_path: Path, plan: Plan, words: str):
    with pytest.raises(PlanError, match=words):
        audit_here(plan, tmp_path / "out")
    assert not (tmp_path / "out").exists()
