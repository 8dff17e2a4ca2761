"""The runs and controls of a plan, the attacks on them, and the number of work items."""

from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.program import (
    AttackSpec,
    AuditProgram,
    name_observers_of_run,
    resolve_plan,
    single_rounds,
)
from overheard.auditing.run_kinds import (
    PLANNED,
    RunKind,
    control_kind,
    first_control,
    kinds_drawn_together,
    run_kinds,
)
from overheard.core.errors import PlanError
from overheard.core.parties import Party
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


NATURAL = RunKind("exchange", "natural")
EXACT = RunKind("exchange", "exact", is_first=False)
PERMUTED = (PLANNED, RunKind("permutation"))


def named(observers: tuple[str, ...], *parties: str, more: tuple[ThreatPlan, ...] = ()):
    """Return the observers of each threat in a run with these parties."""
    threat = ThreatPlan(attacks=(DOES_NOT,), observers=observers)
    asked = replace_tables(TINY, threats=(threat, *more))
    found = name_observers_of_run(asked, [Party(name) for name in parties])
    return [one.observer_parties for one in found]


def resolved(asked: Plan) -> AuditProgram:
    return resolve_plan(asked, {"digits": "12"})


def counts(asked: Plan) -> list[int]:
    """Return the number of cells of each run of the first arm and seed."""
    kinds = len(run_kinds(asked))
    return [sum(map(len, run.attacks)) for run in resolved(asked).runs[:kinds]]


NODES = ("server", "client/10", "client/9", "shadow/0")


def test_the_first_client_is_the_first_by_name_and_number():
    assert named(("client/first",), *NODES) == [("client/9",)]
    assert named(("client/first", "server"), *NODES) == [("client/9", "server")]
    assert named(("client/first", "client/9"), *NODES) == [("client/9",)]
    # A client may have this name.
    assert named(("client/first",), *NODES, "client/first") == [("client/first",)]


def test_each_client_observes_in_turn_in_a_threat_of_its_own():
    assert named(("client/*",), *NODES, "ward") == [("ward",), ("client/9",), ("client/10",)]
    assert named(("ward", "client/*"), *NODES, "ward") == [
        ("ward", "client/9"),
        ("ward", "client/10"),
    ]


def test_refuses_threats_that_stand_for_the_same_observers():
    other = ThreatPlan(attacks=(DOES_NOT,), observers=("client/9",))
    with pytest.raises(PlanError, match="mean_softmax by client/9: remove the observers"):
        named(("client/*",), *NODES, more=(other,))


def test_refuses_the_first_of_no_clients():
    with pytest.raises(PlanError, match="client/first is not a party of the run"):
        named(("client/first",), "server")


def test_a_run_has_both_controls_if_data_shift_and_an_attack_asks_for_them():
    assert run_kinds(plan(TRULY)) == (PLANNED, NATURAL, EXACT)
    assert run_kinds(plan(EXCHANGE, replace(TRULY, client=1))) == (PLANNED, NATURAL, EXACT)


def test_a_plan_sets_how_many_controls_of_each_kind_there_are():
    def kinds(**settings: object) -> list[tuple[str, int, str]]:
        changed = plan(TRULY)
        data = changed.data.model_copy(update=settings)
        found = run_kinds(changed.model_copy(update={"data": data}))[1:]
        return [(one.draws, one.number, one.folder_suffix) for one in found]

    assert kinds(natural_controls=2) == [
        ("natural", 0, "-control"),
        ("natural", 1, "-control-natural-1"),
        ("exact", 0, "-control-exact-0"),
    ]
    assert kinds(exact_controls=0) == [("natural", 0, "-control")]
    assert kinds(natural_controls=0) == [("exact", 0, "-control")]
    # Where the planned run copies label counts, natural controls would differ in more than
    # the shift.
    assert kinds(exchanges="exact") == [("exact", 0, "-control")]
    assert kinds(natural_controls=0, exact_controls=0) == []


def test_the_first_control_of_a_plan_that_needs_none_draws_as_the_plan_does():
    assert first_control(plan(TRULY)) == first_control(plan(EXCHANGE)) == NATURAL
    data = DATA.model_copy(update={"natural_controls": 0, "exact_controls": 0})
    assert first_control(replace_tables(TINY, data=data)) == NATURAL


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
    assert run_kinds(uncontrolled) == (PLANNED,)


