"""The runs and controls of a plan, the attacks on them, and the number of work items."""

from dataclasses import replace

import pytest

from overheard.auditing.work_items import (
    applies_to_run,
    control_flags,
    control_kind,
    count_cells,
    count_work_items,
    single_rounds,
)
from overheard.core.errors import PlanError
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.partition.schedule import DataShift
from overheard.data.splits.by_user import ByUser
from overheard.plans.plan import Plan, ThreatPlan
from overheard.plans.registries import question_of_attack
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from tests.auditing.plans import DATA, NO_DEFENSE, SECURE_AGGREGATION, TINY, replace_tables
from tests.auditing.shift_attack import Pull
from tests.auditing.user_plans import Likeness, Resemblance

ASKS, DOES_NOT = Pull(), MeanSoftmax()
BOTH = ThreatPlan(attacks=(ASKS, DOES_NOT))
TRULY = DataShift(client=0, round=1, weights=(2.0, *(1.0,) * 9))
EXCHANGE = DataShift(client=0, round=1)


def plan(*shifts: DataShift, threats: tuple[ThreatPlan, ...] = (BOTH,)) -> Plan:
    data = DATA.model_copy(update={"shifts": shifts})
    return replace_tables(
        TINY, seeds=(0, 1, 2), arms=(NO_DEFENSE, SECURE_AGGREGATION), data=data, threats=threats
    )


def test_a_run_has_a_control_if_data_shift_and_an_attack_asks_for_it():
    assert control_flags(plan(TRULY)) == (False, True)
    assert control_flags(plan(EXCHANGE, replace(TRULY, client=1))) == (False, True)


@pytest.mark.parametrize(
    "uncontrolled",
    [
        plan(),
        plan(EXCHANGE),
        plan(TRULY, threats=(ThreatPlan(attacks=(DOES_NOT,)),)),
    ],
    ids=["no shift", "an exchange alone", "nobody asks"],
)
def test_other_plans_have_no_control(uncontrolled: Plan):
    assert control_flags(uncontrolled) == (False,)


def test_only_shift_attacks_run_on_controls_and_never_on_single_rounds():
    assert [
        applies_to_run(question_of_attack(ASKS), True),
        applies_to_run(question_of_attack(ASKS), False),
    ] == [True, True]
    assert [
        applies_to_run(question_of_attack(DOES_NOT), True),
        applies_to_run(question_of_attack(DOES_NOT), False),
    ] == [
        False,
        True,
    ]
    assert single_rounds(BOTH, question_of_attack(ASKS), (0, 2)) == ()
    assert single_rounds(BOTH, question_of_attack(DOES_NOT), (0, 2)) == (0, 2)
    never = BOTH.model_copy(update={"by_round": False})
    assert single_rounds(never, question_of_attack(DOES_NOT), (0, 2)) == ()


def test_single_rounds_are_evenly_spaced_over_the_run():
    some = ThreatPlan(attacks=(ASKS, DOES_NOT), by_round=3)
    assert single_rounds(some, question_of_attack(DOES_NOT), range(101)) == (0, 50, 100)
    assert single_rounds(some, question_of_attack(DOES_NOT), range(2)) == (0, 1)
    assert single_rounds(some, question_of_attack(ASKS), range(101)) == ()
    one = ThreatPlan(attacks=(DOES_NOT,), by_round=1)
    assert single_rounds(one, question_of_attack(DOES_NOT), range(101)) == (100,)
    # Of 101 rounds one cell of all, and three; of the other attack one.
    assert count_cells(plan(threats=(some,)), 101, False) == 1 + 3 + 1


def test_counts_rounds_and_cells_as_work_items():
    # Of a run 2 rounds and 1 + (1 + 2) cells; of its control 2 rounds and 1 cell.
    assert count_cells(plan(TRULY), 2, False) == 4
    assert count_cells(plan(TRULY), 2, True) == 1
    # Three seeds and two arms.
    assert count_work_items(plan(TRULY)) == 6 * (2 + 4 + 2 + 1)
    assert count_work_items(plan()) == 6 * (2 + 4)


WHO = ThreatPlan(attacks=(Resemblance(), DOES_NOT, Likeness()))


def of_people(*threats: ThreatPlan, shifts: tuple[DataShift, ...] = ()) -> Plan:
    people = {"split": ByUser(), "people": KnownUserSettings(), "shifts": shifts}
    return replace_tables(TINY, data=DATA.model_copy(update=people), threats=threats)


def test_a_run_of_users_has_a_control_if_an_attack_asks_for_identities():
    assert control_flags(of_people(WHO)) == (False, True)
    assert control_kind(of_people(WHO)) == "permutation"
    # Without an identity attack, or without users.
    assert control_flags(of_people(ThreatPlan(attacks=(DOES_NOT,)))) == (False,)
    assert control_flags(plan(threats=(WHO,))) == (False,)
    assert control_kind(plan(threats=(WHO,))) is None


def test_identity_attacks_run_on_controls_and_never_on_single_rounds():
    for attack in (Resemblance(), Likeness()):
        assert [
            applies_to_run(question_of_attack(attack), True),
            applies_to_run(question_of_attack(attack), False),
        ] == [
            True,
            True,
        ]
        assert single_rounds(WHO, question_of_attack(attack), range(2)) == ()
    # Of the run one cell each of two attacks and three of the other, of the control two.
    assert count_cells(of_people(WHO), 2, False) == 1 + 3 + 1
    assert count_cells(of_people(WHO), 2, True) == 2
    assert count_work_items(of_people(WHO)) == 2 + 5 + 2 + 2


def test_refuses_a_plan_with_shift_and_identity_attacks():
    for threats in (
        (ThreatPlan(attacks=(ASKS,)), WHO),
        (ThreatPlan(attacks=(ASKS, Resemblance())),),
    ):
        with pytest.raises(
            PlanError, match="need different control runs: split the plan in two"
        ):
            control_flags(of_people(*threats, shifts=(TRULY,)))
        # Where nothing shifts, or data are but exchanged, there is one control.
        assert control_flags(of_people(*threats)) == (False, True)
        assert control_flags(of_people(*threats, shifts=(EXCHANGE,))) == (False, True)
    # With a shift but without a shift attack.
    assert control_flags(of_people(WHO, shifts=(TRULY,))) == (False, True)
