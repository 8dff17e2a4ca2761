"""What a plan check says is what the audit then does."""

from pathlib import Path

import pytest

from overheard.algorithms.fed_avg import FedAvg
from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.core.errors import PlanError
from overheard.participation.sums_reading import describe_sums
from overheard.planning.plan_check import PlanCheck, check_plan
from overheard.plans.plan import ThreatPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.shift.attacks.shift_tracking import ShiftTracking
from tests.auditing.plans import SMALL, TINY, replace_tables
from tests.planning.conftest import STATED_TASK, ForeignRecording

HERE = Resources(device="cpu", workers=1)


@pytest.fixture(scope="module")
def checked() -> PlanCheck:
    return check_plan(SMALL, HERE, None, with_estimate=False)


def test_refusals_are_those_of_the_audit(checked: PlanCheck, tmp_path: Path):
    found = audit(replace_tables(SMALL, seeds=(0,)), tmp_path / "out", resources=HERE)
    refused = {
        (one.cell.arm, one.cell.label, reason)
        for one in found.refusals
        for reason in one.missing
        if one.cell.rounds == (0, 1)
    }
    foretold = {(one.arm, one.attack, why) for one in checked.attacks for why, _ in one.missing}
    assert foretold == refused
    ran = {(one.cell.arm, one.cell.label) for one in found.findings}
    assert {(one.arm, one.attack) for one in checked.attacks if one.able_count} == ran
    (read,) = (run.sums for run in found.arms if run.sums is not None)
    assert tuple(describe_sums(read, "arm “secure aggregation”")) == checked.sums


def test_a_client_runs_where_a_server_rate_is_divided_out():
    listens = ThreatPlan(observers=("client/0",), attacks=(BiasInversion(),), about="cohort")
    training = TINY.training.model_copy(update={"algorithm": FedAvg(rate=0.5)})
    plan = replace_tables(TINY, training=training, threats=(listens,))
    (found,) = check_plan(plan, HERE, None, with_estimate=False).attacks
    assert (found.able_count, found.missing) == (1, ())


def test_a_recording_uses_the_first_seed_alone(simulated: Path):
    two = TINY.model_copy(update={"seeds": (TINY.seeds[0], 7)})
    checked = check_plan(two, HERE, simulated, with_estimate=False)
    assert checked.unused_seeds == (7,)
    assert "only the first seed is used, not 7." in " ".join(checked.lines())
    one = TINY.model_copy(update={"seeds": TINY.seeds[:1]})
    alone = check_plan(one, HERE, simulated, with_estimate=False)
    assert "first seed" not in " ".join(alone.lines())


def test_counts_runs_and_describes_them(checked: PlanCheck):
    assert (len(checked.arms), checked.seeds, checked.runs) == (2, 2, 4)
    lines = list(checked.lines())
    assert lines[0] == "Data: 1797 examples, of which 300 are held out."
    assert "2 arms x 2 seeds: 4 runs to simulate, controls included" in lines
    assert any(line.startswith("  refused  mean_softmax: needs updates") for line in lines)


def test_a_recording_without_truth_has_no_verdict(foreign: ForeignRecording):
    folder = foreign(task=STATED_TASK)
    checked = check_plan(TINY, HERE, folder, with_estimate=False)
    assert checked.runs == 0
    assert checked.can_run
    assert "no ground truth" in checked.missing_verdicts[0]


def test_estimates_time_memory_and_disk():
    cost = check_plan(TINY, HERE, None).cost
    assert not cost.unmeasured
    assert {name for name, _ in cost.attack_seconds} == {"bias_inversion", "mean_softmax"}
    assert 0 < cost.training_seconds < cost.seconds
    assert cost.memory_bytes > 1e8
    # Two rounds of a broadcast and three updates of 65 x 10 numbers, each of 4 bytes.
    assert cost.disk_bytes == 2 * 4 * 650 * 4


def test_attacks_that_need_more_virtual_clients_are_refused():
    attacks = (Amortised(), ShiftTracking(), MeanSoftmax())
    threat = ThreatPlan(attacks=attacks, virtual=VirtualPlan(clients=7), by_round=False)
    checked = check_plan(
        replace_tables(TINY, threats=(threat,)), HERE, None, with_estimate=False
    )
    few = "8 virtual clients or more: set virtual.clients"
    refused = {one.part for one in checked.attacks if few in dict(one.missing)}
    assert refused == {"amortised", "shift_tracking"}


def test_refuses_what_the_audit_would_refuse(tmp_path: Path):
    with pytest.raises(PlanError, match="no such folder"):
        check_plan(TINY, HERE, tmp_path / "absent")
