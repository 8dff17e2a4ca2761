"""Examples in the documentation are valid and run."""

import re
from pathlib import Path

import pytest

from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.gate.policy import Policy, read_policy
from overheard.plans.plan import parse_plan, read_plan
from overheard.plans.strict_model import parse_toml
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer
from overheard.testing.planted_runs.planted_labels import SKEWED, simulate_one_round

ROOT = Path(__file__).parent.parent
POLICY = ROOT / "plans" / "policy.toml"
PLANS = sorted(set((ROOT / "plans").glob("*.toml")) - {POLICY})


def block(page: str, language: str) -> str:
    match = re.search(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert match is not None
    return match[1]


def test_the_plan_of_the_readme_is_valid():
    plan = parse_plan(block("README.md", "toml"), "README.md")
    assert [arm.name for arm in plan.arms] == ["no defense", "local DP"]


def test_there_are_three_example_plans():
    assert [path.name for path in PLANS] == ["defenses.toml", "identity.toml", "shift.toml"]


def test_the_example_policy_names_arms_of_its_plan():
    policy, plan = read_policy(POLICY), read_plan(ROOT / "plans" / "defenses.toml")
    arms = {arm.name for arm in plan.arms}
    rules = (*policy.leaks, *policy.epsilons, *policy.costs)
    assert all(set(rule.arms) <= arms for rule in rules if rule.arms is not None)
    assert "plans/defenses.toml" in POLICY.read_text()


@pytest.mark.parametrize("page", ["check.md", "pipelines.md"])
def test_every_policy_in_the_docs_is_valid(page: str):
    text = (ROOT / "docs" / page).read_text()
    policies = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert len(policies) > 1
    for policy in policies:
        parse_toml(Policy, policy, page, "policy", has_dates=True)


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.name)
def test_every_example_plan_is_equal_after_writing_and_parsing(path: Path):
    plan = read_plan(path)
    assert parse_plan(plan.toml(), "as resolved") == plan
    assert not plan.arms[0].defenses
    assert len(plan.arms) > 1


def test_the_shift_plan_has_a_weight_per_label_and_shifts_when_data_are_refreshed():
    data = read_plan(ROOT / "plans" / "shift.toml").data
    (shift,) = data.shifts
    assert shift.weights is not None
    assert len(shift.weights) == 10
    assert data.refresh_every is not None
    assert shift.round % data.refresh_every == 0


def test_the_identity_plan_has_pseudonyms_and_one_adaptive_attacker():
    plan = read_plan(ROOT / "plans" / "identity.toml")
    assert plan.data.people is not None
    assert plan.data.background is not None
    assert {threat.pseudonyms for threat in plan.threats} == {"round", "run"}
    assert [("defenses" in threat.knows) for threat in plan.threats] == [False, True, False]


def test_the_example_attack_beats_the_uninformed_guess():
    namespace: dict[str, object] = {"__name__": "example"}
    exec(
        compile(block("docs/add-an-attack.md", "python"), "add-an-attack.md", "exec"), namespace
    )
    run, scorer = simulate_one_round(SKEWED), LabelSharesScorer()
    attack = namespace["RisingBias"]()
    claims = attack.infer(run.transcript.seen_by(SERVER), [client(0)], run.knowledge, Seed(0))
    truth = scorer.true_claim(run.truth, client(0), (0,), claims[client(0)])
    l1 = scorer.score(claims[client(0)], truth, scorer.guesses(truth, run.knowledge))[0]
    assert l1.gain > 0.1


def test_every_linked_page_exists():
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
