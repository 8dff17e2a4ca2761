"""Whole audits mix no tensors of a GPU and of the CPU; see tests/pretended_device.py."""

from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pytest

from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.data.partition.candidates import CandidateSettings
from overheard.learning.models.mlp import Mlp
from overheard.plans.plan import ThreatPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.membership.attacks.fed_mia import FedMia
from overheard.questions.membership.attacks.gradient_membership import GradientMembership
from overheard.questions.membership.attacks.lira import Lira
from overheard.questions.membership.attacks.shadow_membership import ShadowMembership
from tests.auditing.plans import DATA, TINY, TRAINING, replace_tables
from tests.pretended_device import pretended_device

ATTACKS = (FedMia(), GradientMembership(models=8), Lira(models=8), ShadowMembership(models=8))
"""Attacks that compute on the device beside the training of virtual clients."""


@pytest.mark.slow
def test_attacks_run_on_the_device_of_the_audit(tmp_path: Path) -> None:
    plan = replace_tables(
        TINY,
        data=DATA.model_copy(update={"candidates": CandidateSettings(4, 20)}),
        training=TRAINING.model_copy(update={"model": Mlp(hidden=(8,))}),
        threats=(ThreatPlan(attacks=ATTACKS, virtual=VirtualPlan(clients=8)),),
    )
    module = "overheard.auditing.{}.choose_device"
    with ExitStack() as stack:
        device = stack.enter_context(pretended_device())
        for name in ("knowledge", "simulate", "runs_ahead"):
            stack.enter_context(patch(module.format(name), lambda name: device))
        finished = audit(plan, tmp_path / "audit", resources=Resources(workers=1))
    assert not finished.refusals
    assert {one.cell.part for one in finished.findings} >= {one.name for one in ATTACKS}
