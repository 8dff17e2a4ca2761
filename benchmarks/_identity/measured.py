"""What was measured of one case, to be held against bars and told."""

from dataclasses import dataclass, replace
from typing import Any

from overheard.auditing.summary import summarise
from overheard.core.attack import Attack
from overheard.core.seeds import Seed
from overheard.findings.finding import Audit, Finding
from overheard.findings.row import Row
from overheard.plans.part import label, part_record
from overheard.plans.plan import UNDEFENDED, Plan, ThreatPlan
from overheard.questions.identity.statistics.paired_gain import paired_gain
from overheard.statistics.estimate import Estimate

DRAWS = Seed(0)
"""Of all bootstraps."""


@dataclass(frozen=True, slots=True)
class Place:
    """One attack of one threat, behind one arm.

    Args:
        threat: of the plan.
        attack: of the threat.
        arm: its name.

    """

    threat: ThreatPlan
    # Any: an attack answers a question of its own.
    attack: Attack[Any]
    arm: str = UNDEFENDED

    @property
    def name(self) -> str:
        """What the attack is called in findings."""
        return self.threat.named(self.attack)

    @property
    def told(self) -> str:
        """A short name, which says where labelled updates come from even by default."""
        words = [label(self.attack)]
        if part_record(self.attack).get("updates") == "simulated":
            words.append("simulated")
        if self.threat.pseudonyms == "run":
            words.append("over rounds")
        if "defenses" in self.threat.knows:
            words.append("adaptive")
        return ", ".join(words)

    def behind(self, arm: str) -> "Place":
        """The same behind another arm."""
        return replace(self, arm=arm)


@dataclass(frozen=True, slots=True)
class Measured:
    """The audit of a case, over all its seeds, and what it sums up to.

    Args:
        plan: with all seeds.
        audit: with all findings.
        rows: by arm, attack and score.

    """

    plan: Plan
    audit: Audit
    rows: dict[tuple[str, str, str], Row]

    def row(self, place: Place, score: str) -> Row | None:
        """One figure; None where it was not measured."""
        return self.rows.get((place.arm, place.name, score))

    def findings(self, place: Place) -> list[Finding]:
        """All of one attack behind one arm, controls among them."""
        return [
            one
            for one in self.audit.findings
            if (one.cell.arm, one.cell.attack) == (place.arm, place.name)
        ]

    def gain(self, place: Place, base: Place) -> Estimate | None:
        """By how much one mean average precision is above another's, user by user."""
        both = [*self.findings(place), *self.findings(base)]
        if not all(map(self.findings, (place, base))):
            return None
        return paired_gain(both, place.name, base.name, DRAWS)

    def worth(self, arm: str) -> float:
        """Accuracy of the last global model on the test, the mean over seeds."""
        last = [
            run.accuracy[max(run.accuracy)]
            for run in self.audit.arms
            if run.arm == arm and not run.is_control
        ]
        return sum(last) / len(last)

    def utility(self, arm: str) -> float:
        """Accuracy of the last global model over that of the arm without defenses."""
        return self.worth(arm) / self.worth(UNDEFENDED)


def together(plan: Plan, audits: list[Audit]) -> Measured:
    """One audit out of those of single seeds."""
    whole = replace(
        audits[0],
        arms=tuple(run for one in audits for run in one.arms),
        findings=tuple(found for one in audits for found in one.findings),
        refusals=tuple(refusal for one in audits for refusal in one.refusals),
        plan=plan.toml(),
    )
    rows = summarise(whole.findings, DRAWS)
    return Measured(plan, whole, {(row.arm, row.attack, row.score): row for row in rows})
