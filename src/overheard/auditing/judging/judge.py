"""Judges the claims of an audit: scores, verdicts and intervals, from claims and truths alone.

No attack is run again, and nothing is written: a truth that is added later needs no new claims.
"""

import platform
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from importlib.metadata import version
from typing import Any, final

from overheard.auditing.cells.cell_claims import CellClaims, TargetClaim
from overheard.auditing.judging.run_truth import ThreatTruth
from overheard.auditing.threat_results import with_verdicts
from overheard.core.claims import Claim
from overheard.core.custom_code.attack_claims import describe_claim_failure
from overheard.core.errors import ClaimError, NeedsError, UnstatedTruthError
from overheard.core.failures import describe_internal_error
from overheard.core.parties import Party
from overheard.core.scorer import Guesses
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.findings.audit import Audit
from overheard.findings.audited_recording import AuditedRecording
from overheard.findings.finding import ArmRun, Cell, ClaimRow, Finding, Refusal
from overheard.findings.privacy.bound_settings import USUAL_BOUND, BoundSettings
from overheard.findings.question import Question
from overheard.plans.plan import Plan
from overheard.plans.plugin_packages import plugin_packages
from overheard.plans.registries import questions

PACKAGES = ("overheard", "torch", "numpy", "scipy", "scikit-learn", "safetensors")
"""The packages whose versions an audit states."""


@final
@dataclass(frozen=True, slots=True)
class AuditSubject:
    """What is audited.

    Args:
        plan: the plan.
        description: one sentence that describes it.
        class_names: the names of the classes.
        is_recorded: whether it is a recorded run, and not simulated ones.
        is_auxiliary_separate: whether attackers' own examples are known to be no client's.
        data: what was read of the data, in sentences.
        data_warnings: what does not fit, or is assumed, in sentences.
        recording: what the check of the recording proves; None = runs were simulated.
        bound_settings: how epsilon is bounded from canaries.

    """

    plan: Plan
    description: str
    class_names: tuple[str, ...]
    is_recorded: bool = False
    is_auxiliary_separate: bool = True
    data: tuple[str, ...] = ()
    data_warnings: tuple[str, ...] = ()
    recording: AuditedRecording | None = None
    bound_settings: BoundSettings = USUAL_BOUND


@final
@dataclass(frozen=True, slots=True)
class ClaimsOfThreat:
    """The claims of all attacks of a threat about one run, and the truth about it.

    Args:
        rounds: the rounds of the run with updates, in order.
        cells: the claims of each cell, in order; an attack's cell of all rounds comes before
            those of its single rounds. A generator need not hold all in memory.
        truth: what they are compared with.

    """

    rounds: tuple[int, ...]
    cells: Iterable[CellClaims]
    truth: ThreatTruth


@final
@dataclass(frozen=True, slots=True)
class Scored:
    """Findings and refusals in the order of their cells."""

    findings: tuple[Finding, ...]
    refusals: tuple[Refusal, ...]


@final
@dataclass(frozen=True, slots=True)
class AttackedRun:
    """A run after its attacks.

    Args:
        record: its entry in the report.
        claims: the claims of each threat about it, in order.

    """

    record: ArmRun
    claims: Iterable[ClaimsOfThreat]


def judge(subject: AuditSubject, runs: Iterable[AttackedRun]) -> Audit:
    """Return the audit that follows from claims and truths, with its verdicts by arm.

    Args:
        subject: what is audited.
        runs: the runs, in the order of the report. The claims of one threat are scored after
            those of another, so that generators need not hold all in memory.

    """
    records, scored, plan = list[ArmRun](), list[Scored](), subject.plan
    for run in runs:
        records.append(run.record)
        scored += [score_claims(one, with_pictures=plan.report.pictures) for one in run.claims]
    return with_verdicts(
        Audit(
            title=plan.title,
            subject=subject.description,
            class_names=subject.class_names,
            arms=tuple(records),
            findings=tuple(finding for one in scored for finding in one.findings),
            refusals=tuple(refusal for one in scored for refusal in one.refusals),
            plan=plan.toml(),
            margins=plan.margins,
            release=plan.release.model_dump(exclude_none=True),
            made_on=date.today().isoformat(),
            is_recorded=subject.is_recorded,
            is_auxiliary_separate=subject.is_auxiliary_separate,
            data=subject.data,
            data_warnings=subject.data_warnings,
            recording=subject.recording,
            bound_settings=subject.bound_settings,
            versions={name: version(name) for name in PACKAGES}
            | {"python": platform.python_version()}
            | dict(plugin_packages(plan)),
        )
    )


