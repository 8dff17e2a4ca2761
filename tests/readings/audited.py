"""Audits of the recordings: the claims of three attacks, and what the audit says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.core.errors import AuditError
from overheard.findings.audit import Audit
from overheard.plans.plan import Plan, parse_plan
from tests.readings.federations import RATE, ROUNDS, SavedRun, examples_of
from tests.readings.networks import CLASSES

HERE = Resources(device="cpu", workers=1)


@dataclass(frozen=True)
class Outcome:
    """What an audit of a recording comes to.

    Args:
        claims: by attack and client, the claimed shares of the classes.
        scores: by attack, client and score, its value.
        verdict: on all attacks; "" = the audit was refused.
        refusals: why it, or attacks, were refused.
        audit: the whole audit; None if it was refused.

    """

    claims: Mapping[tuple[str, str], tuple[float, ...]] = field(default_factory=dict)
    scores: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    verdict: str = ""
    refusals: tuple[str, ...] = ()
    audit: Audit | None = None

    def distance(self, other: "Outcome") -> float:
        """Return the largest difference of a claimed share or a score; infinity = one lacks."""
        is_alike = (
            self.claims.keys() == other.claims.keys()
            and self.scores.keys() == other.scores.keys()
            and self.verdict == other.verdict
        )
        if not self.claims or not is_alike:
            return float("inf")
        shares = [
            abs(one - two)
            for key, claimed in self.claims.items()
            for one, two in zip(claimed, other.claims[key], strict=True)
        ]
        return max(*shares, *(abs(one - other.scores[key]) for key, one in self.scores.items()))


def auxiliary(folder: Path) -> Path:
    """Write the attacker's examples, of the same kind as the clients', and return the file."""
    inputs, labels = examples_of([1 / CLASSES] * CLASSES, 300, 1000)
    path = folder / "auxiliary.npz"
    np.savez(path, x=inputs.numpy(), y=labels.numpy())
    return path


def plan_for(run: SavedRun, examples: Path) -> Plan:
    """Return the plan that audits a run, with the recipe of its clients."""
    recipe = {"rate": RATE, **run.recipe}
    settings = "\n".join(f"{name} = {_toml(value)}" for name, value in recipe.items())
    return parse_plan(
        f"""
        title = "readings"
        [data]
        source = {{ kind = "own", reference = {_toml(str(examples))} }}
        auxiliary_per_class = 60
        [training]
        model = {{ kind = "own", reference = "tests.readings.networks:{run.network}" }}
        rounds = {ROUNDS}
        epochs = 1
        batch = 16
        {settings}
        [[arms]]
        name = "no defense"
        [[threats]]
        observers = ["server"]
        attacks = ["mean_softmax", "llg", "bias_inversion"]
        by_round = false
        """,
        "the plan of the test",
    )


def _toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def audit_recording(run: SavedRun, recording: Path, plan: Plan | None = None) -> Outcome:
    """Audit a recording, and return what it comes to."""
    folder = recording.parent
    torch.manual_seed(0)
    try:
        found = audit(
            plan or plan_for(run, auxiliary(folder)),
            folder / "audit",
            resources=HERE,
            recording=recording,
        )
    except AuditError as error:
        return Outcome(refusals=(str(error),))
    claims = {
        (one.cell.attack, str(one.target)): tuple(one.claimed.numbers)
        for one in found.findings
        if one.claimed.numbers
    }
    scores = {
        (one.cell.attack, str(one.target), score.name): score.value
        for one in found.findings
        for score in one.scores
    }
    (verdict,) = {one.verdict for arm in found.arm_results for one in arm.threat_results}
    return Outcome(claims, scores, verdict, tuple(map(str, found.refusals)), found)
