"""Membership."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.auditing.run_records import are_exchangeable, record_exchange
from overheard.auditing.summary import summarise
from overheard.core.attack import Attack
from overheard.core.examples import Examples
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.data.datasets.custom import Own
from overheard.data.datasets.digits import Digits
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.partition.data_partition import DataPartition
from overheard.data.reading.folder import data_folder
from overheard.data.splits.by_user import ByUser
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.iid import Iid
from overheard.defenses.noise import Noise
from overheard.findings.score_row import ScoreRow
from overheard.learning.model import Model
from overheard.learning.models.conv_net import ConvNet
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.text_bag import TextBag
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.questions.membership.attacks.lira import Lira, LiraPooled
from overheard.questions.membership.attacks.loss_membership import LossMembership
from overheard.questions.membership.attacks.shadow_membership import ShadowMembership

KINDS: dict[str, Model] = {
    "images": ConvNet(blocks=1, width=12),
    "table": Mlp(hidden=(24,)),
    "texts": TextBag(dim=24, hidden=24),
}


# Any: an attack answers a question of its own.
ATTACKS: tuple[Attack[Any], ...] = (
    Lira(models=8),
    LiraPooled(models=8),
    Lira(models=8, online=False),
    ShadowMembership(models=8, stumps=30),
    LossMembership(),
)


BY_HEART = {"rate": 0.3, "epochs": 6}


HARDLY = {"rate": 0.001, "epochs": 1}


HIDDEN = ArmPlan(name="noise", defenses=(Noise(0.1),))
"""Beside what clients learn at the smaller rate it is large."""


def told(
    kind: str, how: dict[str, float], arms: tuple[ArmPlan, ...], folder: Path
) -> list[ScoreRow]:
    """The area under the curve of each attack, of both rounds and of the last alone."""
    plan = Plan(
        seeds=(0, 1),
        data=DataPlan(
            source=Own(reference=f"tests.auditing.remembered:{kind}"),
            split=Iid(),
            clients=3,
            examples=40,
            auxiliary=80,
            candidates=CandidateSettings(members=40, outsiders=150),
        ),
        training=TrainingPlan(model=KINDS[kind], rounds=2, batch=10, **how),
        arms=arms,
        threats=(ThreatPlan(attacks=ATTACKS, by_round=1),),
    )
    done = audit(plan, folder, resources=Resources(workers=1))
    assert not done.refusals
    rows = summarise(done.findings, Seed(0))
    return [row for row in rows if row.score == "membership_auc"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_attack_detects_members_of_an_overfitted_model(kind: str, tmp_path: Path) -> None:
    rows = told(kind, BY_HEART, (), tmp_path)
    assert [row.rounds for row in rows] == [(0, 1), (1,)] * len(ATTACKS)
    for row in rows:
        assert row.value.low is not None
        assert row.value.low > 0.5, row.attack


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        "table",
        pytest.param("images", marks=pytest.mark.nightly),
        pytest.param("texts", marks=pytest.mark.nightly),
    ],
)
def test_hardly_trained_models_hide_members_from_the_loss_and_noise_from_all_attacks(
    kind: str, tmp_path: Path
) -> None:
    rows = told(kind, HARDLY, (HIDDEN,), tmp_path)
    bare = {
        row.attack: row.value for row in rows if row.arm != HIDDEN.name and row.rounds == (0, 1)
    }
    # 240 members and 300 non-members: one standard error is 0.025.
    assert abs(bare["loss_membership"].mean - 0.5) < 0.075
    # A small rate makes all that shadow models differ by as small: who compares is not misled.
    low = bare["lira(models=8, online=False)"].low
    assert low is not None
    assert low > 0.5
    for row in rows:
        if row.arm == HIDDEN.name:
            assert abs(row.value.mean - 0.5) < 0.075, row.attack


DATASET = Digits().load(data_folder(None))


def partition_of(members: list[int], others: list[int]) -> DataPartition:
    """Return a partition with candidate records of these labels; one client has `members`."""
    labels = torch.tensor([*members, *others])
    records = Examples(torch.zeros(len(labels), 1), labels)
    rows = {client(0): tuple(range(len(members)))}
    return DataPartition(records, (), records, records, {}, candidates=records, members=rows)


def test_randomly_separated_records_are_exchangeable() -> None:
    assert are_exchangeable(Iid(), DATASET, partition_of([0, 1] * 20, [0, 1] * 100))


def test_a_split_with_different_clients_is_not_exchangeable() -> None:
    assert not are_exchangeable(
        Dirichlet(alpha=0.5), DATASET, partition_of([0, 1] * 20, [0, 1] * 100)
    )


def test_canaries_are_exchangeable_under_every_split() -> None:
    canaries = replace(partition_of([0, 1] * 40, [0] * 20 + [1] * 180), canary_odds=0.5)
    assert are_exchangeable(Dirichlet(alpha=0.5), DATASET, canaries)


def test_label_frequencies_that_differ_are_not_exchangeable() -> None:
    # 40 of each of two labels against 20 and 180: chi-squared is above 40.
    assert not are_exchangeable(Iid(), DATASET, partition_of([0, 1] * 40, [0] * 20 + [1] * 180))


def test_no_candidate_records_are_not_exchangeable() -> None:
    pool = partition_of([0], [1]).pool
    assert not are_exchangeable(Iid(), DATASET, DataPartition(pool, (), pool, pool, {}))


def test_several_examples_per_record_are_not_exchangeable() -> None:
    several = replace(DATASET, records=torch.arange(len(DATASET.train)) // 2)
    assert not are_exchangeable(Iid(), several, partition_of([0, 1] * 20, [0, 1] * 100))


def test_canaries_might_have_had_any_owner() -> None:
    canaries = replace(partition_of([0, 1], [0, 1]), canary_odds=0.5)
    assert record_exchange(ByUser(), DATASET, canaries) == "all"


def test_records_might_have_had_the_owner_of_another_of_their_label() -> None:
    assert record_exchange(Dirichlet(), DATASET, partition_of([0], [1])) == "same label"


def test_records_of_users_and_pieces_of_records_belong_together() -> None:
    assert record_exchange(ByUser(), DATASET, partition_of([0], [1])) == "none"
    pieces = replace(DATASET, records=torch.arange(len(DATASET.train)) // 2)
    assert record_exchange(Iid(), pieces, partition_of([0], [1])) == "none"
