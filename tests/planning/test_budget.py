"""Counts are reduced as far as a budget needs, and no further."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
import torch

from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import Resources, load_inputs
from overheard.core.attack import Attack, TrainingSource
from overheard.core.compute_settings import MemoryTensorCache
from overheard.core.errors import PlanError
from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.planning import budget, measured_costs
from overheard.planning.accuracy_curves import expected_errors
from overheard.planning.budget import (
    largest_counts,
    pick_counts,
    plan_with,
    plan_within_budget,
)
from overheard.planning.cost_estimate import MeasuredAttack, MeasuredAudit, measure_audit
from overheard.planning.measured_costs import (
    AttackCost,
    CellCost,
    TimedCache,
    measure_attack,
)
from overheard.planning.outlook import PlannedView, planned_views
from overheard.planning.recorded_facts import read_checked_recording
from overheard.planning.simulation_counts import SimulationCounts, is_reduced
from overheard.plans.plan import Plan, ThreatPlan
from overheard.plans.release_plan import ReleasePlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.ldia import Ldia
from overheard.questions.label_shares.attacks.ppa import Ppa
from overheard.questions.label_shares.attacks.whispers import Whispers
from overheard.questions.label_shares.claim import LabelShares
from overheard.simulation.cached_readings import READING_KEY
from tests.auditing.plans import (
    DATA,
    NO_DEFENSE,
    SECURE_AGGREGATION,
    SERVER_THREAT,
    TINY,
    TRAINING,
    replace_tables,
)
from tests.planning.conftest import STATED_TASK, ForeignRecording

HERE = Resources(device="cpu", workers=1)

VIRTUAL = ThreatPlan(
    attacks=(Whispers(), BiasInversion()),
    by_round=False,
    virtual=VirtualPlan(clients=1000, examples=(100, 100)),
)
SIMULATING = Plan(data=DATA, training=TRAINING, threats=(VIRTUAL,))
"""Two rounds, of which `whispers` would read ten."""


SECOND = CellCost(1.0, 1.0, 0.0)


@dataclass
class Clock:
    """The processor's time, which passes only if told."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class SlowTraining(Attack[LabelShares]):
    """An attack for which a virtual client trains for a second, and nothing else takes time."""

    clock: Clock
    fails: bool = False

    name: ClassVar[str] = "slow_training"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset()
    source: ClassVar[str] = "none"

    def training_source(self) -> TrainingSource:
        return "virtual clients"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        cache = knowledge.compute.cache
        for number in range(knowledge.compute.virtual_clients):
            if cache.load(f"client {number}") is None:
                self.clock.now += 1.0
                cache.save(f"client {number}", {READING_KEY: torch.zeros(1)})
        if self.fails:
            raise ValueError
        return {}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(measured_costs, "process_time", clock)
    return clock


def view_of(plan: Plan) -> PlannedView:
    (view,) = planned_views(plan, load_inputs(plan, HERE, MemoryTensorCache()), None)
    return view


def measured(plan: Plan = SIMULATING, cost: CellCost = SECOND) -> MeasuredAudit:
    """An audit in which a virtual client takes 0.15 s a round, and each attack 1 s a round.

    Args:
        plan: the plan.
        cost: the cost of each attack with 232 virtual clients.

    """
    inputs = load_inputs(plan, HERE, MemoryTensorCache())
    views = planned_views(plan, inputs, None)
    attacks = {}
    for number, view in enumerate(views):
        for position, attack in enumerate(view.threat.attacks):
            simulation = 0.15 if position == 0 else 0.0
            measured_cost = AttackCost(SECOND, cost, 232, simulation, 1)
            name = view.threat.attack_name(attack)
            attacks[number, name] = MeasuredAttack(measured_cost, 3)
    return MeasuredAudit(plan, inputs, views, None, 0.0, 1e-3, attacks, ())


def test_a_large_budget_reduces_nothing():
    audit = measured()
    assert pick_counts(audit, 1e6) == SimulationCounts(1000, 2) == largest_counts(audit)


def test_the_rounds_of_a_recording_count_not_those_of_its_plan(foreign: ForeignRecording):
    facts = replace(read_checked_recording(foreign(task=STATED_TASK)), rounds=8)
    audit = replace(measured(), facts=facts)
    assert largest_counts(audit) == SimulationCounts(1000, 8)
    # 1,000 clients x 8 rounds x 0.15 s.
    assert audit.estimate(largest_counts(audit)).seconds > 1200
    assert pick_counts(audit, 1e6) == largest_counts(audit)
    all_rounds, two_rounds = (
        plan_with(audit, SimulationCounts(64, rounds)).threats[0] for rounds in (8, 2)
    )
    assert all_rounds.attacks == VIRTUAL.attacks
    assert two_rounds.attacks[0] == Whispers(most_rounds=2)


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
    # 1,000 clients x 2 rounds x 0.15 s are 300 s; another attack takes 1 s a round.
    assert 300 < alone < 315
    assert abs(together - alone) < 5


