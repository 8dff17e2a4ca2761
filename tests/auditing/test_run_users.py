"""Identity attacks with client names and round pseudonyms, and their controls."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from overheard.auditing.folder import AuditFolder
from overheard.auditing.progress import ProgressStep
from overheard.auditing.simulate import knowledge, simulate
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.messages import Update
from overheard.core.parties import client, is_shadow_device
from overheard.core.true_facts.attributes import Attributes
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.data.datasets.custom import Own
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.findings.audit import Audit
from overheard.findings.finding import Finding
from overheard.plans.plan import ThreatPlan
from tests.auditing.conftest import HERE, FinishedAudit, audit_here
from tests.auditing.plans import replace_tables
from tests.auditing.user_plans import (
    IDENTITY_THREAT,
    PSEUDONYM_THREAT,
    USERS,
    Likeness,
    user_plan,
)

KNOWN = KnownUserSettings(prior="random", unseen=1, holdout=1, shadow_devices=True)


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> FinishedAudit:
    """Six of eight users in three rounds: five are known, one is unseen, one is held out."""
    folder = tmp_path_factory.mktemp("people")
    plan, steps = (
        user_plan(folder, IDENTITY_THREAT, PSEUDONYM_THREAT, people=KNOWN),
        list[ProgressStep](),
    )
    found = audit_here(plan, folder / "out", on_step=steps.append)
    return FinishedAudit(found, folder / "out", tuple(steps))


def of(found: Audit, attack: str, *, is_control: bool = False) -> list[Finding]:
    return [
        one
        for one in found.findings
        if one.cell.attack.startswith(attack) and one.cell.is_control is is_control
    ]


def top1(findings: list[Finding]) -> list[float]:
    return [score.value for one in findings for score in one.scores if score.name == "top1"]


UNDER_ONE = "resemblance, without"
BY_EACH = "resemblance, one pseudonym a round"


def test_makes_one_claim_per_client_in_the_run_and_its_control(named: FinishedAudit):
    for is_control in (False, True):
        heard = of(named.audit, UNDER_ONE, is_control=is_control)
        # Shadow devices, which are the server's own, are no targets.
        assert [one.target for one in heard] == [client(number) for number in range(6)]
        assert {one.cell.rounds for one in heard} == {(0, 1, 2)}
    assert named.audit.refusals == ()


def test_every_update_is_a_target_under_round_pseudonyms(named: FinishedAudit):
    for attack in (BY_EACH, "likeness"):
        heard = of(named.audit, attack)
        assert len({one.target for one in heard}) == len(heard) == 3 * 6
        assert {one.target.partition("/")[0] for one in heard} == {"anon"}
        assert {one.cell.rounds for one in heard} == {(0, 1, 2)}
        # Each of six users sent three of them.
        users = [one.true_user for one in heard]
        assert {users.count(user) for user in users} == {3}
        behind = [one.client for one in heard]
        assert {behind.count(client(number)) for number in range(6)} == {3}


def test_the_unseen_user_is_a_target_but_not_a_candidate(named: FinishedAudit):
    heard = of(named.audit, UNDER_ONE)
    candidates = set(heard[0].claimed.candidates)
    assert len(candidates) == 5
    true = {one.true_user for one in heard}
    assert len(true) == 6
    assert true < set(USERS)
    assert candidates < true
    (unseen,) = (one for one in heard if one.true_user not in candidates)
    assert top1([unseen]) == []
    assert len(top1(heard)) == 5


def test_re_identifies_users_in_the_run_and_not_in_the_control(named: FinishedAudit):
    # Every one of five has labels of its own; a guess is right once in five times, and four
    # times or more once in 150.
    assert sum(top1(of(named.audit, UNDER_ONE))) >= 4
    assert sum(top1(of(named.audit, UNDER_ONE, is_control=True))) <= 3
    # 15 updates; in the control 3 on average, but those of one sender are correlated.
    assert sum(top1(of(named.audit, BY_EACH))) >= 11
    assert sum(top1(of(named.audit, BY_EACH, is_control=True))) <= 8


def test_the_control_is_a_separate_run_with_the_same_users(named: FinishedAudit):
    assert [(run.seed, run.is_control) for run in named.audit.arms] == [(0, False), (0, True)]
    users = [
        {one.target: one.true_user for one in of(named.audit, UNDER_ONE, is_control=control)}
        for control in (False, True)
    ]
    assert users[0] == users[1]


def test_progress_counts_runs_and_cells(named: FinishedAudit):
    # A run and its control: 3 rounds and three cells each.
    assert {step.total for step in named.steps} == {2 * (3 + 3)}
    assert named.steps[-1].done == 12


def test_the_subject_states_the_prior_knowledge_about_users(named: FinishedAudit):
    assert named.audit.subject.endswith(
        "; clients stand for users, and the attacker has up to 50% of each user's examples, "
        "at random, each on a shadow device in the run; it has no examples of 1 client; it "
        "also has examples of 1 user known to take no part"
    )


def test_a_recorded_run_with_users_gives_the_same_claims(named: FinishedAudit, tmp_path: Path):
    plan = user_plan(tmp_path, IDENTITY_THREAT, PSEUDONYM_THREAT, people=KNOWN)
    recording = AuditFolder(named.folder).run_path("open", 0)
    found = audit_here(plan, tmp_path / "out", recording=recording)
    for attack in (UNDER_ONE, BY_EACH, "likeness"):
        there = [(one.target, one.claimed.numbers, one.true_user) for one in of(found, attack)]
        assert there == [
            (one.target, one.claimed.numbers, one.true_user) for one in of(named.audit, attack)
        ]


def test_only_the_attacker_knows_the_shadow_devices(tmp_path: Path):
    plan = user_plan(tmp_path, IDENTITY_THREAT, people=KNOWN)
    transcript, truth = simulate(plan, folder=tmp_path / "run", resources=HERE)
    known = KnownUsers.of(knowledge(plan, resources=HERE))
    sent = {m.sender for m in transcript.messages if isinstance(m.body, Update)}
    assert set(filter(is_shadow_device, sent)) == known.shadow_devices.keys()
    assert len(known.shadow_devices) == 5 + 1
    users = truth.facts.need(UsersOfClients).users
    assert not any(is_shadow_device(who) for who in users)
    assert not any(is_shadow_device(who) for _, who in truth.facts.need(LabelCounts).counts)
    assert (
        set(known.shadow_devices.values()) == known.prior_examples.keys() | known.holdout.keys()
    )
    assert known.attributes["hand"].keys() == known.all_prior_examples().keys()
    assert truth.facts.need(Attributes).attributes["hand"] == {
        user: "left" if number % 2 == 0 else "right" for number, user in enumerate(USERS)
    }
    assert len(set(users.values()) - known.prior_examples.keys()) == 1


def test_refuses_users_that_never_take_part(tmp_path: Path):
    plan = user_plan(tmp_path, IDENTITY_THREAT, people=KnownUserSettings(prior="random"))
    # Three rounds of one client each: three of six at most send anything.
    seldom = replace_tables(
        plan, training=plan.training.model_copy(update={"participation": 0.1})
    )
    found = audit_here(seldom, tmp_path / "out")
    claimed = {one.target for one in of(found, UNDER_ONE)}
    refused = {one.target for one in found.refusals if not one.cell.is_control}
    assert 1 <= len(claimed) <= 3
    assert claimed | refused == {client(number) for number in range(6)}
    # Those who sent nothing may be named nonetheless.
    assert len(of(found, UNDER_ONE)[0].claimed.candidates) == 6


def test_refuses_identity_claims_if_clients_have_no_users(tmp_path: Path):
    linking = ThreatPlan(attacks=(Likeness(),))
    plan = user_plan(tmp_path, linking, IDENTITY_THREAT, people=None)
    found = audit_here(plan, tmp_path / "out")
    assert found.findings == ()
    assert not any(run.is_control for run in found.arms)
    whys = {one.cell.attack: one.missing[0] for one in found.refusals}
    assert "assign users to clients (data.people in a plan" in whys["likeness"]
    (why,) = (why for attack, why in whys.items() if attack.startswith(UNDER_ONE))
    assert "prior examples of two users or more" in why
    assert len(found.refusals) == 12


def test_profiles_are_candidates_for_every_client(tmp_path: Path):
    plan = user_plan(tmp_path, IDENTITY_THREAT, people=KnownUserSettings(prior="profile"))
    found = audit_here(plan, tmp_path / "out")
    heard = of(found, UNDER_ONE)
    assert {one.claimed.candidates for one in heard} == {("a", "b", "c", "d")}
    # For most of the six clients the top candidate is their main label.
    assert sum(top1(heard)) >= 4


def test_handles_users_with_one_example_duplicates_and_absent_users(
    tmp_path: Path,
):
    rows = np.random.default_rng(0).normal(size=(40, 2))
    twins = np.concatenate([rows[:10], rows[:10]])
    # "once" has one row; "twin-1" and "twin-2" have the same ten.
    table = pd.DataFrame(
        {
            "user": ["ann"] * 10 + ["bob"] * 10 + ["twin-1"] * 10 + ["twin-2"] * 10 + ["once"],
            "label": [*"ab" * 20, "a"],
        }
    )
    table["x"], table["y"] = np.concatenate([rows[20:], twins, rows[:1] + 1]).T
    table.to_csv(tmp_path / "odd.csv", index=False)
    plan = user_plan(
        tmp_path,
        IDENTITY_THREAT,
        PSEUDONYM_THREAT,
        people=KnownUserSettings(shadow_devices=True),
    )
    source = Own(str(tmp_path / "odd.csv"), user="user")
    users = source.load(None).users
    assert users is not None
    present = len(users.unique())
    data = plan.data.model_copy(update={"source": source, "clients": present})
    found = audit_here(replace_tables(plan, data=data), tmp_path / "out")
    heard = of(found, UNDER_ONE)
    assert len(heard) == present
    assert set(heard[0].claimed.candidates) == {"ann", "bob", "twin-1", "twin-2"}
    # The attacker does not know "once", whose only row may also be in the test set.
    strangers = {one.true_user for one in heard} - set(heard[0].claimed.candidates)
    assert strangers <= {"once"}
    assert len(strangers) == present - 4
    assert found.refusals == ()
