"""Draws of some seeds need more examples of a label than there are: none is refused late."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from overheard.algorithms.scaffold import Scaffold
from overheard.auditing import audited_run, inputs
from overheard.auditing.audited_run import check_draws, simulate_runs
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import load_inputs, partitions_of_seed
from overheard.auditing.program import resolve_plan
from overheard.auditing.run_kinds import run_kinds
from overheard.core.compute_settings import MemoryTensorCache
from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.split import Split
from overheard.core.task import Task
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.partition.schedule import DataShift
from overheard.data.splits.iid import Iid
from overheard.data.splits.quantity import Quantity
from overheard.defenses.dp_sgd import DpSgd
from overheard.defenses.secure_aggregation import SecureAggregation
from overheard.learning.models.custom import Own
from overheard.learning.models.logistic import Logistic
from overheard.planning.plan_check import check_plan
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.plans.registries import SPLITS
from overheard.plans.virtual_plan import RecipePlan, VirtualPlan
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.label_shares.attacks.whispers import Whispers
from tests.auditing.conftest import HERE, audit_here
from tests.auditing.shift_attack import Pull
from tests.auditing.user_plans import IDENTITY_THREAT, write_table

CHANGES: dict[str, dict[str, Any]] = {
    "none": {},
    "refreshed": {"refresh_every": 1},
    "refreshed exactly": {"refresh_every": 1, "exchanges": "exact"},
    "weights": {"shifts": (DataShift(1, 1, weights=(6, 1, 1, 1)),), "refresh_every": 2},
    "no label left": {"shifts": (DataShift(1, 1, weights=(1, 1, 0, 0)),)},
    "shares": {"shifts": (DataShift(1, 1, shares=(0.7, 0.1, 0.1, 0.1)),)},
    "drift": {"shifts": (DataShift(1, 1, shares=(0.7, 0.1, 0.1, 0.1), over=2),)},
    "distorted": {"shifts": (DataShift(1, 1, distortion=0.5),), "refresh_every": 2},
    "new user": {"shifts": (DataShift(1, 1, new_user=True),)},
    "records": {"candidates": CandidateSettings(members=5, outsiders=100)},
    "canaries": {"candidates": CandidateSettings(20, 60, "mislabelled")},
    "people": {"people": KnownUserSettings(unseen=1, holdout=3), "refresh_every": 1},
}
"""What is drawn beside the split; some seeds then need more than the table has."""


def plan_of(folder: Path, split: Split, change: str, seeds: int, **data: Any) -> Plan:
    """A plan that needs nearly all of a table of 320 rows, eight users and four labels."""
    settings = {
        "source": write_table(folder),
        "split": split,
        "clients": 4,
        "examples": (4, 50),
        "auxiliary_per_class": 5,
        **CHANGES[change],
        **data,
    }
    asked = ThreatPlan(attacks=(MeanSoftmax(), Pull()), by_round=False)
    return Plan(
        seeds=tuple(range(seeds)),
        data=DataPlan(**settings),
        training=TrainingPlan(model=Logistic(), rounds=4, rate=0.1, batch=10),
        arms=(ArmPlan(name="open"),),
        threats=(IDENTITY_THREAT if change == "people" else asked,),
    )


def all_plans(folder: Path, seeds: int) -> Iterator[Plan]:
    """Yield a plan with each split and each change that fits it."""
    for name, kind in SPLITS.plugins().items():
        shares = {"compositions": ((0.4, 0.3, 0.2, 0.1),) * 4} if name == "shares" else {}
        for change in CHANGES:
            try:
                yield plan_of(folder, kind(**shares), change, seeds)
            except ValueError:
                assert change == "people", change  # it needs a split by users


class Training(Exception):  # noqa: N818 - no error: it stops a run where training begins
    """All data are drawn, and the training would begin."""


@pytest.mark.slow
def test_whatever_is_not_refused_at_the_beginning_comes_to_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def begin(*args: object, **settings: object) -> None:
        raise Training

    draw, outcomes = inputs.draw_partition, list[bool]()
    monkeypatch.setattr(inputs, "MAX_DRAWS", 2)
    monkeypatch.setattr(audited_run, "run_federations", begin)
    for number, plan in enumerate(all_plans(tmp_path, seeds=1)):
        audit_inputs = load_inputs(plan, HERE, MemoryTensorCache())
        whole = resolve_plan(plan, audit_inputs.data_digests())
        for seed in plan.seeds:
            runs = tuple(run for run in whole.runs if run.seed == seed)
            program = replace(whole, runs=runs)
            monkeypatch.setattr(inputs, "draw_partition", draw)
            try:
                check_draws(program, audit_inputs)
            except PlanError:
                outcomes.append(False)
                continue
            monkeypatch.setattr(inputs, "draw_partition", None)
            home = AuditFolder(tmp_path / f"{number}-{seed}")
            with pytest.raises(Training):
                next(simulate_runs(program, audit_inputs, home, lambda *_: None))
            outcomes.append(True)
    assert outcomes.count(True) > 30
    assert outcomes.count(False) > 10


@pytest.mark.nightly
def test_every_seed_that_is_not_refused_at_the_beginning_is_audited(tmp_path: Path):
    ran = 0
    for number, plan in enumerate(all_plans(tmp_path, seeds=5)):
        audit_inputs, fitting = load_inputs(plan, HERE, MemoryTensorCache()), list[int]()
        program = resolve_plan(plan, audit_inputs.data_digests())
        for seed in plan.seeds:
            runs = tuple(run for run in program.runs if run.seed == seed)
            try:
                check_draws(replace(program, runs=runs), audit_inputs)
            except PlanError:
                continue
            fitting.append(seed)
        if fitting:
            found = audit_here(
                plan.model_copy(update={"seeds": tuple(fitting)}), tmp_path / str(number)
            )
            ran += len({run.seed for run in found.arms})
    assert ran > 130


def test_the_run_and_its_controls_are_drawn_again_together(tmp_path: Path):
    plan = plan_of(tmp_path, Quantity(2), "weights", 20)
    dataset, again = load_inputs(plan, HERE, MemoryTensorCache()).dataset, 0
    for seed in plan.seeds:
        try:
            data_seed, drawn = partitions_of_seed(plan, dataset, seed)
        except PlanError:
            continue
        planned, *controls = (drawn[kind] for kind in run_kinds(plan))
        again += data_seed != Seed(seed).child("data")
        for control in controls:
            assert all(map(torch.equal, planned.rows[0], control.rows[0]))
    assert again > 3


TIGHT = {"clients": 4, "examples": (26, 30)}
"""Sizes of which no draw of seed 0 fits, the first of seed 17, and a later one of 1."""


def test_a_seed_that_runs_short_is_refused_before_anything_trains(tmp_path: Path):
    plan = plan_of(tmp_path, Iid(balanced=False), "weights", 1, **TIGHT)
    plan = plan.model_copy(update={"seeds": (17, 0)})
    message = "seed 0: in 20 draws of the data, .* with label 'a' are needed, but .* are left"
    with pytest.raises(PlanError, match=message):
        audit_here(plan, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(PlanError, match=message):
        check_plan(plan, HERE, None, with_estimate=False)


@pytest.mark.slow
def test_a_seed_that_is_drawn_again_is_audited_with_its_controls(tmp_path: Path):
    plan = plan_of(tmp_path, Iid(balanced=False), "weights", 1, **TIGHT)
    audit_inputs = load_inputs(plan, HERE, MemoryTensorCache())
    assert audit_inputs.data_seed(17) == Seed(17).child("data")
    assert audit_inputs.data_seed(1) != Seed(1).child("data")
    found = audit_here(plan.model_copy(update={"seeds": (17, 1)}), tmp_path / "out")
    assert sorted({run.seed for run in found.arms}) == [1, 17]
    assert {one.cell.seed for one in found.findings if one.cell.is_control} == {1, 17}


def normalised(task: Task) -> nn.Module:
    return nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, task.classes))


def test_a_client_with_a_single_example_is_refused_before_anything_trains(tmp_path: Path):
    plan = plan_of(tmp_path, Iid(balanced=False), "none", 20, examples=(1, 20))
    training = {"model": Own(f"{__name__}:normalised"), "rounds": 1, "rate": 0.1, "batch": 10}
    plan = Plan.model_validate({**dict(plan), "training": training})
    audit_inputs = load_inputs(plan, HERE, MemoryTensorCache())
    sizes = [min(map(len, audit_inputs.partition(seed).rows[0])) for seed in plan.seeds]
    later = [seed for seed in plan.seeds if sizes[seed] == 1]
    assert sizes[0] > 1
    assert later
    with pytest.raises(PlanError, match="batches of one example"):
        audit_here(plan, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_dp_sgd_refuses_a_batch_norm_before_another_arm_trains(tmp_path: Path):
    plan = plan_of(tmp_path, Iid(balanced=False), "none", 1)
    training = {"model": Own(f"{__name__}:normalised"), "rounds": 1, "rate": 0.1, "batch": 10}
    arms = (*plan.arms, ArmPlan(name="private", defenses=(DpSgd(),)))
    plan = Plan.model_validate({**dict(plan), "training": training, "arms": arms})
    with pytest.raises(PlanError, match=r"nn\.GroupNorm"):
        audit_here(plan, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_arm_that_cannot_be_simulated_is_refused_before_another_trains(tmp_path: Path):
    plan = plan_of(tmp_path, Iid(balanced=False), "none", 1)
    masked = ArmPlan(name="masked", algorithm=Scaffold(), defenses=(SecureAggregation(),))
    plan = plan.model_copy(update={"arms": (*plan.arms, masked)})
    with pytest.raises(PlanError, match=r"training\.algorithm"):
        audit_here(plan, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("virtual", "reason"),
    [
        (VirtualPlan(splits=(Quantity(4),)), "another split or size: quantity: 4 classes"),
        (
            VirtualPlan(recipes=(RecipePlan(rate=1e38, epochs=9, momentum=0.9),)),
            "diverged in round 0",
        ),
    ],
)
def test_what_virtual_clients_cannot_do_refuses_the_attack_alone(
    tmp_path: Path, virtual: VirtualPlan, reason: str
):
    plan = plan_of(tmp_path, Iid(balanced=False), "none", 1, examples=(2, 4))
    threat = ThreatPlan(
        attacks=(Whispers(), MeanSoftmax()),
        by_round=False,
        knows=("model", "auxiliary"),
        virtual=virtual.model_copy(
            update={"clients": 4, "recipes": virtual.recipes or RECIPES}
        ),
    )
    found = audit_here(plan.model_copy(update={"threats": (threat,)}), tmp_path / "out")
    assert {one.cell.part for one in found.findings} == {"mean_softmax"}
    (refused,) = {why for one in found.refusals for why in one.missing}
    assert reason in refused


RECIPES = (RecipePlan(rate=0.1),)