def test_only_shift_attacks_run_on_controls_and_never_on_single_rounds():
    def attacks(kind: RunKind) -> list[AttackSpec]:
        return [
            cell
            for run in resolved(plan(TRULY)).runs
            if run.kind == kind
            for cell in run.attacks
        ]

    planned, control = attacks(PLANNED), attacks(NATURAL)
    assert {one.attack for one in planned} == {ASKS, DOES_NOT}
    assert {one.attack for one in control} == {ASKS}
    assert {one.single_rounds for one in planned if one.attack == DOES_NOT} == {(0, 1)}
    assert {one.single_rounds for one in (*planned, *control) if one.attack == ASKS} == {()}
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
    # One cell of all rounds, and two; of the other attack one.
    assert counts(plan(threats=(some,))) == [1 + 2 + 1]


def test_counts_rounds_and_cells_as_work_items():
    # Of a run 2 rounds and 1 + (1 + 2) cells; of each of two controls 2 rounds and 1 cell.
    assert counts(plan(TRULY)) == [4, 1, 1]
    # Three seeds and two arms.
    assert len(resolved(plan(TRULY))) == 6 * (2 + 4 + 2 * (2 + 1))
    assert len(resolved(plan())) == 6 * (2 + 4)


def test_runs_follow_arm_by_arm_each_with_its_controls_and_its_folder():
    runs = resolved(plan(TRULY)).runs
    assert len({run.folder for run in runs}) == len(runs) == 2 * 3 * 3
    first = [(run.name, run.seed, run.kind) for run in runs[:4]]
    assert first == [
        *(("no defense", 0, kind) for kind in (PLANNED, NATURAL, EXACT)),
        ("no defense", 1, PLANNED),
    ]
    assert runs[1].folder == Path("runs", "no_defense-seed0-control")
    assert {cell.cell.seed for cell in runs[3].attacks} == {1}
    assert {cell.cell.control for cell in runs[1].attacks} == {"natural"}
    assert {run.name for run in runs[9:]} == {"secure aggregation"}


WHO = ThreatPlan(attacks=(Resemblance(), DOES_NOT, Likeness()))


def of_users(*threats: ThreatPlan, shifts: tuple[DataShift, ...] = ()) -> Plan:
    users = {"split": ByUser(), "people": KnownUserSettings(), "shifts": shifts}
    return replace_tables(TINY, data=DATA.model_copy(update=users), threats=threats)


def test_a_run_of_users_has_a_control_if_an_attack_asks_for_identities():
    assert run_kinds(of_users(WHO)) == PERMUTED
    assert control_kind(of_users(WHO)) == "permutation"
    # Without an identity attack, or without users.
    assert run_kinds(of_users(ThreatPlan(attacks=(DOES_NOT,)))) == (PLANNED,)
    assert run_kinds(plan(threats=(WHO,))) == (PLANNED,)
    assert control_kind(plan(threats=(WHO,))) is None


def test_identity_attacks_run_on_controls_and_never_on_single_rounds():
    # Of the run one cell each of two attacks and three of the other, of the control two.
    assert counts(of_users(WHO)) == [1 + 3 + 1, 2]
    assert len(resolved(of_users(WHO))) == 2 + 5 + 2 + 2


def test_refuses_a_plan_with_shift_and_identity_attacks():
    for threats in (
        (ThreatPlan(attacks=(ASKS,)), WHO),
        (ThreatPlan(attacks=(ASKS, Resemblance())),),
    ):
        with pytest.raises(
            PlanError, match="need different control runs: split the plan in two"
        ):
            run_kinds(of_users(*threats, shifts=(TRULY,)))
        # A single run of it can be simulated, so its examples are drawn.
        drawn = kinds_drawn_together(of_users(*threats, shifts=(TRULY,)))
        assert drawn == (PLANNED, NATURAL, EXACT, *PERMUTED[1:])
        # Where nothing shifts, or data are but exchanged, there is one control.
        assert run_kinds(of_users(*threats)) == PERMUTED
        assert run_kinds(of_users(*threats, shifts=(EXCHANGE,))) == PERMUTED
    # With a shift but without a shift attack.
    assert run_kinds(of_users(WHO, shifts=(TRULY,))) == PERMUTED
