"""Holds an audit's findings against a whole policy."""

from dataclasses import dataclass
from typing import final

from overheard.core.errors import PlanError
from overheard.findings.read_document import Findings
from overheard.gate.costs import cost_verdicts
from overheard.gate.epsilons import epsilon_verdicts
from overheard.gate.leaks import leak_verdicts
from overheard.gate.policy import Policy
from overheard.gate.verdict import Status, Verdict, overall


@final
@dataclass(frozen=True, slots=True)
class Checked:
    """What a policy says of an audit.

    Args:
        title: of the audit, as it calls itself.
        verdicts: of all rules, in the policy's order.
        notes: what else to know when reading them.

    """

    title: str
    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...]

    @property
    def status(self) -> Status:
        """Fail if anything fails, else inconclusive if anything is, else pass."""
        return overall(self.verdicts)

    @property
    def told(self) -> str:
        """Such as "fail: 1 fail, 3 pass"."""
        statuses = [verdict.status for verdict in self.verdicts]
        order: tuple[Status, ...] = ("fail", "inconclusive", "excused", "pass")
        counts = [f"{statuses.count(one)} {one}" for one in order if one in statuses]
        return f"{self.status}: {', '.join(counts)}"


def check(policy: Policy, now: Findings, before: Findings | None = None) -> Checked:
    """What the policy says of these findings.

    Args:
        policy: the rules.
        now: the findings that are judged.
        before: earlier ones, for rules on growth.

    Raises:
        PlanError: if there are earlier findings and no rule that looks back at them.

    """
    if before is not None and not policy.looks_back:
        raise PlanError(
            "earlier findings are given, and no rule looks back: give one of [[leaks]] "
            "grows_at_most, or leave out --against"
        )
    leaks = (
        leak_verdicts(rule, now, before, rule.straddles or policy.straddles)
        for rule in policy.leaks
    )
    epsilons = (epsilon_verdicts(rule, now) for rule in policy.epsilons)
    costs = (
        cost_verdicts(rule, now, rule.straddles or policy.straddles) for rule in policy.costs
    )
    verdicts = tuple(verdict for told in (*leaks, *epsilons, *costs) for verdict in told)
    return Checked(now.title, verdicts, _notes(now, before))


def _notes(now: Findings, before: Findings | None) -> tuple[str, ...]:
    notes = []
    if now.summary and all(row.seeds == 1 for row in now.summary):
        notes.append("There was one run an arm: the intervals say nothing of other runs.")
    if before is not None and before.subject != now.subject:
        notes.append(
            f"The earlier findings are of another subject. Then: {before.subject}. "
            f"Now: {now.subject}."
        )
    return tuple(notes)
