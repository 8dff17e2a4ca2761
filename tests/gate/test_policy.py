"""Policies are parsed strictly."""

from pathlib import Path

import pytest

from overheard.core.errors import PlanError
from overheard.gate.policy import read_policy

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
