"""Whole audits of mechanisms at their true epsilon: canaries seldom prove a larger one."""

from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.core.defense import Defense
from overheard.core.parties import SERVER
from overheard.data.datasets.digits import Digits
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.splits.iid import Iid
from overheard.defenses.dp_sgd import DpSgd
from overheard.defenses.local_dp import LocalDp
from overheard.epsilon.epsilon_results import EpsilonResult, epsilon_results
from overheard.learning.models.mlp import Mlp
from overheard.plans.data_plan import DataPlan
from overheard.plans.epsilon_plan import EpsilonPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.questions.membership.attacks.crafted_gradients import CraftedGradients

pytestmark = pytest.mark.nightly

AUDITS = 100

MOST_VIOLATED = 9
"""At a level of 5 %, 1 in 100 such tables has more."""

MECHANISMS: dict[str, tuple[Defense, int, int]] = {
    "local_dp": (LocalDp(1.0, 2.0, 1e-5), 40, 1),
    "dp_sgd": (DpSgd(1.0, 1.0, 1e-5, 10), 1, 60),
}
"""With clients, and canaries of each on average, which share the clip of a client's update."""


def audit_at_its_claim(name: str, seed: int, folder: Path) -> EpsilonResult:
    defense, clients, members = MECHANISMS[name]
    plan = Plan(
        seeds=(seed,),
        data=DataPlan(
            source=Digits(),
            split=Iid(),
            clients=clients,
            examples=400 // clients,
            auxiliary_per_class=10,
            test=200,
            candidates=CandidateSettings(members, members * clients, "crafted"),
        ),
        training=TrainingPlan(model=Mlp((32,)), rounds=2, rate=0.1, batch=10),
        arms=(ArmPlan(name="noise", defenses=(defense,)),),
        threats=(ThreatPlan(attacks=(CraftedGradients(),), by_round=False),),
        epsilon=EpsilonPlan(attack=CraftedGradients.name),
    )
    found = audit(plan, folder, resources=Resources(device="cpu", workers=1))
    (line,) = (one for one in epsilon_results(found) if one.observers == (SERVER,))
    return line


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_true_claim_is_seldom_called_violated(name: str, tmp_path: Path) -> None:
    lines = [audit_at_its_claim(name, seed, tmp_path / str(seed)) for seed in range(AUDITS)]
    bounds = [one.lower_bound for one in lines if one.lower_bound is not None]
    violated = sum(one.verdict == "violated" for one in lines)
    print(  # noqa: T201 - `-s` shows the figures
        f"{name}: {violated} of {AUDITS} violated, recomputed {lines[0].upper_bound:.2f}, "
        f"mean bound {sum(one.epsilon for one in bounds) / len(bounds):.2f}"
    )
    assert len(bounds) == AUDITS
    # The attack reads: otherwise the table could not fail.
    assert sum(one.epsilon > 0 for one in bounds) > AUDITS / 4
    assert violated <= MOST_VIOLATED
