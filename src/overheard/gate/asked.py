"""Picks out of an audit's findings what a rule asks for, and tells what is not there."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from overheard.findings.document_rows import RefusalRow, RowPlace, SummaryRow
from overheard.findings.read_document import Findings
from overheard.gate.policy import EpsilonRule, LeakRule


@dataclass(frozen=True, slots=True)
class RuleMatches:
    """What a rule asks for, of one audit's findings.

    Args:
        rows: of the rule's score.
        refusals: of attacks that would have answered its question, by place.

    """

    rows: tuple[SummaryRow, ...]
    refusals: Mapping[RowPlace, tuple[RefusalRow, ...]]

    def counterpart(self, row: SummaryRow) -> SummaryRow | None:
        """The row that says the same of these findings, if they have one."""
        here = (one for one in self.rows if one.place == row.place)
        return next((one for one in here if one.better == row.better), None)


def asked(rule: LeakRule, findings: Findings) -> RuleMatches:
    """What this rule asks for of these findings.

    Of "together", an attack's most rounds are those that it was asked about, whether it ran or
    was refused: a row of a single round never stands in for a refusal of all.
    """
    rows = [row for row in findings.summary if _asks_of(rule, row.place)]
    refusals: dict[RowPlace, tuple[RefusalRow, ...]] = defaultdict(tuple)
    for refusal in findings.refusals:
        if _asks_of(rule, refusal.place):
            refusals[refusal.place] += (refusal,)
    if rule.rounds == "together":
        longest = _longest([*(row.place for row in rows), *refusals])
        rows = [row for row in rows if row.place in longest]
        refusals = {place: held for place, held in refusals.items() if place in longest}
    return RuleMatches(tuple(row for row in rows if row.score == rule.score), refusals)


def asks_who(rule: LeakRule | EpsilonRule, arm: str, observers: Iterable[str]) -> bool:
    """Whether the rule is on this arm, and on what these observers pool."""
    return (rule.arms is None or arm in rule.arms) and (
        rule.observers is None or set(observers) == set(rule.observers)
    )


def lacking(what: str, kind: str, there: Iterable[str]) -> str:
    """Why nothing is said of what a rule asks for.

    >>> lacking("arm", "arms", ["bare", "noise"])
    'no such arm; arms: bare; noise'
    """
    return f"no such {what}; {kind}: {'; '.join(dict.fromkeys(there)) or 'none'}"


def _asks_of(rule: LeakRule, place: RowPlace) -> bool:
    return (
        place.question == rule.question
        and asks_who(rule, place.arm, place.observers)
        and (rule.attacks is None or place.attack in rule.attacks)
        and (rule.about is None or place.about == rule.about)
    )


def _longest(places: Iterable[RowPlace]) -> set[RowPlace]:
    """Of places that differ by their rounds alone, the one with the most."""
    found: dict[tuple[object, ...], RowPlace] = {}
    for place in places:
        who = (place.arm, place.observers, place.attack, place.question, place.about)
        best = found.setdefault(who, place)
        if (len(place.rounds), place.rounds) > (len(best.rounds), best.rounds):
            found[who] = place
    return set(found.values())
