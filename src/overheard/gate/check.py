"""Holds an audit's findings against a whole policy."""

from dataclasses import dataclass
from pathlib import Path
from typing import final

from overheard.auditing.exposures import arms
from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.findings.finding import Audit
from overheard.findings.html import html_table
from overheard.findings.read_document import Findings, findings_in, read_findings
from overheard.gate.costs import cost_verdicts
from overheard.gate.epsilons import epsilon_verdicts
from overheard.gate.leaks import leak_verdicts
from overheard.gate.policy import Policy, read_policy
from overheard.gate.verdict import Status, Verdict, overall
from overheard.report.tables import as_json

BOOTSTRAP = Seed(0)
"""Behind the intervals, as the command has it: an audit is judged as the file it leaves."""


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

    def _repr_html_(self) -> str:
        rows = [
            (one.status, one.rule, one.what, one.score, one.told_figure, one.limit, one.why)
            for one in self.verdicts
        ]
        heads = ("status", "rule", "of", "score", "figure (95 %)", "limit", "why")
        return html_table(f"{self.title}: {self.told}", heads, rows, " ".join(self.notes))


def check(
    policy: Policy | Path,
    now: Findings | Audit | Path,
    before: Findings | Audit | Path | None = None,
) -> Checked:
    """What the policy says of these findings.

    Args:
        policy: the rules, or their file.
        now: the findings that are judged: an audit, or the `findings.json` that one left.
        before: earlier ones, for rules on growth.

    Raises:
        PlanError: if there are earlier findings and no rule that looks back at them, or the
            file is no policy.
        FindingsError: if a file holds no findings.

    """
    rules = read_policy(policy) if isinstance(policy, Path) else policy
    return _check(rules, _read(now), None if before is None else _read(before))


def _read(found: Findings | Audit | Path) -> Findings:
    if isinstance(found, Path):
        return read_findings(found)
    if isinstance(found, Audit):
        return findings_in(as_json(found, arms(found, BOOTSTRAP)))
    return found


def _check(policy: Policy, now: Findings, before: Findings | None) -> Checked:
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
