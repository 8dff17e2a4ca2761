"""Under every algorithm each attack makes claims, or is refused with the reason."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from overheard.algorithms.adaptive import FedAdam
from overheard.algorithms.fed_avg import FedAvg
from overheard.algorithms.fed_avg_m import FedAvgM
from overheard.algorithms.fed_bn import FedBn
from overheard.algorithms.fed_buff import FedBuff
from overheard.algorithms.partial_sharing import PartialSharing
from overheard.algorithms.scaffold import Scaffold
from overheard.auditing.attack_runner import LAST_LAYER_IS_LOCAL
from overheard.auditing.folder import AuditFolder
from overheard.auditing.knowledge import attacker_knowledge
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.algorithm.deduced_view import UNKNOWN_ALGORITHM
from overheard.core.errors import PlanError
from overheard.findings.audit import Audit
from overheard.learning.models.custom import Own
from overheard.learning.models.mlp import Mlp
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.plans.registries import ALGORITHMS
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.label_shares.attacks.whispers import Whispers
from tests.auditing.conftest import audit_here, inputs_for
from tests.auditing.plans import TINY, replace_tables

pytestmark = pytest.mark.slow

SERVER = ThreatPlan(attacks=(BiasInversion(),), by_round=False)
SIMULATING = ThreatPlan(
    attacks=(Whispers(epochs=10),), virtual=VirtualPlan(clients=20), by_round=False
)
COHORT = ThreatPlan(
    observers=("client/0",), attacks=(BiasInversion(),), about="cohort", by_round=False
)
UNINFORMED = ThreatPlan(
    observers=("client/1",),
    attacks=(MeanSoftmax(),),
    about="cohort",
    by_round=False,
    knows=("auxiliary", "model"),
)
SIMULATED = ("fed_prox", "scaffold", "fed_bn", "partial_sharing")
"""Algorithms under which clients train unlike FedAvg's, so that virtual clients matter."""

BATCH_NORM = Own("tests.auditing.test_networks_in_part:network")

PLUGINS = {name: kind() for name, kind in ALGORITHMS.plugins().items()}


def plan_of(algorithm: Algorithm, **training: object) -> Plan:
    """A plan of three clients; FedBN trains a network with batch norms."""
    model = BATCH_NORM if isinstance(algorithm, FedBn) else Mlp(hidden=(8,))
    settings = {"rounds": 3, "rate": 0.1, "batch": 10, **training}
    whole = TrainingPlan(model=model, algorithm=algorithm, **settings)
    simulating = (SIMULATING,) if algorithm.name in SIMULATED else ()
    return replace_tables(TINY, training=whole, threats=(SERVER, COHORT, *simulating))


@cache
def audited(algorithm: Algorithm) -> tuple[Audit, Path]:
    """The audit of a plan, and its folder."""
    folder = Path(mkdtemp()) / algorithm.name
    return audit_here(plan_of(algorithm), folder), folder


@pytest.mark.parametrize("name", PLUGINS)
def test_the_server_makes_claims_under_every_algorithm_that_sends_the_last_layer(name: str):
    found, _ = audited(PLUGINS[name])
    claimed = {one.cell.part for one in found.findings if one.cell.observers == ("server",)}
    refused = {
        reason
        for one in found.refusals
        if one.cell.observers == ("server",)
        for reason in one.missing
    }
    if name == "partial_sharing":
        assert claimed == set()
        assert LAST_LAYER_IS_LOCAL in refused
    else:
        simulating = {"whispers"} if name in SIMULATED else set()
        assert claimed == {"bias_inversion"} | simulating
        assert refused == set()


