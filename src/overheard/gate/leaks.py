"""Checks the results of attacks against a rule: all matching rows and refusals."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import final

from overheard.findings.document import FindingsDocument
from overheard.findings.document_rows import RefusalRow, RowKey, SummaryRow, VerdictRow
from overheard.gate.policy import LeakRule
from overheard.gate.rule_figure import limit_text, select_figure
from overheard.gate.rule_matches import RuleMatches, describe_missing, match_rule
from overheard.gate.verdict import OverlapStatus, RuleVerdict, judge_interval


def leak_verdicts(
    rule: LeakRule,
    now: FindingsDocument,
    before: FindingsDocument | None,
    on_overlap: OverlapStatus,
) -> tuple[RuleVerdict, ...]:
    """Return one verdict per row, refusal and missing row that the rule applies to.

    There is at least one: a rule that matches nothing is inconclusive.

    Args:
        rule: the rule.
        now: the findings to judge.
        before: earlier findings, for a rule on growth; None = there are none.
        on_overlap: the status if an interval contains the limit.

    """
    looks_back = rule.grows_at_most is not None
    earlier = match_rule(rule, before) if looks_back and before is not None else None
    withheld = tuple(row for row in now.verdicts if row.withheld)
    judge = _LeakJudge(rule, match_rule(rule, now), earlier, on_overlap, withheld)
    return (
        *map(judge.judge_row, judge.matches.rows),
        *(judge.judge_refusal(place, rows) for place, rows in judge.matches.refusals.items()),
        *judge.missing_rows(now),
        *judge.removed_rows(),
    )


@final
@dataclass(frozen=True, slots=True)
class _LeakJudge:
    """Judges the findings by one rule.

    Args:
        rule: the rule.
        matches: the findings to judge that the rule applies to.
        earlier: the same for the earlier findings; None = not needed, or not given.
        on_overlap: the status if an interval contains the limit.
        withheld: the verdicts that must not say that nothing leaks; under them no row passes.

    """

    rule: LeakRule
    matches: RuleMatches
    earlier: RuleMatches | None
    on_overlap: OverlapStatus
    withheld: tuple[VerdictRow, ...]

    def judge_row(self, row: SummaryRow) -> RuleVerdict:
        """Judge one row."""
        found = select_figure(self.rule, row, self.earlier)
        limit, what = found.limit.text, _place_text(row.key)
        if found.figure is None:
            silent = self._inconclusive(what, found.missing_reason, limit)
            return _at(row.key, silent)
        rows = len(self.matches.rows)
        status, why = judge_interval(found.figure, found.limit, self.on_overlap, rows)
        few = self._sample_shortage(row) or ("" if status == "fail" else self._doubt(row.key))
        if few:
            status, why = "inconclusive", few
        rule, score = self.rule.name, self.rule.score
        return _at(row.key, RuleVerdict(rule, score, what, status, limit, found.figure, why))

    def judge_refusal(self, place: RowKey, refusals: Sequence[RefusalRow]) -> RuleVerdict:
        """Judge an attack that could not run."""
        targets = len({one.target for one in refusals})
        missing = "; ".join(dict.fromkeys(part for one in refusals for part in one.missing))
        is_missing = all(one.kind == "missing" for one in refusals)
        reason = f"missing: {missing}" if is_missing else missing
        why = f"refused for {targets} target{'' if targets == 1 else 's'}, {reason}"
        silent = _at(place, self._inconclusive(_place_text(place), why))
        # A policy excuses what cannot run, and not what failed or would be wrong.
        if is_missing and place.attack in self.rule.may_be_refused:
            return replace(silent, status="excused", why=f"{why} (allowed by the policy)")
        return silent

    def missing_rows(self, now: FindingsDocument) -> Iterable[RuleVerdict]:
        """Yield verdicts on arms and attacks that the findings lack."""
        arms = now.arm_names
        for arm in self.rule.arms or arms or ("every arm",):
            if arm not in arms:
                why = describe_missing("arm", "arms", arms)
                yield replace(self._inconclusive(arm, why), arm=arm)
                continue
            measured = {row.attack for row in self.matches.rows if row.arm == arm}
            refused = {place.attack for place in self.matches.refusals if place.arm == arm}
            if not measured and refused <= set(self.rule.may_be_refused):
                scores = [f"{row.score} of {row.question}" for row in now.summary]
                why = describe_missing("row", "scores", scores)
                yield replace(self._inconclusive(arm, why), arm=arm)
                continue
            wanted = (*(self.rule.attacks or ()), *self.rule.must_be_measured)
            for attack in dict.fromkeys(wanted):
                if attack not in measured | refused:
                    attacks = [row.attack for row in now.summary if row.arm == arm]
                    why = describe_missing("row", "attacks of this arm", attacks)
                    silent = self._inconclusive(f"{arm}; {attack}", why)
                    yield replace(silent, arm=arm, attack=attack)

    def removed_rows(self) -> Iterable[RuleVerdict]:
        """Yield verdicts on rows that only the earlier findings have."""
        for row in () if self.earlier is None else self.earlier.rows:
            if self.matches.counterpart(row) is None:
                why = "removed row: only the earlier findings have it"
                yield _at(row.key, self._inconclusive(_place_text(row.key), why))

    def _inconclusive(self, what: str, why: str, limit: str | None = None) -> RuleVerdict:
        limit = limit or limit_text(self.rule)
        rule, score = self.rule.name, self.rule.score
        return RuleVerdict(rule, score, what, "inconclusive", limit, None, why)

    def _doubt(self, place: RowKey) -> str:
        """Return why no row of this place may pass; "" if one may."""
        return next(
            (
                row.withheld
                for row in self.withheld
                if (row.arm, row.question, row.about)
                == (place.arm, place.question, place.about)
                and frozenset(row.observers) == frozenset(place.observers)
            ),
            "",
        )

    def _sample_shortage(self, row: SummaryRow) -> str:
        """Return why there are too few targets or runs in either findings; "" if enough."""
        before = None if self.earlier is None else self.earlier.counterpart(row)
        rows = (row,) if before is None else (row, before)
        targets, seeds = min(one.targets for one in rows), min(one.seeds for one in rows)
        if targets < self.rule.targets_at_least:
            return f"too few targets: {targets}, the rule requires {self.rule.targets_at_least}"
        if seeds < self.rule.seeds_at_least:
            return f"too few runs: {seeds}, the rule requires {self.rule.seeds_at_least}"
        return ""


def _at(place: RowKey, verdict: RuleVerdict) -> RuleVerdict:
    """Return the verdict with the place that exceptions are matched with."""
    return replace(verdict, arm=place.arm, observers=place.observers, attack=place.attack)


def _place_text(place: RowKey) -> str:
    rounds = place.rounds
    when = f"round {rounds[0]}" if len(rounds) == 1 else f"{len(rounds)} rounds"
    return "; ".join((place.arm, " and ".join(place.observers), place.attack, when))
