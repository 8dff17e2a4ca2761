"""Which runs there are, who listens to which, and how much work that is."""

import pytest

from overheard.attacks.mean_softmax import MeanSoftmax
from overheard.audit.data_plan import ShiftPlan
from overheard.audit.plan import Plan, ThreatPlan
from overheard.audit.work import cells, controls, has_rounds, listens, pieces
from tests.audit.plans import DATA, MASKED, OPEN, TINY, changed
from tests.audit.planted import Pull

ASKS, DOES_NOT = Pull(), MeanSoftmax()
BOTH = ThreatPlan(attacks=(ASKS, DOES_NOT))
TRULY = ShiftPlan(client=0, round=1, weights=(2.0, *(1.0,) * 9))
EXCHANGE = ShiftPlan(client=0, round=1)


def plan(*shifts: ShiftPlan, threats: tuple[ThreatPlan, ...] = (BOTH,)) -> Plan:
    data = DATA.model_copy(update={"shifts": shifts})
    return changed(TINY, seeds=(0, 1, 2), arms=(OPEN, MASKED), data=data, threats=threats)


def test_a_run_has_a_control_where_something_shifts_and_somebody_asks():
    assert controls(plan(TRULY)) == (False, True)
    assert controls(plan(EXCHANGE, TRULY.model_copy(update={"client": 1}))) == (False, True)


@pytest.mark.parametrize(
    "uncontrolled",
    [
        plan(),
        plan(EXCHANGE),
        plan(TRULY, threats=(ThreatPlan(attacks=(DOES_NOT,)),)),
    ],
    ids=["no shift", "an exchange alone", "nobody asks"],
)
def test_else_it_has_none(uncontrolled: Plan):
    assert controls(uncontrolled) == (False,)


def test_only_who_asks_for_shifts_listens_to_controls_and_never_to_one_round():
    assert [listens(ASKS, True), listens(ASKS, False)] == [True, True]
    assert [listens(DOES_NOT, True), listens(DOES_NOT, False)] == [False, True]
    assert not has_rounds(BOTH, ASKS)
    assert has_rounds(BOTH, DOES_NOT)
    assert not has_rounds(BOTH.model_copy(update={"by_round": False}), DOES_NOT)


def test_counts_a_round_of_a_run_and_a_cell_as_one_piece_each():
    # Of a run 2 rounds and 1 + (1 + 2) cells; of its control 2 rounds and 1 cell.
    assert cells(plan(TRULY), 2, False) == 4
    assert cells(plan(TRULY), 2, True) == 1
    # Three seeds and two arms.
    assert pieces(plan(TRULY)) == 6 * (2 + 4 + 2 + 1)
    assert pieces(plan()) == 6 * (2 + 4)