@pytest.mark.parametrize("name", PLUGINS)
def test_clients_read_the_mean_update_or_are_told_why_not(name: str):
    algorithm = PLUGINS[name]
    found, _ = audited(algorithm)
    claims = [one for one in found.findings if one.cell.observers == ("client/0",)]
    reasons = [
        reason
        for one in found.refusals
        if one.cell.observers == ("client/0",)
        for reason in one.missing
    ]
    if algorithm.hidden_mean:
        assert not claims
        assert algorithm.hidden_mean in reasons
    elif name == "partial_sharing":
        assert LAST_LAYER_IS_LOCAL in reasons
    else:
        assert claims
        assert not reasons


def test_without_the_recipe_only_a_server_that_adds_the_mean_is_read(tmp_path: Path):
    plain = replace_tables(plan_of(FedAvg()), threats=(UNINFORMED,))
    rated = replace_tables(plan_of(FedAvg(rate=0.5)), threats=(UNINFORMED,))
    assert audit_here(plain, tmp_path / "plain").findings
    (refusal,) = audit_here(rated, tmp_path / "rated").refusals
    assert UNKNOWN_ALGORITHM in refusal.missing


def test_an_arm_may_have_its_own_algorithm(tmp_path: Path):
    arms = (ArmPlan(name="no defense"), ArmPlan(name="Adam", algorithm=FedAdam(rate=0.01)))
    plan = replace_tables(plan_of(FedAvg()), arms=arms, threats=(SERVER,))
    found = audit_here(plan, tmp_path)
    by_arm = {
        arm: [one.claimed for one in found.findings if one.cell.arm == arm]
        for arm in ("no defense", "Adam")
    }
    assert by_arm["no defense"]
    assert by_arm["no defense"] != by_arm["Adam"]


def test_whoever_knows_the_recipe_knows_the_range_of_epochs_but_not_each_clients():
    plan = plan_of(FedAvg(), epochs_range=(2, 4))
    known = attacker_knowledge(plan.arms[0], SERVER, inputs_for(plan).for_attackers(0))
    assert known.recipe is None
    assert [one.epochs for one in known.candidate_recipes()] == [2, 3, 4]
    alike = plan_of(FedAvg(), epochs_range=(4, 4))
    known = attacker_knowledge(alike.arms[0], SERVER, inputs_for(alike).for_attackers(0))
    assert known.recipe is not None
    assert known.recipe.epochs == 4
    fixed = plan_of(FedAvgM())
    known = attacker_knowledge(fixed.arms[0], SERVER, inputs_for(fixed).for_attackers(0))
    assert known.recipe is not None
    assert known.algorithm == FedAvgM()


def test_virtual_clients_train_with_the_proximal_term():
    plan = plan_of(PLUGINS["fed_prox"])
    known = attacker_knowledge(plan.arms[0], SERVER, inputs_for(plan).for_attackers(0))
    assert [one.proximal for one in known.candidate_recipes()] == [0.1]


@pytest.mark.parametrize("name", ["scaffold", "fed_buff", "fed_adam", "fed_bn"])
def test_a_recorded_run_gives_the_claims_of_the_simulation(name: str, tmp_path: Path):
    simulated, folder = audited(PLUGINS[name])
    recording = AuditFolder(folder).run_path("no defense", 0)
    again = audit_here(plan_of(PLUGINS[name]), tmp_path, recording=recording)
    assert [one.claimed for one in again.findings] == [
        one.claimed for one in simulated.findings
    ]
    assert len(again.refusals) == len(simulated.refusals)


@pytest.mark.parametrize("other", [FedAvg(), FedAdam(rate=0.2), Scaffold(rate=0.5)])
def test_refuses_a_plan_with_another_algorithm_than_the_recorded_run(
    other: Algorithm, tmp_path: Path
):
    _, folder = audited(PLUGINS["fed_adam"])
    recording = AuditFolder(folder).run_path("no defense", 0)
    with pytest.raises(PlanError, match="was run with FedAdam"):
        audit_here(plan_of(other), tmp_path, recording=recording)


def test_the_algorithms_of_these_tests_are_all_of_them():
    assert {FedBuff, PartialSharing, FedBn} <= {type(one) for one in PLUGINS.values()}
