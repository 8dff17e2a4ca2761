"""Policies are parsed strictly; schema, text and lines of rules agree with the parser."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import PlanError
from overheard.gate.policy import Policy, read_policy
from overheard.gate.policy_schema import policy_schema
from overheard.gate.reference_policy import policy_like, policy_text
from overheard.gate.rule_sources import RuleSources, find_rule_sources
from overheard.plans.schema.plan_schema import nested_table, schema_tables
from overheard.plans.strict_model import parse_toml
from tests.gate.documents import epsilon_row, findings, run, summary_row, verdict_row

LEAK = '[[leaks]]\nname = "a"\nquestion = "membership"\nscore = "membership_auc"\n'
EPSILON = '[[epsilons]]\nname = "c"\n'
COST = '[[costs]]\nname = "b"\n'


def test_reads_rules_with_their_defaults(tmp_path: Path):
    path = tmp_path / "policy.toml"
    path.write_text(f"{LEAK}no_better_than = 1\n{COST}bytes_at_most = 1_000")
    policy = read_policy(path)
    (leak,), (cost,) = policy.leaks, policy.costs
    assert (leak.no_better_than, leak.arms, leak.rounds) == (1.0, None, "together")
    assert (leak.seeds_at_least, cost.seeds_at_least) == (1, 2)
    assert (policy.straddles, leak.straddles) == ("inconclusive", None)
    assert not policy.needs_earlier_findings


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        ("", ["policy: the policy has no rules: add [[verdicts]], [[leaks]],"]),
        (
            LEAK,
            ["leaks.0: set exactly one of no_better_than, gain_at_most, grows_at_most; 0 are"],
        ),
        (
            f"{LEAK}no_better_than = 0.6\ngain_at_most = 0.1",
            ["leaks.0: set exactly one of", "; 2 are"],
        ),
        (f"{COST}accuracy_at_least = 0.5\nbytes_at_most = 1", ["costs.0: set exactly one of"]),
        (f"{COST}accuracy_at_least = 50", ["costs.0.accuracy_at_least: must be at most 1"]),
        (f"{LEAK}no_better_than = nan", ["leaks.0.no_better_than: must be a finite number"]),
        (f"{LEAK}gain_at_most = inf", ["leaks.0.gain_at_most: must be a finite number"]),
        (f"{LEAK}gain_at_most = -0.1", ["leaks.0.gain_at_most"]),
        (f'{LEAK}no_better_than = "0.6"', ["leaks.0.no_better_than: must be a number"]),
        (f"{LEAK}no_better_than = 0.6\narms = []", ["leaks.0.arms"]),
        (f'{LEAK}no_better_than = 0.6\nobservers = ["../x"]', ["leaks.0.observers: the party"]),
        (f'{LEAK}no_better_than = 0.6\nrounds = "all"', ["leaks.0.rounds"]),
        (f'straddles = "ignore"\n{LEAK}no_better_than = 0.6', ["straddles"]),
        (f"{LEAK}no_better_than = 0.6\n" * 2, ["policy: given more than once: a"]),
        (
            f"{EPSILON}proven_at_most = 1\n{COST}bytes_at_most = 1".replace('"b"', '"c"'),
            ["policy: given more than once: c"],
        ),
        (
            EPSILON,
            ["epsilons.0: set exactly one of guaranteed_at_most, proven_at_most, claims_hold"],
        ),
        (
            f"{EPSILON}claims_hold = true\nproven_at_most = 1",
            ["epsilons.0: set exactly one of", "; 2"],
        ),
        (f"{EPSILON}claims_hold = false", ["epsilons.0: set exactly one of", "; 0 are set"]),
        (f"{EPSILON}claims_hold = 1", ["epsilons.0.claims_hold: must be true or false"]),
        (f"{EPSILON}guaranteed_at_most = inf", ["epsilons.0.guaranteed_at_most: must be "]),
        (f"{EPSILON}guaranteed_at_most = -1", ["epsilons.0.guaranteed_at_most: must be "]),
        (f"{EPSILON}proven_at_most = true", ["epsilons.0.proven_at_most: must be "]),
        (f"{EPSILON}claims_hold = true\nmechanisms = []", ["epsilons.0.mechanisms"]),
        (
            f'{EPSILON}claims_hold = true\nobservers = ["a b"]',
            ["epsilons.0.observers: the party"],
        ),
        (f"{LEAK}no_better_than = 0.6\nobservers = []", ["leaks.0.observers"]),
        (f'{EPSILON}claims_hold = true\nstraddles = "pass"', ["epsilons.0.straddles: Extra"]),
        (
            f'{LEAK}no_beter_than = "x"\n{COST}bytes_at_most = -1',
            ["2 errors to fix", "leaks.0.no_beter_than: Extra inputs", "costs.0.bytes_at_most"],
        ),
        ("[[leaks", ["not TOML"]),
        ("since = 2024-01-01", ["since: Extra inputs"]),
        ("since = 2024-01-01T10:00:00", ["a policy must not contain times"]),
    ],
)
def test_lists_every_mistake_with_its_place(text: str, mistakes: list[str], tmp_path: Path):
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(PlanError) as refused:
        read_policy(path)
    assert str(path) in str(refused.value)
    for mistake in mistakes:
        assert mistake in str(refused.value)


TABLES = {table.path: table for table in schema_tables(policy_schema())}

LIMITS = {
    "leaks": ("no_better_than", "gain_at_most", "grows_at_most"),
    "epsilons": ("guaranteed_at_most", "proven_at_most", "claims_hold"),
    "costs": ("accuracy_at_least", "bytes_at_most", "seconds_at_most"),
    "sums": ("resolution_at_most", "smallest_group_at_least"),
}
"""Limits of which a rule sets one."""

EXAMPLES = [
    (path, name)
    for path, table in TABLES.items()
    for name, key in table.keys.items()
    if nested_table(key) is None
]


@pytest.mark.parametrize(("path", "name"), EXAMPLES)
def test_a_policy_accepts_the_example_of_every_key(path: str, name: str):
    keys = TABLES[path].keys
    rule = {one: keys[one]["examples"][0] for one in TABLES[path].required | {name}}
    if path in LIMITS and name not in LIMITS[path]:
        limit = LIMITS[path][0]
        rule[limit] = keys[limit]["examples"][0]
    # Any: a policy holds values of any type.
    policy: dict[str, Any] = {"verdicts": [{"name": "a rule"}]}
    if path == "exceptions":
        policy["verdicts"] = [{"name": TABLES["exceptions"].keys["rule"]["examples"][0]}]
    policy |= {path: [rule]} if path else rule
    Policy.model_validate_json(json.dumps(policy))


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
    sources = find_rule_sources(made.policy, Path("p"), text)
    assert {lines[line - 1] for line in sources.lines.values()} == {
        "[[verdicts]]", "[[leaks]]", "[[epsilons]]", "[[costs]]",
    }  # fmt: skip


TEXT = """# A policy.
[[verdicts]]
name = "a"

 [[ costs ]]  # spaced
name = "b"
bytes_at_most = 1
[[verdicts]]
name = "c"
"""


def lines(text: str) -> dict[str, int]:
    policy = parse_toml(Policy, text, "p", "policy")
    return dict(find_rule_sources(policy, Path("p"), text).lines)


def test_each_rule_has_the_line_of_its_header() -> None:
    assert lines(TEXT) == {"a": 2, "c": 8, "b": 5}


def test_rules_in_an_inline_array_have_no_line() -> None:
    inline = 'verdicts = [{name = "a"}]\n[[costs]]\nname = "b"\nbytes_at_most = 1\n'
    assert lines(inline) == {"b": 2}


def test_a_header_inside_a_text_gives_no_wrong_line() -> None:
    assert lines('[[verdicts]]\nname = """\n[[verdicts]]\n"""\n') == {}


def test_the_path_is_shown_relative_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "work"
    inside.mkdir()
    monkeypatch.chdir(inside)
    assert RuleSources(inside / "ci" / "p.toml").shown_path == "ci/p.toml"
    assert RuleSources(Path("ci/../p.toml")).shown_path == "p.toml"
    assert RuleSources(tmp_path / "p.toml").shown_path == "p.toml"
