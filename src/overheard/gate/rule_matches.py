"""Selects the findings that a rule applies to, and describes what is missing."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from overheard.findings.document import FindingsDocument
from overheard.findings.document_rows import RefusalRow, RowKey, SummaryRow
from overheard.gate.policy import EpsilonRule, LeakRule, VerdictRule


@dataclass(frozen=True, slots=True)
class RuleMatches:
    """The findings of one audit that a rule applies to.

    Args:
        rows: the rows of the rule's score.
        refusals: the refusals of attacks on the rule's question, by place.

    """

    rows: tuple[SummaryRow, ...]
    refusals: Mapping[RowKey, tuple[RefusalRow, ...]]

    def counterpart(self, row: SummaryRow) -> SummaryRow | None:
        """Return the row with the same place and direction, if there is one."""
        same_place = (one for one in self.rows if one.key == row.key)
        return next((one for one in same_place if one.better == row.better), None)


def match_rule(rule: LeakRule, findings: FindingsDocument) -> RuleMatches:
    """Return the findings that a rule applies to.

    For "together", only an attack's rows or refusals over the most rounds count. A row of a
    single round never replaces a refusal over all rounds.
    """
    rows = [row for row in findings.summary if _matches(rule, row.key)]
    refusals: dict[RowKey, tuple[RefusalRow, ...]] = defaultdict(tuple)
    for refusal in findings.refusals:
        if _matches(rule, refusal.key):
            refusals[refusal.key] += (refusal,)
    if rule.rounds == "together":
        longest = _most_rounds([*(row.key for row in rows), *refusals])
        rows = [row for row in rows if row.key in longest]
        refusals = {place: refusals[place] for place in refusals if place in longest}
    return RuleMatches(tuple(row for row in rows if row.score == rule.score), refusals)


def applies_to(
    rule: VerdictRule | LeakRule | EpsilonRule, arm: str, observers: Iterable[str]
) -> bool:
    """Return whether the rule applies to this arm and these observers."""
    return (rule.arms is None or arm in rule.arms) and (
        rule.observers is None or set(observers) == set(rule.observers)
    )


def describe_missing(what: str, kind: str, available: Iterable[str]) -> str:
    """Describe what a rule asks for but the findings lack.

    >>> describe_missing("arm", "arms", ["bare", "noise"])
    'no such arm; arms: bare; noise'
    """
    return f"no such {what}; {kind}: {'; '.join(dict.fromkeys(available)) or 'none'}"


def _matches(rule: LeakRule, place: RowKey) -> bool:
    return (
        place.question == rule.question
        and applies_to(rule, place.arm, place.observers)
        and (rule.attacks is None or place.attack in rule.attacks)
        and (rule.about is None or place.about == rule.about)
    )


def _most_rounds(places: Iterable[RowKey]) -> set[RowKey]:
    """Return, among places that differ only in their rounds, those with the most rounds."""
    found: dict[tuple[object, ...], RowKey] = {}
    for place in places:
        key = (place.arm, place.observers, place.attack, place.question, place.about)
        best = found.setdefault(key, place)
        if (len(place.rounds), place.rounds) > (len(best.rounds), best.rounds):
            found[key] = place
    return set(found.values())
