"""Synthetic shift audits with a given strength of each attack's evidence."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from overheard.core.claims import Timeline
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, Party, client
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.true_facts.shifts import Shifts
from overheard.core.truth import GroundTruth
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmDefense, ArmRun, Cell, ClaimRow, Finding
from overheard.questions.shift.claim import GaussianEstimate, Shift
from overheard.questions.shift.scorer.shift import ShiftScorer

SCORER = ShiftScorer()
ROUNDS = tuple(range(20))
SINCE = 10
EVEN = torch.tensor([100] * 10)
MORE_EVEN = torch.tensor([140, 60] * 5)

NOISE = ArmDefense(
    "LocalDP(clip=1.0, noise_multiplier=0.5)", "client", "the client", "none worth the name"
)


def shift_findings(
    arm: str,
    attack: str,
    strength: float,
    *,
    runs: int = 1,
    targets: Sequence[Party] = (COHORT,),
    shifting: Sequence[Party] = (client(1),),
    has_alarm: bool = True,
    has_controls: bool = True,
) -> list[Finding]:
    """Planned runs and controls of one attack; from the shift on its evidence is `strength`.

    The evidence is a standard normal number a round, above 3.02 with a chance of 2.5 % in 20
    rounds; of clients that do not shift, and in controls, it stays so.
    """
    random = np.random.default_rng([len(arm), len(attack), int(100 * strength)])
    findings = []
    for seed in range(runs):
        for is_control in (False, True) if has_controls else (False,):
            truth = _truth(() if is_control else shifting)
            for target in targets:
                planted = strength if truth.facts.need(Shifts).shifts_of(target) else 0.0
                # One of three clients shifts by 0.04.
                rise = 0.04 / 3 if target == COHORT else 0.04
                claim = _claim(random, planted, rise, has_alarm=has_alarm)
                findings.append(_finding(arm, attack, seed, is_control, target, claim, truth))
    return findings


def _truth(shifting: Sequence[Party]) -> GroundTruth:
    counts = {
        (number, client(who)): MORE_EVEN
        if client(who) in shifting and number >= SINCE
        else EVEN
        for number in ROUNDS
        for who in (1, 2, 3)
    }
    return GroundTruth(Facts(LabelCounts(counts), Shifts(dict.fromkeys(shifting, (SINCE,)))))


def _claim(
    random: np.random.Generator, strength: float, rise: float, *, has_alarm: bool
) -> Shift:
    late = np.arange(len(ROUNDS)) >= SINCE
    statistic = np.abs(random.normal(size=len(ROUNDS)) + strength * late)
    threshold = 3.02
    above = [number for number in ROUNDS if statistic[number] > threshold]
    evidence = Timeline(
        ROUNDS,
        tuple(statistic.tolist()),
        (threshold,) * len(ROUNDS) if has_alarm else None,
        0.05 if has_alarm else None,
        above[0] if above and has_alarm else None,
        int(statistic.argmax()),
    )
    if not has_alarm:
        return Shift(evidence)
    change = torch.tensor([rise, -rise] * 5) * (strength > 0)
    change = change + torch.from_numpy(random.normal(scale=0.01, size=10))
    covariance = 0.01**2 * torch.eye(10, dtype=torch.float64)
    return Shift(
        evidence,
        GaussianEstimate(change, covariance),
        GaussianEstimate(0.1 + change, covariance),
    )


def _finding(
    arm: str,
    attack: str,
    seed: int,
    is_control: bool,
    target: Party,
    claim: Shift,
    ground: GroundTruth,
) -> Finding:
    cell = Cell(arm, seed, (client(0),), attack, "Planted()", "shift", ROUNDS, is_control)
    if is_control:
        cell = replace(cell, control="natural")
    truth = SCORER.true_claim(ground, target, ROUNDS, claim)
    scores = SCORER.score(claim, truth, SCORER.guesses(truth, Knowledge(classes=10)))
    return Finding(cell, (target,), ClaimRow.of(claim), ClaimRow.of(truth), scores)


def shift_audit(findings: Sequence[Finding]) -> Audit:
    """An audit of these findings; the arm called "local DP" costs accuracy."""
    runs = {
        (finding.cell.arm, finding.cell.seed, finding.cell.is_control): None
        for finding in findings
    }
    return Audit(
        title="Which competitor changed its product",
        subject="4 clients, ten classes, 20 rounds; client 1 shifts in round 10",
        class_names=tuple(f"class {number}" for number in range(10)),
        arms=tuple(
            ArmRun(
                arm,
                seed,
                () if arm == "none" else (NOISE,),
                {0: 0.1, 20: (0.3 if is_control else 0.95) - 0.05 * (arm != "none")},
                missing=0,
                answers=80,
                is_control=is_control,
            )
            for arm, seed, is_control in runs
        ),
        findings=tuple(findings),
        refusals=(),
        plan='title = "shifts"\n',
        versions={"overheard": "0.1.0"},
    )
