"""A run with the claims about it and their truth, threat by threat."""

from collections.abc import Sequence

from overheard.auditing.attack_runner import run_attacks
from overheard.auditing.audited_run import AuditedRun
from overheard.auditing.cells.claim_store import ClaimStore
from overheard.auditing.judging.judge import AttackedRun, ClaimsOfThreat
from overheard.auditing.program import AttackSpec
from overheard.auditing.progress import Progress


def attack_run(run: AuditedRun, store: ClaimStore, progress: Progress) -> AttackedRun:
    """Return a run with the claims about it; an attack runs when its claims are asked for."""
    return AttackedRun(
        run.record,
        (
            claims_of_threat(run, attacks, store, progress)
            for attacks in run.observed.spec.by_threat()
        ),
    )


def claims_of_threat(
    run: AuditedRun, attacks: Sequence[AttackSpec], store: ClaimStore, progress: Progress
) -> ClaimsOfThreat:
    """Return the claims of a threat about a run, with the truth; an attack runs when asked.

    Args:
        run: the run.
        attacks: the attacks of the threat.
        store: where claims are kept.
        progress: counts the cells.

    """
    observed = run.observed
    claims = run_attacks(observed, attacks, store, progress)
    truth = run.truth.for_threat(observed, attacks[0].threat)
    return ClaimsOfThreat(observed.spec.rounds, claims, truth)
