"""The results of a case."""

from dataclasses import dataclass, replace
from typing import Any

from overheard.auditing.summary import summarise
from overheard.auditing.threat_results import BOOTSTRAP_SEED, with_verdicts
from overheard.core.attack import Attack
from overheard.findings.audit import Audit
from overheard.findings.finding import Finding
from overheard.findings.score_row import ScoreRow
from overheard.plans.plan import UNDEFENDED, Plan, ThreatPlan
from overheard.plans.plugin_field import plugin_label, plugin_table
from overheard.questions.identity.attacks.reidentify_wccn import ReidentifyWccn
from overheard.questions.identity.statistics.paired_gain import estimate_paired_gain
from overheard.statistics.estimate import Estimate


@dataclass(frozen=True, slots=True)
class AttackedArm:
    """One attack of one threat on one arm.

    Args:
        threat: threat of the plan.
        attack: attack of the threat.
        arm: name of the arm.

    """

    threat: ThreatPlan
    # Any: attacks may be on different questions.
    attack: Attack[Any]
    arm: str = UNDEFENDED

    @property
    def name(self) -> str:
        """The attack's name in findings."""
        return self.threat.attack_name(self.attack)

    @property
    def description(self) -> str:
        """A short name that always includes the source of known updates."""
        words = [plugin_label(self.attack)]
        if plugin_table(self.attack).get("updates") == "simulated":
            words.append("simulated")
        if isinstance(self.attack, ReidentifyWccn):
            words.append(rests_on(self.attack, self.threat))
        if self.threat.pseudonyms == "run":
            words.append("over rounds")
        if "defenses" in self.threat.knows:
            words.append("adaptive")
        return ", ".join(words)

    def behind(self, arm: str) -> "AttackedArm":
        """Return the same attack on another arm."""
        return replace(self, arm=arm)


def rests_on(attack: ReidentifyWccn, threat: ThreatPlan) -> str:
    """Return what Overheard's attack uses in addition to the target's own updates."""
    if threat.pseudonyms == "run":
        return "with assignment" if attack.at_most_one else "without assignment"
    both = {(True, True): "with linking and assignment", (False, False): "one update"}
    return both.get((attack.link, attack.at_most_one), "linking or assignment alone")


@dataclass(frozen=True, slots=True)
class CaseAudit:
    """The audit of a case over all its seeds, with summary rows.

    Args:
        plan: plan with all seeds.
        audit: audit with all findings.
        rows: rows by arm, attack and score.

    """

    plan: Plan
    audit: Audit
    rows: dict[tuple[str, str, str], ScoreRow]

    def row(self, place: AttackedArm, score: str) -> ScoreRow | None:
        """Return one row, or None if it was not measured."""
        return self.rows.get((place.arm, place.name, score))

    def findings(self, place: AttackedArm) -> list[Finding]:
        """Return all findings of one attack on one arm, including controls."""
        return [
            finding
            for finding in self.audit.findings
            if (finding.cell.arm, finding.cell.attack) == (place.arm, place.name)
        ]

    def gain(self, place: AttackedArm, base: AttackedArm) -> Estimate | None:
        """Return the paired gain in mean average precision over another attack."""
        both = [*self.findings(place), *self.findings(base)]
        if not all(map(self.findings, (place, base))):
            return None
        return estimate_paired_gain(both, place.name, base.name)

    def accuracy(self, arm: str) -> float:
        """Return the test accuracy of the last global model, averaged over seeds."""
        accuracies = [
            run.accuracy[max(run.accuracy)]
            for run in self.audit.arms
            if run.arm == arm and not run.is_control
        ]
        return sum(accuracies) / len(accuracies)

    def utility(self, arm: str) -> float:
        """Return the accuracy of the last global model relative to that without defenses."""
        return self.accuracy(arm) / self.accuracy(UNDEFENDED)


def merge_audits(plan: Plan, audits: list[Audit]) -> CaseAudit:
    """Merge the audits of single seeds."""
    merged = with_verdicts(
        replace(
            audits[0],
            arms=tuple(run for audit in audits for run in audit.arms),
            findings=tuple(finding for audit in audits for finding in audit.findings),
            refusals=tuple(refusal for audit in audits for refusal in audit.refusals),
            plan=plan.toml(),
        )
    )
    rows = summarise(merged.findings, BOOTSTRAP_SEED)
    return CaseAudit(plan, merged, {(row.arm, row.attack, row.score): row for row in rows})
