"""Checks the results of attacks against a rule: all matching rows and refusals."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import final

from overheard.findings.document_reader import FindingsDocument
from overheard.findings.document_rows import RefusalRow, RowKey, SummaryRow
from overheard.gate.asked import RuleMatches, asked, lacking
from overheard.gate.held import asked_of, held
from overheard.gate.policy import LeakRule
from overheard.gate.verdict import Straddling, Verdict, judged


def leak_verdicts(
    rule: LeakRule,
    now: FindingsDocument,
    before: FindingsDocument | None,
    straddling: Straddling,
) -> tuple[Verdict, ...]:
    """Return one verdict per row, refusal and missing row that the rule applies to.

    There is at least one: a rule that matches nothing is inconclusive.

    Args:
        rule: the rule.
        now: the findings to judge.
        before: earlier findings, for a rule on growth; None = there are none.
        straddling: the status if an interval contains the limit.

    """
    looks_back = rule.grows_at_most is not None
    earlier = asked(rule, before) if looks_back and before is not None else None
    judge = _Judge(rule, asked(rule, now), earlier, straddling)
    return (
        *map(judge.row, judge.here.rows),
        *(judge.refusal(place, rows) for place, rows in judge.here.refusals.items()),
        *judge.unmeasured(now),
        *judge.gone(),
    )


@final
@dataclass(frozen=True, slots=True)
class _Judge:
    """Judges the findings by one rule.

    Args:
        rule: the rule.
        here: the findings to judge that the rule applies to.
        earlier: the same for the earlier findings; None = not needed, or not given.
        straddling: the status if an interval contains the limit.

    """

    rule: LeakRule
    here: RuleMatches
    earlier: RuleMatches | None
    straddling: Straddling

    def row(self, row: SummaryRow) -> Verdict:
        """Judge one row."""
        found = held(self.rule, row, self.earlier)
        limit, what = found.limit.told, _named(row.key)
        if found.figure is None:
            return self._silent(what, found.lacking, limit)
        status, why = judged(found.figure, found.limit, self.straddling)
        few = self._few(row)
        if few:
            status, why = "inconclusive", few
        return Verdict(self.rule.name, self.rule.score, what, status, limit, found.figure, why)

    def refusal(self, place: RowKey, refusals: Sequence[RefusalRow]) -> Verdict:
        """Judge an attack that could not run."""
        targets = len({one.target for one in refusals})
        missing = "; ".join(dict.fromkeys(part for one in refusals for part in one.missing))
        why = f"refused for {targets} target{'' if targets == 1 else 's'}, missing: {missing}"
        silent = self._silent(_named(place), why)
        if place.attack in self.rule.may_be_refused:
            return replace(silent, status="excused", why=f"{why} (allowed by the policy)")
        return silent

    def unmeasured(self, now: FindingsDocument) -> Iterable[Verdict]:
        """Yield verdicts on arms and attacks that the findings lack."""
        arms = now.arm_names
        for arm in self.rule.arms or arms or ("every arm",):
            if arm not in arms:
                yield self._silent(arm, lacking("arm", "arms", arms))
                continue
            measured = {row.attack for row in self.here.rows if row.arm == arm}
            refused = {place.attack for place in self.here.refusals if place.arm == arm}
            if not measured and refused <= set(self.rule.may_be_refused):
                scores = [f"{row.score} of {row.question}" for row in now.summary]
                yield self._silent(arm, lacking("row", "scores", scores))
                continue
            for attack in self.rule.attacks or ():
                if attack not in measured | refused:
                    attacks = [row.attack for row in now.summary if row.arm == arm]
                    why = lacking("row", "attacks of this arm", attacks)
                    yield self._silent(f"{arm}; {attack}", why)

    def gone(self) -> Iterable[Verdict]:
        """Yield verdicts on rows that only the earlier findings have."""
        for row in () if self.earlier is None else self.earlier.rows:
            if self.here.counterpart(row) is None:
                yield self._silent(
                    _named(row.key), "removed row: only the earlier findings have it"
                )

    def _silent(self, what: str, why: str, limit: str | None = None) -> Verdict:
        limit = limit or asked_of(self.rule)
        rule, score = self.rule.name, self.rule.score
        return Verdict(rule, score, what, "inconclusive", limit, None, why)

    def _few(self, row: SummaryRow) -> str:
        """Return why there are too few targets or runs in either findings; "" if enough."""
        before = None if self.earlier is None else self.earlier.counterpart(row)
        rows = (row,) if before is None else (row, before)
        targets, seeds = min(one.targets for one in rows), min(one.seeds for one in rows)
        if targets < self.rule.targets_at_least:
            return f"too few targets: {targets}, the rule requires {self.rule.targets_at_least}"
        if seeds < self.rule.seeds_at_least:
            return f"too few runs: {seeds}, the rule requires {self.rule.seeds_at_least}"
        return ""


def _named(place: RowKey) -> str:
    rounds = place.rounds
    when = f"round {rounds[0]}" if len(rounds) == 1 else f"{len(rounds)} rounds"
    return "; ".join((place.arm, " and ".join(place.observers), place.attack, when))
