"""Holds what mechanisms claim of epsilon, and what attacks prove of it, against a rule."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isinf
from typing import final

from overheard.core.accountant import HOLLOW, MISSING
from overheard.epsilon.table import UNITS
from overheard.findings.document_rows import Bounds, EpsilonRow, Standing
from overheard.findings.read_document import Findings
from overheard.gate.asked import asks_who, lacking
from overheard.gate.policy import EpsilonRule
from overheard.gate.verdict import Limit, Status, Verdict, number

SCORE = "epsilon"

STATUSES: dict[Standing, Status] = {
    "holds": "pass",
    "violated": "fail",
    "overclaimed": "fail",
    "flawed": "fail",
    "uncovered": "fail",
    "unasked": "inconclusive",
    "refused": "inconclusive",
    "unlike": "inconclusive",
    "unchecked": "inconclusive",
    "unaccounted": "inconclusive",
}
"""What each verdict of the findings comes to where claims are to hold."""

REASONS: dict[Standing, str] = {
    "holds": "",
    "violated": "attacks prove more than is claimed",
    "overclaimed": "it claims less than its settings come to",
    "flawed": "it promises nothing to anybody",
    "uncovered": "it promises nothing to these observers, who read what has no noise yet",
    "unasked": "no attack on membership by these observers: add data.candidates, and attacks",
    "refused": "no attack on membership by these observers could run",
    "unlike": "clients' records may differ in kind from those of nobody: ask about canaries",
    "unchecked": "no truth tells which records were trained on",
    "unaccounted": f"nothing is stated for the run; {MISSING}",
}

UNMEASURED = "no attack on membership by these observers ran, or records are not alike"
"""Why nothing is proven where the verdict is about the claim alone."""


def epsilon_verdicts(rule: EpsilonRule, now: Findings) -> tuple[Verdict, ...]:
    """One verdict a mechanism and observers that the rule asks for, and what should be there.

    Never none. Every audit has an arm without any defense, so a rule that names no arm is on
    those that have a mechanism; the others are listed as excused, and if all are it is
    inconclusive. An arm that is named and has no mechanism never passes: it fails where a
    guarantee is asked for, as there surely is none, and a pipeline that lets inconclusive rules
    through would else let pass that the defense was dropped. Where proof or claims are asked
    for it is inconclusive: nothing was claimed, so nothing was held against a claim.
    """
    judge = _Judge(rule)
    rows = [
        row
        for row in dict.fromkeys(now.epsilon or ())
        if _asks(rule, row.arm, row.observers)
        and (rule.mechanisms is None or row.mechanism in rule.mechanisms)
    ]
    return (*map(judge.row, rows), *judge.unmeasured(now))


def _asks(rule: EpsilonRule, arm: str, observers: tuple[str, ...]) -> bool:
    """Whether the rule is on this arm and these observers.

    Whoever reads the models alone must be named: no attack of theirs is ever measured, and the
    epsilon towards them is never above that towards the server, which has a line too.
    """
    is_meant = rule.observers is not None or len(observers) > 0
    return is_meant and asks_who(rule, arm, observers)


_Groups = dict[str, list[tuple[str, ...]]]
"""Of an arm, by mechanism: the groups of observers towards whom findings tell how it stands."""


@final
@dataclass(frozen=True, slots=True)
class _Judge:
    """Speaks for one rule."""

    rule: EpsilonRule

    def row(self, row: EpsilonRow) -> Verdict:
        """What is said of one mechanism towards some observers."""
        silent = self._silent("; ".join((row.arm, row.mechanism, _pooled(row.observers))))
        if self.rule.guaranteed_at_most is not None:
            return _guaranteed(silent, row, self.rule.guaranteed_at_most)
        if self.rule.proven_at_most is not None:
            return _proven(silent, row, self.rule.proven_at_most)
        return _claimed(silent, row)

    def unmeasured(self, now: Findings) -> Iterable[Verdict]:
        """Arms, mechanisms and observers that the rule asks for and the findings lack."""
        if now.epsilon is None:
            why = "an overheard wrote these findings that told nothing of epsilon: audit again"
            yield self._silent("every arm", why)
            return
        there = defaultdict[str, _Groups](_Groups)
        for row in now.epsilon:
            there[row.arm].setdefault(row.mechanism, []).append(row.observers)
        arms = dict.fromkeys(now.arm_names)
        for arm in self.rule.arms or arms:
            if arm not in arms:
                yield self._silent(arm, lacking("arm", "arms", arms))
            else:
                yield from self._lacking_in(arm, there.get(arm, {}))
        if self.rule.arms is None:
            mechanisms = dict.fromkeys(row.mechanism for row in now.epsilon)
            for wanted in self.rule.mechanisms or (() if mechanisms else ("every arm",)):
                if wanted not in mechanisms:
                    yield self._silent(wanted, lacking("mechanism", "mechanisms", mechanisms))

    def _lacking_in(self, arm: str, there: _Groups) -> Iterable[Verdict]:
        wanted = self.rule.mechanisms or tuple(there)
        is_named = self.rule.arms is not None
        if not there or not (is_named or there.keys() & set(wanted)):
            yield self._undefended(arm)
            return
        for mechanism in wanted:
            groups = there.get(mechanism, [])
            if not groups and is_named:
                why = lacking("mechanism", "mechanisms of this arm", there)
                yield self._silent(f"{arm}; {mechanism}", why)
            elif groups and not any(_asks(self.rule, arm, group) for group in groups):
                why = lacking("observers", "there are", map(_pooled, groups))
                yield self._silent(f"{arm}; {mechanism}", why)

    def _undefended(self, arm: str) -> Verdict:
        if self.rule.arms is None:
            silent = self._silent(arm, "it has no such mechanism, and the rule names no arm")
            return replace(silent, status="excused")
        if self.rule.guaranteed_at_most is not None:
            silent = self._silent(arm, "nothing is guaranteed: it has no mechanism")
            return replace(silent, status="fail")
        return self._silent(arm, "it has no mechanism, of which to claim or to prove anything")

    def _silent(self, what: str, why: str = "") -> Verdict:
        return Verdict(
            self.rule.name, SCORE, what, "inconclusive", _asked_of(self.rule), None, why
        )


def _guaranteed(silent: Verdict, row: EpsilonRow, limit: float) -> Verdict:
    figure = row.guaranteed
    if figure is None:
        return replace(silent, why=REASONS[row.verdict])
    if isinf(figure):
        is_broken = STATUSES[row.verdict] == "fail"
        why = _broken(row) if is_broken else "its settings come to no finite epsilon"
        return replace(silent, status="fail", why=f"nothing is guaranteed: {why}")
    about = f"for {UNITS[row.unit]}, at delta {row.delta:g}"
    return replace(silent, status=_kept(figure, limit), figure=_exactly(figure), why=about)


def _proven(silent: Verdict, row: EpsilonRow, limit: float) -> Verdict:
    if row.measured is None:
        is_told = row.verdict in {"unasked", "refused", "unlike", "unchecked"}
        return replace(silent, why=REASONS[row.verdict] if is_told else UNMEASURED)
    figure = row.measured.at_least
    by = f"by {row.measured.attack}"
    return replace(silent, status=_kept(figure, limit), figure=_exactly(figure), why=by)


def _claimed(silent: Verdict, row: EpsilonRow) -> Verdict:
    figure = None if row.measured is None else _exactly(row.measured.at_least)
    why = _broken(row)
    if row.verdict == "holds":
        is_hollow = row.ceiling is None or row.ceiling > HOLLOW
        most = "infinity" if row.ceiling is None else number(row.ceiling)
        why = f"held against {most}{', which protects nobody' if is_hollow else ''}"
    return replace(silent, status=STATUSES[row.verdict], figure=figure, why=why)


def _broken(row: EpsilonRow) -> str:
    return f"{REASONS[row.verdict]}: {row.flaw}" if row.flaw else REASONS[row.verdict]


def _asked_of(rule: EpsilonRule) -> str:
    if rule.guaranteed_at_most is not None:
        return Limit("at most", rule.guaranteed_at_most, "guaranteed ").told
    if rule.proven_at_most is not None:
        return Limit("at most", rule.proven_at_most, "proven ").told
    return "claims hold"


def _kept(figure: float, limit: float) -> Status:
    return "pass" if figure <= limit else "fail"


def _exactly(figure: float) -> Bounds:
    return Bounds(mean=figure, low=None, high=None)


def _pooled(observers: Sequence[str]) -> str:
    return " and ".join(observers) or "whoever reads the models alone"