def score_claims(claims: ClaimsOfThreat, *, with_pictures: bool = False) -> Scored:
    """Score the claims of a threat about a run; without a truth of them they stay unchecked.

    Args:
        claims: the claims.
        with_pictures: whether findings hold the pictures of claims, which take memory.

    """
    findings, refusals = list[Finding](), list[Refusal]()
    unscored = set[str]()
    for one in claims.cells:
        cell, scored = one.cell, _score_cell(one, claims, with_pictures)
        if cell.rounds == claims.rounds and one.claims and not scored.findings:
            unscored.add(cell.attack)
        elif cell.rounds != claims.rounds and cell.attack in unscored:
            # The truth lacks what is claimed: said once, and not again for each round.
            continue
        findings += scored.findings
        refusals += scored.refusals
    return Scored(tuple(findings), tuple(refusals))


def _score_cell(claims: CellClaims, threat: ClaimsOfThreat, with_pictures: bool) -> Scored:
    """Return the findings and refusals of a cell."""
    cell, question = claims.cell, questions()[claims.cell.question]
    refusals = [
        Refusal(cell, target, why, claims.kinds.get(target, "missing"))
        for target, why in claims.refusals.items()
    ]
    findings = list[Finding]()
    for target, claimed in claims.claims.items():
        targets = claimed.targets or (target,)
        try:
            findings.append(_finding(cell, target, claimed, question, threat, with_pictures))
        except NeedsError as error:
            # The ground truth has no entry for what is claimed, such as the user behind a
            # client.
            refusals += [Refusal(cell, one, (str(error),)) for one in targets]
        except ClaimError as error:
            why = describe_claim_failure(cell.part, question.scorer.claim_type, error)
            refusals += [Refusal(cell, one, (why,)) for one in targets]
        except Exception as error:
            why = describe_internal_error(f"the scorer {question.scorer.name}", error)
            refusals += [Refusal(cell, one, (why,), "failed") for one in targets]
    return Scored(tuple(findings), tuple(refusals))


def _finding(
    cell: Cell,
    target: Party,
    claimed: TargetClaim,
    # Any: a question has claims of its own.
    question: Question[Any],
    threat: ClaimsOfThreat,
    with_pictures: bool,
) -> Finding:
    truth = threat.truth
    unchecked = Finding(
        cell,
        claimed.targets or (target,),
        ClaimRow.of(claimed.claim, with_pictures=with_pictures),
        guesses={name: one.numbers() for name, one in claimed.guesses.items()},
        sent_rounds=claimed.sent_rounds,
        client=truth.clients.get(target, ""),
    )
    if truth.truth is None:
        return unchecked
    scorer = question.scorer
    try:
        true: Claim = scorer.true_claim(truth.truth, target, cell.rounds, claimed.claim)
    except UnstatedTruthError:
        return unchecked
    guesses = Guesses(claimed.guesses, scorer.informed_guesses(true))
    users = truth.truth.facts.get(UsersOfClients)
    return replace(
        unchecked,
        true=ClaimRow.of(true, with_pictures=with_pictures),
        scores=scorer.score(claimed.claim, true, guesses),
        guesses={},
        fits=question.redrawn_fits(claimed.claim, truth.truth, target, cell.rounds)
        if cell.rounds == threat.rounds
        else (),
        true_user=None if users is None else users.users.get(target),
    )
