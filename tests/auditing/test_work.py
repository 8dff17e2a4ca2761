"""Which runs there are, who listens to which, and how much work that is."""

from dataclasses import replace

import pytest

from overheard.auditing.work import cells, control_of, controls, listens, pieces, rounds_alone
from overheard.core.errors import PlanError
from overheard.data.partition.people import People
from overheard.data.partition.schedule import DataShift
from overheard.data.splits.by_user import ByUser
from overheard.plans.kinds import question_of
from overheard.plans.plan import Plan, ThreatPlan
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from tests.auditing.peopled import Likeness, Resemblance
from tests.auditing.plans import DATA, MASKED, OPEN, TINY, changed
from tests.auditing.planted import Pull

ASKS, DOES_NOT = Pull(), MeanSoftmax()
BOTH = ThreatPlan(attacks=(ASKS, DOES_NOT))
TRULY = DataShift(client=0, round=1, weights=(2.0, *(1.0,) * 9))
EXCHANGE = DataShift(client=0, round=1)


def plan(*shifts: DataShift, threats: tuple[ThreatPlan, ...] = (BOTH,)) -> Plan:
    data = DATA.model_copy(update={"shifts": shifts})
    return changed(TINY, seeds=(0, 1, 2), arms=(OPEN, MASKED), data=data, threats=threats)


def test_a_run_has_a_control_where_something_shifts_and_somebody_asks():
    assert controls(plan(TRULY)) == (False, True)
    assert controls(plan(EXCHANGE, replace(TRULY, client=1))) == (False, True)


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
    assert [listens(question_of(ASKS), True), listens(question_of(ASKS), False)] == [True, True]
    assert [listens(question_of(DOES_NOT), True), listens(question_of(DOES_NOT), False)] == [
        False,
        True,
    ]
    assert rounds_alone(BOTH, question_of(ASKS), (0, 2)) == ()
    assert rounds_alone(BOTH, question_of(DOES_NOT), (0, 2)) == (0, 2)
    never = BOTH.model_copy(update={"by_round": False})
    assert rounds_alone(never, question_of(DOES_NOT), (0, 2)) == ()


def test_a_number_of_rounds_is_spread_over_the_run_whatever_its_length():
    some = ThreatPlan(attacks=(ASKS, DOES_NOT), by_round=3)
    assert rounds_alone(some, question_of(DOES_NOT), range(101)) == (0, 50, 100)
    assert rounds_alone(some, question_of(DOES_NOT), range(2)) == (0, 1)
    assert rounds_alone(some, question_of(ASKS), range(101)) == ()
    one = ThreatPlan(attacks=(DOES_NOT,), by_round=1)
    assert rounds_alone(one, question_of(DOES_NOT), range(101)) == (100,)
    # Of 101 rounds one cell of all, and three; of the other attack one.
    assert cells(plan(threats=(some,)), 101, False) == 1 + 3 + 1


def test_counts_a_round_of_a_run_and_a_cell_as_one_piece_each():
    # Of a run 2 rounds and 1 + (1 + 2) cells; of its control 2 rounds and 1 cell.
    assert cells(plan(TRULY), 2, False) == 4
    assert cells(plan(TRULY), 2, True) == 1
    # Three seeds and two arms.
    assert pieces(plan(TRULY)) == 6 * (2 + 4 + 2 + 1)
    assert pieces(plan()) == 6 * (2 + 4)


WHO = ThreatPlan(attacks=(Resemblance(), DOES_NOT, Likeness()))


def of_people(*threats: ThreatPlan, shifts: tuple[DataShift, ...] = ()) -> Plan:
    people = {"split": ByUser(), "people": People(), "shifts": shifts}
    return changed(TINY, data=DATA.model_copy(update=people), threats=threats)


def test_a_run_of_people_has_a_control_where_somebody_asks_who_they_are():
    assert controls(of_people(WHO)) == (False, True)
    assert control_of(of_people(WHO)) == "permutation"
    # Nobody asks, or nobody is anybody.
    assert controls(of_people(ThreatPlan(attacks=(DOES_NOT,)))) == (False,)
    assert controls(plan(threats=(WHO,))) == (False,)
    assert control_of(plan(threats=(WHO,))) is None


def test_who_asks_about_the_person_listens_to_controls_and_never_to_one_round():
    for attack in (Resemblance(), Likeness()):
        assert [listens(question_of(attack), True), listens(question_of(attack), False)] == [
            True,
            True,
        ]
        assert rounds_alone(WHO, question_of(attack), range(2)) == ()
    # Of the run one cell each of two attacks and three of the other, of the control two.
    assert cells(of_people(WHO), 2, False) == 1 + 3 + 1
    assert cells(of_people(WHO), 2, True) == 2
    assert pieces(of_people(WHO)) == 2 + 5 + 2 + 2


def test_one_plan_does_not_ask_who_shifts_and_who_somebody_is():
    for threats in (
        (ThreatPlan(attacks=(ASKS,)), WHO),
        (ThreatPlan(attacks=(ASKS, Resemblance())),),
    ):
        with pytest.raises(PlanError, match="each question has a control of its own: make two"):
            controls(of_people(*threats, shifts=(TRULY,)))
        # Where nothing shifts, or data are but exchanged, there is one control.
        assert controls(of_people(*threats)) == (False, True)
        assert controls(of_people(*threats, shifts=(EXCHANGE,))) == (False, True)
    # And where somebody shifts and nobody asks for it.
    assert controls(of_people(WHO, shifts=(TRULY,))) == (False, True)
