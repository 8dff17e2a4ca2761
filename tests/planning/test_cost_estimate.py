"""Estimates follow from short measurements of the parts of an audit."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields, replace
from math import prod
from typing import ClassVar

import pytest
import torch
from torch import nn

from overheard.auditing.inputs import Resources, load_inputs
from overheard.core.attack import Attack, TrainingSource
from overheard.core.compute_settings import MemoryTensorCache
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.needs import SUMS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.core.view import View
from overheard.learning.devices import choice
from overheard.learning.devices.machine import CoreCosts, GpuCosts, Machine
from overheard.learning.devices.training_work import StepCounts, TrainingWork
from overheard.learning.model import Model
from overheard.planning import cost_estimate, measured_costs
from overheard.planning.cost_estimate import (
    CostEstimate,
    MeasuredAttack,
    MeasuredAudit,
    measure_audit,
)
from overheard.planning.measured_costs import (
    FEW_CLIENTS,
    AttackCost,
    CellCost,
    TimedCache,
    measure_attack,
)
from overheard.planning.outlook import PlannedView, planned_audit
from overheard.plans.plan import Plan, ThreatPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.ldia import Ldia
from overheard.questions.label_shares.attacks.ppa import Ppa
from overheard.questions.label_shares.attacks.sum_shares import SumShares
from overheard.questions.label_shares.attacks.whispers import Whispers
from overheard.questions.label_shares.claim import LabelShares
from overheard.simulation.cached_readings import READING_KEY
from tests.auditing.plans import (
    DATA,
    SECURE_AGGREGATION,
    SERVER_THREAT,
    TRAINING,
    replace_tables,
)

HERE = Resources(device="cpu", workers=1)

VIRTUAL = ThreatPlan(
    attacks=(Whispers(), BiasInversion()),
    by_round=False,
    virtual=VirtualPlan(clients=1000, examples=(100, 100)),
)
SIMULATING = Plan(data=DATA, training=TRAINING, threats=(VIRTUAL,))
"""Two rounds, of which `whispers` would read ten."""


SECOND = CellCost(1.0, 1.0, 0.0)


@dataclass(frozen=True)
class BatchNormed(Model):
    """A network that cannot train on a single example."""

    name: ClassVar[str] = "batch-normed"
    source: ClassVar[str] = ""

    def build(self, task: Task) -> nn.Module:
        size = prod(task.shape)
        return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(size), nn.Linear(size, task.outputs))


def test_measures_the_training_of_a_network_that_needs_two_examples():
    training = TRAINING.model_copy(update={"model": BatchNormed()})
    plan = SIMULATING.model_copy(update={"training": training})
    inputs = load_inputs(plan, HERE, MemoryTensorCache())
    assert measured_costs.measure_training(inputs) > 0


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
    (view,) = planned_audit(plan, load_inputs(plan, HERE, MemoryTensorCache()), None).views
    return view


def measured(plan: Plan = SIMULATING, cost: CellCost = SECOND) -> MeasuredAudit:
    """An audit in which a virtual client takes 0.15 s a round, and each attack 1 s a round.

    Args:
        plan: the plan.
        cost: the cost of each attack with 232 virtual clients.

    """
    inputs = load_inputs(plan, HERE, MemoryTensorCache())
    planned = planned_audit(plan, inputs, None)
    attacks = {}
    for number, view in enumerate(planned.views):
        for position, attack in enumerate(view.threat.attacks):
            simulation = 0.15 if position == 0 else 0.0
            measured_cost = AttackCost(SECOND, cost, 232, simulation, 1)
            name = view.threat.attack_name(attack)
            attacks[number, name] = MeasuredAttack(measured_cost, 3)
    return MeasuredAudit(planned, inputs, 0.0, 1e-3, attacks, ())


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
    cost = growing.attacks[
        0, growing.planned.program.plan.threats[0].attack_name(Whispers())
    ].cost
    # 1,000 clients are 968 more than 32; 200 more take 0.5, 0.25 and 0.1 s more.
    assert astuple(cost.at(1000)) == pytest.approx((3.42, 2.21, 0.484))
    assert astuple(cost.at(132)) == pytest.approx((1.25, 1.125, 0.05))
    # Both attacks run on two rounds and three targets.
    more = growing.estimate().seconds - measured().estimate().seconds
    assert more == pytest.approx(2 * 2 * (2.42 + 2 * 0.484), abs=0.5)


@pytest.mark.slow
def test_measures_virtual_clients_in_the_first_of_the_attacks_that_share_them():
    view = view_of(SIMULATING)
    cache = TimedCache()
    first, second = (
        measure_attack(attack, view, view.targets, cache)
        for attack in (Whispers(epochs=2), Ldia(epochs=2))
    )
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
    assert (next_one.simulation, last.simulation) == (1.0, 0.0)


@dataclass(frozen=True)
class JointSums(Attack[LabelShares]):
    """An attack on sums that compares targets and rounds: .1 s for a round and a target."""

    clock: Clock

    name: ClassVar[str] = "joint_sums"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset({SUMS})
    source: ClassVar[str] = "none"
    is_joint: ClassVar[bool] = True

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        if len(targets) < 2 or len(view.rounds()) < 2:
            raise NeedsError("two targets and two rounds")
        self.clock.now += 0.1 * len(targets) * len(view.rounds())
        return {}


def test_a_joint_attack_on_sums_is_measured_on_a_few_rounds_and_targets(clock: Clock) -> None:
    view = view_of(SIMULATING)
    cost = measure_attack(JointSums(clock), view, view.targets, TimedCache())
    assert cost is not None
    # In the two rounds of the run, a target takes .2 s.
    assert cost.rounds == 2
    assert astuple(cost.few) == pytest.approx((0.2, 0.2, 0.2))


@pytest.mark.slow
def test_attacks_on_sums_alone_are_measured() -> None:
    """By the server behind secure aggregation, and by a client that knows who took part."""
    training = SIMULATING.training.model_copy(update={"rounds": 6})
    arms = (SECURE_AGGREGATION,)
    knows = ("auxiliary", "model", "recipe", "cohorts")
    few = VirtualPlan(clients=32, examples=(20, 20))
    for observer in ("server", "client/0"):
        threat = ThreatPlan(
            observers=(observer,), attacks=(SumShares(sweeps=2),), knows=knows, virtual=few
        )
        plan = replace_tables(SIMULATING, training=training, arms=arms, threats=(threat,))
        planned = planned_audit(plan, load_inputs(plan, HERE, MemoryTensorCache()), None)
        view = planned.views[-1]
        assert view.seen.spec.name == SECURE_AGGREGATION.name
        (attack,) = threat.attacks
        cost = measure_attack(attack, view, view.able_targets(attack), TimedCache())
        assert cost is not None
        # Of four sketched rounds; the last has no broadcast after it.
        assert cost.rounds == {"server": 4, "client/0": 3}[observer]


def test_the_rounds_of_a_run_count_not_those_of_its_plan():
    audit = measured()
    (view,) = audit.planned.views
    run = replace(view.seen.spec, rounds=tuple(range(8)))
    longer = replace(view, seen=replace(view.seen, spec=run))
    audit = replace(audit, planned=replace(audit.planned, views=(longer,)))
    # 1,000 clients x 8 rounds x 0.15 s.
    assert audit.estimate().seconds > 1200


def test_attacks_that_train_virtual_clients_are_measured_first_and_always(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(cost_estimate, "LONGEST_MEASUREMENT", -1.0)
    few = VirtualPlan(clients=32, examples=(20, 20))
    attacks = (BiasInversion(), Whispers(epochs=1, most_rounds=1))
    threat = VIRTUAL.model_copy(update={"attacks": attacks, "virtual": few})
    plan = replace_tables(SIMULATING, threats=(SERVER_THREAT, threat))
    inputs = load_inputs(plan, HERE, MemoryTensorCache())
    audit = measure_audit(planned_audit(plan, inputs, None), inputs)
    assert {name for _, name in audit.attacks} == {threat.attack_name(attacks[1])}
    assert len(audit.unmeasured) == 3


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "1 s"), (89.0, "89 s"), (90.0, "2 min"), (5400.0, "1.5 h")]
)
def test_times_have_about_two_digits(seconds: float, text: str):
    cost = CostEstimate(seconds, 0.0, (("decaf", seconds),), 0.0, 0.0, ())
    lines = list(cost.lines())
    assert lines[0].startswith(f"Time: about {text}, between")
    assert lines[1] == f"  {text:>8}  decaf"


def alike_clients(clients: int) -> TrainingWork:
    """Virtual clients that take 0.1 s on a core."""
    counts = StepCounts(1e9, 0.0, 1, 0.0)
    return TrainingWork(counts, clients, 100.0, 10.0, 32, 0.0, True, "stacked", True, times=10)


def on_machine(gpu: GpuCosts) -> MeasuredAudit:
    """An audit of an attack with virtual clients, and of one with models of its own."""
    audit = measured()
    works = {"whispers": alike_clients(FEW_CLIENTS), "bias_inversion": alike_clients(5)}
    attacks = {
        key: replace(one, cost=replace(one.cost, works=(works[key[1].partition(",")[0]],)))
        for key, one in audit.attacks.items()
    }
    core = CoreCosts(1e-12, 0.0, 0.0)
    return replace(audit, attacks=attacks, machine=Machine(4, core, gpu))


def test_an_estimate_says_what_a_gpu_trains_in_how_much_time() -> None:
    fast = GpuCosts(*[0.0] * len(fields(GpuCosts)))
    slow = replace(fast, start=1e6)
    without, useless, gpu = (
        measured().estimate(),
        on_machine(slow).estimate(),
        on_machine(replace(fast, client=0.01)).estimate(),
    )
    assert list(useless.lines()) == list(without.lines())
    seconds, before = (
        {name.partition(",")[0]: one for name, one in cost.attack_seconds}
        for cost in (gpu, without)
    )
    # Of 1,000 virtual clients in two rounds, 0.01 s each in place of 0.15 s.
    assert seconds["whispers"] == pytest.approx(before["whispers"] - 2 * 1000 * 0.14, abs=0.1)
    # 5 models in two rounds, 0.01 s each in place of 0.1 s.
    assert seconds["bias_inversion"] == pytest.approx(before["bias_inversion"] - 0.9, abs=0.01)
    text = "\n".join(gpu.lines())
    assert "expecting 100 to 100 examples, training on the GPU" in text
    assert "Everything else runs on the CPU, where it takes less time." in text
    for cost in (without, gpu):  # `overheard plan check --json` prints it
        told = json.loads(json.dumps(asdict(cost)))
        assert len(told["attacks_on_gpu"]) == len(cost.attacks_on_gpu)
    assert not without.attacks_on_gpu


def test_what_a_gpu_might_train_is_collected_while_an_attack_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choice, "may_have_gpu", lambda: True)
    monkeypatch.setattr(choice, "_HOST", [])
    inputs = load_inputs(SIMULATING, replace(HERE, device="auto"), MemoryTensorCache())
    (view,) = planned_audit(SIMULATING, inputs, None).views
    attack = Whispers(epochs=1, most_rounds=1)
    cost = measure_attack(attack, view, view.targets[:1], TimedCache())
    assert cost is not None
    (work,) = cost.works
    assert work.clients == FEW_CLIENTS
    assert work.counts.operations > 0