def test_the_estimate_follows_fits_that_grow_with_the_number_of_virtual_clients():
    growing = measured(cost=CellCost(1.5, 1.25, 0.1))
    cost = growing.attacks[0, growing.plan.threats[0].attack_name(Whispers())].cost
    # 1,000 clients are 968 more than 32; 200 more take 0.5, 0.25 and 0.1 s more.
    assert astuple(cost.at(1000)) == pytest.approx((3.42, 2.21, 0.484))
    assert astuple(cost.at(132)) == pytest.approx((1.25, 1.125, 0.05))
    # Both attacks run on two rounds and three targets.
    more = growing.estimate().seconds - measured().estimate().seconds
    assert more == pytest.approx(2 * 2 * (2.42 + 2 * 0.484), abs=0.5)


def test_measures_virtual_clients_in_the_first_of_the_attacks_that_share_them():
    view = view_of(SIMULATING)
    cache = TimedCache()
    first, second = (
        measure_attack(attack, view, view.targets, cache)
        for attack in (Whispers(epochs=2), Ldia(epochs=2))
    )
    assert first is not None
    assert second is not None
    assert first.simulation > 0
    assert second.simulation == 0
    assert first.clients > 32
    assert first.few.first_target > 0
    assert first.more.first_target > 0


def test_slow_virtual_clients_that_an_attack_shares_are_not_trained_in_larger_numbers(
    clock: Clock,
):
    view, cache = view_of(SIMULATING), TimedCache()
    first, second = (
        measure_attack(SlowTraining(clock), view, view.targets, cache) for _ in range(2)
    )
    assert first is not None
    assert second is not None
    assert clock.now == 32
    assert (first.clients, first.simulation) == (32, 1.0)
    assert (second.clients, second.simulation) == (32, 0.0)


def test_virtual_clients_of_an_attack_that_fails_count_for_the_next_one(clock: Clock):
    view, cache = view_of(SIMULATING), TimedCache()
    failing, next_one, last = (
        measure_attack(SlowTraining(clock, fails), view, view.targets, cache)
        for fails in (True, False, False)
    )
    assert failing is None
    assert next_one is not None
    assert last is not None
    assert (next_one.simulation, last.simulation) == (1.0, 0.0)


def test_attacks_that_train_virtual_clients_are_measured_first_and_always():
    few = VirtualPlan(clients=32, examples=(20, 20))
    attacks = (BiasInversion(), Whispers(epochs=1, most_rounds=1))
    threat = VIRTUAL.model_copy(update={"attacks": attacks, "virtual": few})
    plan = replace_tables(SIMULATING, threats=(SERVER_THREAT, threat))
    inputs = load_inputs(plan, HERE, MemoryTensorCache())
    audit = measure_audit(plan, inputs, planned_views(plan, inputs, None), None, longest=-1.0)
    assert {name for _, name in audit.attacks} == {threat.attack_name(attacks[1])}
    assert len(audit.unmeasured) == 3


def test_an_attack_that_cannot_be_measured_is_named_and_refuses_no_budget(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    audit = replace(measured(), unmeasured=("whispers",))
    monkeypatch.setattr(budget, "measure_audit", lambda *_: audit)
    planned = plan_within_budget(SIMULATING, "1h", tmp_path, resources=HERE)
    assert planned.plan == SIMULATING
    assert planned.sentences[-1] == "Not in that time, as not measured: whispers."


def test_a_budget_that_nothing_meets_names_the_smallest_time():
    # 64 clients in one round take 9.6 s, and the report takes 5 s.
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
    assert is_reduced(plan, reduced)
    assert is_reduced(plan, plan)
    assert is_reduced(plan, reduced.model_copy(update={"release": ReleasePlan(people="Ours")}))
    assert not is_reduced(plan, replace_tables(reduced, seeds=(7,)))


@pytest.mark.parametrize("counts", [(64, 1), (200, 1), (64, 10)])
def test_no_plan_goes_on_with_larger_counts(counts: tuple[int, int]):
    smaller = SimulationCounts(64, 1).plan(SIMULATING)
    stored = SimulationCounts(*counts).plan(SIMULATING)
    assert is_reduced(smaller, stored) == (counts == (64, 1))
    assert is_reduced(SIMULATING, stored)


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
    assert "goes on with the counts of its plan" in resumed.sentences[0]


def test_an_audit_with_further_seeds_and_arms_keeps_the_counts_of_its_folder(tmp_path: Path):
    stored = SimulationCounts(96, 1).plan(SIMULATING)
    AuditFolder(tmp_path).reserve(f"# overheard\n{stored.toml()}")
    grown = replace_tables(
        SIMULATING, seeds=(*SIMULATING.seeds, 7), arms=(NO_DEFENSE, SECURE_AGGREGATION)
    )
    resumed = plan_within_budget(grown, "10h", tmp_path, resources=HERE)
    assert resumed.plan.threats == stored.threats
    assert (resumed.plan.seeds, resumed.plan.arms) == (grown.seeds, grown.arms)


def test_refuses_a_budget_that_is_no_duration(tmp_path: Path):
    with pytest.raises(PlanError, match="budget: '10' is not a duration"):
        plan_within_budget(SIMULATING, "10", tmp_path, resources=HERE)
