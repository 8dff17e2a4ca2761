"""Whole audits mix no tensors of a GPU and of the CPU; see tests/pretended_device.py."""

from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pytest

from overheard.algorithms.adaptive import FedAdam
from overheard.algorithms.fed_buff import FedBuff
from overheard.algorithms.fed_nova import FedNova
from overheard.algorithms.scaffold import Scaffold
from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.core.attack import Attack
from overheard.data.partition.candidates import CandidateSettings
from overheard.findings.audit import Audit
from overheard.learning.distillation.methods.distribution_matching import (
    DistributionMatching,
)
from overheard.learning.models.mlp import Mlp
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.ldia import Ldia
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.label_shares.attacks.whispers import Whispers
from overheard.questions.membership.attacks.fed_mia import FedMia
from overheard.questions.membership.attacks.gradient_membership import GradientMembership
from overheard.questions.membership.attacks.lira import Lira
from overheard.questions.membership.attacks.shadow_membership import ShadowMembership
from tests.auditing.plans import DATA, TINY, TRAINING, replace_tables
from tests.pretended_device import pretended_device

MEMBERSHIP = (
    FedMia(),
    GradientMembership(models=8),
    Lira(models=8),
    ShadowMembership(models=8),
)
"""Attacks that compute on the device beside the training of shadow models."""

LABEL_SHARES = (
    Amortised(most_rounds=1, steps=2),
    Ldia(epochs=1),
    Whispers(epochs=1),
)
"""Attacks that compute on the device beside the training of virtual clients."""

ALGORITHMS = (FedAdam(), FedBuff(buffer=2), FedNova(), Scaffold())


def audit_on_device(plan: Plan, folder: Path) -> Audit:
    module = "overheard.auditing.{}.choose_device"
    with ExitStack() as stack:
        device = stack.enter_context(pretended_device())
        for name in ("knowledge", "simulate", "runs_ahead"):
            stack.enter_context(patch(module.format(name), lambda name: device))
        return audit(plan, folder, resources=Resources(workers=1))


@pytest.mark.slow
@pytest.mark.parametrize("attacks", [MEMBERSHIP, LABEL_SHARES], ids=["membership", "shares"])
def test_attacks_run_on_the_device_of_the_audit(
    attacks: tuple[Attack, ...], tmp_path: Path
) -> None:
    plan = replace_tables(
        TINY,
        data=DATA.model_copy(update={"candidates": CandidateSettings(4, 20)}),
        training=TRAINING.model_copy(update={"model": Mlp(hidden=(8,)), "epochs": 1}),
        threats=(ThreatPlan(attacks=attacks, virtual=VirtualPlan(clients=8), by_round=False),),
    )
    finished = audit_on_device(plan, tmp_path / "audit")
    assert not finished.refusals
    assert {one.cell.part for one in finished.findings} >= {one.name for one in attacks}


@pytest.mark.slow
def test_algorithms_and_distillation_run_on_the_device_of_the_audit(
    tmp_path: Path,
) -> None:
    arms = [ArmPlan(name=one.name, algorithm=one) for one in ALGORITHMS]
    arms += [ArmPlan(name="matching", distillation=DistributionMatching(samples=2))]
    threat = ThreatPlan(attacks=(MeanSoftmax(),), by_round=False)
    training = TRAINING.model_copy(update={"epochs": 1})
    plan = replace_tables(TINY, training=training, arms=tuple(arms), threats=(threat,))
    finished = audit_on_device(plan, tmp_path / "audit")
    assert {one.arm for one in finished.arms} >= {one.name for one in arms}
