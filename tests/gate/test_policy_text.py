"""A written policy is the policy, whatever the names in the findings."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from overheard.gate.policy import Policy
from overheard.gate.reference_policy import policy_like, policy_text
from overheard.gate.rule_sources import rule_sources
from overheard.plans.strict_model import parse_toml
from tests.gate.documents import epsilon_row, findings, run, summary_row, verdict_row


@given(st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=200))
def test_the_text_is_read_as_the_same_policy(name: str) -> None:
    found = findings(
        summary_row(0.6, 0.7, arm=name, attack=name),
        title=name,
        arms=[run(name), run(name, 1)],
        epsilon=[epsilon_row(arm=name)],
        verdicts=[
            verdict_row(arm=name, score="membership_auc"),
            verdict_row("inconclusive", None, arm=name, about="cohort"),
        ],
    )
    made = policy_like(found, Path("f.json"))
    text = policy_text(made)
    assert parse_toml(Policy, text, "p", "policy") == made.policy
    lines = text.splitlines()
    sources = rule_sources(made.policy, Path("p"), text)
    assert {lines[line - 1] for line in sources.lines.values()} == {
        "[[verdicts]]", "[[leaks]]", "[[epsilons]]", "[[costs]]",
    }  # fmt: skip
