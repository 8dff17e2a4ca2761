"""What the documentation shows runs as it stands there."""

import re
from pathlib import Path

import pytest

from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.gate.policy import Policy, read_policy
from overheard.plans.plan import parse_plan, read_plan
from overheard.plans.table import parse_table
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer
from overheard.testing.worlds.planted import SKEWED, federate

ROOT = Path(__file__).parent.parent
POLICY = ROOT / "plans" / "policy.toml"
PLANS = sorted(set((ROOT / "plans").glob("*.toml")) - {POLICY})


def block(page: str, language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_plan_of_the_readme_is_a_plan():
    plan = parse_plan(block("README.md", "toml"), "README.md")
    assert [arm.name for arm in plan.arms] == ["no defense", "local DP"]


def test_there_is_an_example_plan_of_each_large_question():
    assert [path.name for path in PLANS] == ["defenses.toml", "identity.toml", "shift.toml"]


def test_the_example_policy_asks_for_arms_of_the_plan_that_it_names():
    policy, plan = read_policy(POLICY), read_plan(ROOT / "plans" / "defenses.toml")
    arms = {arm.name for arm in plan.arms}
    rules = (*policy.leaks, *policy.epsilons, *policy.costs)
    assert all(set(rule.arms) <= arms for rule in rules if rule.arms is not None)
    assert "plans/defenses.toml" in POLICY.read_text()


def test_every_policy_of_the_page_on_checks_is_a_policy():
    text = (ROOT / "docs" / "check.md").read_text()
    policies = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert len(policies) > 1
    for policy in policies:
        parse_table(Policy, policy, "docs/check.md", "policy")


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.name)
def test_every_example_plan_is_a_plan_that_survives_being_written_down(path: Path):
    plan = read_plan(path)
    assert parse_plan(plan.toml(), "as resolved") == plan
    assert not plan.arms[0].defenses
    assert len(plan.arms) > 1


def test_the_plan_of_a_shift_has_as_many_weights_as_labels_and_shifts_at_an_exchange():
    data = read_plan(ROOT / "plans" / "shift.toml").data
    (shift,) = data.shifts
    assert shift.weights is not None
    assert len(shift.weights) == 10
    assert data.refresh_every is not None
    assert shift.round % data.refresh_every == 0


def test_the_plan_of_identity_hides_names_and_lets_one_attacker_know_the_defenses():
    plan = read_plan(ROOT / "plans" / "identity.toml")
    assert plan.data.people is not None
    assert plan.data.background is not None
    assert {threat.pseudonyms for threat in plan.threats} == {"round", "run"}
    assert [("defenses" in threat.knows) for threat in plan.threats] == [False, True, False]


def test_the_example_attack_beats_a_blind_guess():
    home: dict[str, object] = {"__name__": "example"}
    exec(compile(block("docs/add-an-attack.md", "python"), "add-an-attack.md", "exec"), home)
    run, scorer = federate(SKEWED), LabelSharesScorer()
    attack = home["RisingBias"]()
    claims = attack.infer(run.transcript.seen_by(SERVER), [client(0)], run.knowledge, Seed(0))
    truth = scorer.truth(run.truth, client(0), (0,), claims[client(0)])
    l1 = scorer.score(claims[client(0)], truth, scorer.guesses(truth, run.knowledge))[0]
    assert l1.gain > 0.1


def test_every_page_that_is_linked_is_there():
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
