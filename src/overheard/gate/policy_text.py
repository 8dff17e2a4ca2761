"""A policy made of findings as the text of a TOML file, with the reason of each limit."""

from collections.abc import Iterator

import tomli_w

from overheard.findings.names import shorten
from overheard.gate.policy import PolicyRule
from overheard.gate.reference_policy import ReferencePolicy
from overheard.gate.rule_help import rule_kind
from overheard.gate.verdict import MAX_LENGTH


def policy_text(made: ReferencePolicy) -> str:
    """Return the TOML of the policy; `read_policy` reads the same policy from it.

    The findings behind each limit are comments.
    """
    sentences = (*made.origin, *made.warnings)
    head = "".join(f"# {shorten(sentence, MAX_LENGTH)}\n" for sentence in sentences)
    rules = "".join(
        part for rule in made.policy.rules for part in _rule(rule, made.reasons[rule.name])
    )
    return f'{head}\nstraddles = "{made.policy.straddles}"\n{rules}'


def _rule(rule: PolicyRule, reason: str) -> Iterator[str]:
    yield f"\n[[{rule_kind(rule)}]]\n"
    yield f"# Reference: {shorten(reason, MAX_LENGTH)}.\n"
    # Settings at their defaults are left out.
    yield tomli_w.dumps(rule.model_dump(exclude_defaults=True, mode="json"))
