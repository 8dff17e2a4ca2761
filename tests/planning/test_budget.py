"""Counts are reduced as far as a budget needs, and no further."""

from pathlib import Path

import pytest

from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import Resources, load_inputs
from overheard.core.compute_settings import MemoryTensorCache
from overheard.core.errors import PlanError
from overheard.planning.accuracy_curves import expected_errors
from overheard.planning.budget import largest_counts, pick_counts, plan_within_budget
from overheard.planning.cost_estimate import MeasuredAttack, MeasuredAudit
from overheard.planning.measured_costs import AttackCost
from overheard.planning.outlook import planned_views
from overheard.planning.simulation_counts import SimulationCounts, differ_in_counts_only
from overheard.plans.plan import Plan, ThreatPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.ppa import Ppa
from overheard.questions.label_shares.attacks.whispers import Whispers
from tests.auditing.plans import DATA, SERVER_THREAT, TINY, TRAINING, replace_tables

HERE = Resources(device="cpu", workers=1)

VIRTUAL = ThreatPlan(
    attacks=(Whispers(), BiasInversion()),
    by_round=False,
    virtual=VirtualPlan(clients=1000, examples=(100, 100)),
)
SIMULATING = Plan(data=DATA, training=TRAINING, threats=(VIRTUAL,))
"""Two rounds, of which `whispers` would read ten."""


def measured(plan: Plan = SIMULATING, second_per_example: float = 1e-3) -> MeasuredAudit:
    """An audit in which a virtual client takes 0.15 s a round, and each attack 1 s a round."""
    inputs = load_inputs(plan, HERE, MemoryTensorCache())
    views = planned_views(plan, inputs, None)
    attacks = {
        (number, view.threat.attack_name(attack)): MeasuredAttack(AttackCost(1.0, 0.0, 1), 3)
        for number, view in enumerate(views)
        for attack in view.threat.attacks
    }
    return MeasuredAudit(plan, inputs, views, None, 0.0, second_per_example, attacks, ())


def test_a_large_budget_reduces_nothing():
    assert (
        pick_counts(measured(), 1e6) == SimulationCounts(1000, 2) == largest_counts(SIMULATING)
    )


def test_counts_fit_the_budget_and_fill_it():
    audit = measured()
    counts = pick_counts(audit, 120.0)
    assert audit.estimate(counts).seconds <= 120
    assert counts.clients % 32 == 0
    one_more = SimulationCounts(counts.clients + 32, counts.rounds)
    assert audit.estimate(one_more).seconds > 120


def test_the_estimate_counts_virtual_clients_once_for_all_attacks_of_a_threat():
    both = VIRTUAL.model_copy(update={"attacks": (Whispers(), Ppa())})
    alone, together = (
        measured(replace_tables(SIMULATING, threats=(threat,))).estimate().seconds
        for threat in (VIRTUAL, both)
    )
    # 968 clients x 100 examples x 2 rounds x 1.5 ms are 290 s; another attack takes seconds.
    assert 290 < alone < 310
    assert abs(together - alone) < 5


def test_a_budget_that_nothing_meets_names_the_smallest_time():
    # 32 clients more than measured, in one round, take 4.8 s; the report takes 5 s.
    with pytest.raises(PlanError, match=r"takes about 1[0-9] s at least.* budget of 6 s"):
        pick_counts(measured(), 6.0)


def test_an_audit_without_virtual_clients_fits_or_is_refused():
    audit = measured(TINY)
    assert pick_counts(audit, 60.0) == SimulationCounts(1, 1)
    with pytest.raises(PlanError, match="at least"):
        pick_counts(audit, 1.0)


def test_the_plan_has_the_counts_and_attacks_without_virtual_clients_stay():
    plan = replace_tables(SIMULATING, threats=(VIRTUAL, SERVER_THREAT))
    reduced = SimulationCounts(64, 1).plan(plan)
    assert reduced.threats[0].virtual.clients == 64
    assert reduced.threats[0].attacks == (Whispers(most_rounds=1), BiasInversion())
    assert reduced.threats[1] == SERVER_THREAT
    assert differ_in_counts_only(plan, reduced)
    assert not differ_in_counts_only(plan, replace_tables(reduced, seeds=(7,)))


def test_two_threats_that_would_become_the_same_are_refused():
    fewer = VIRTUAL.model_copy(
        update={"virtual": VirtualPlan(clients=500, examples=(100, 100))}
    )
    plan = replace_tables(SIMULATING, threats=(VIRTUAL, fewer))
    with pytest.raises(PlanError, match="two threats of the plan would be the same"):
        SimulationCounts(64, 1).plan(plan)


def test_fewer_counts_are_expected_to_cost_accuracy():
    largest = SimulationCounts(1200, 3)
    names = ("amortised", "whispers", "shift_tracking")
    same = expected_errors(largest, largest, names)
    assert same == {"amortised": 1.0, "whispers": 1.0}
    few = expected_errors(SimulationCounts(64, 3), largest, names)
    some = expected_errors(SimulationCounts(300, 3), largest, names)
    fewer_rounds = expected_errors(SimulationCounts(64, 1), largest, names)
    for name in same:
        assert 1 <= some[name] < few[name] <= fewer_rounds[name]


def test_says_what_it_takes(tmp_path: Path):
    planned = plan_within_budget(TINY, "1h", tmp_path, resources=HERE)
    assert planned.plan == TINY
    (said,) = planned.sentences
    assert said.startswith("Budget of 60 min: nothing is reduced; the audit takes about")


def test_a_resumed_audit_keeps_the_counts_of_its_folder(tmp_path: Path):
    stored = SimulationCounts(96, 1).plan(SIMULATING)
    AuditFolder(tmp_path).reserve(f"# overheard\n{stored.toml()}")
    resumed = plan_within_budget(SIMULATING, "10h", tmp_path, resources=HERE)
    assert resumed.plan.toml() == stored.toml()
    assert "goes on with the counts" in resumed.sentences[0]


def test_refuses_a_budget_that_is_no_duration(tmp_path: Path):
    with pytest.raises(PlanError, match="budget: '10' is not a duration"):
        plan_within_budget(SIMULATING, "10", tmp_path, resources=HERE)
