"""Compares epsilon as stated, as recomputed from settings, and as bounded by attacks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp, inf, log

from overheard.core.accounting.accountant import AccountedMechanism
from overheard.core.mechanism import Mechanism
from overheard.core.parties import COHORT, NETWORK, SERVER, Party
from overheard.epsilon.claim_under_test import claimed_family, steps_of_relation
from overheard.epsilon.client_estimate import ClientEpsilonEstimate, estimate_client_epsilon
from overheard.epsilon.guess_bound import (
    CanaryClaim,
    bound_epsilon_at_odds,
    bound_epsilon_by_canaries,
)
from overheard.epsilon.threshold_bound import EpsilonBound, bound_epsilon_by_thresholds
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmDefense, ArmRun, Cell, Finding
from overheard.findings.names import COHORTS_KNOWN
from overheard.findings.privacy.bound_settings import BoundSettings
from overheard.findings.privacy.canary_scores import CanaryEvidence
from overheard.findings.privacy.epsilon_rows import EpsilonVerdict
from overheard.findings.threat_results import attack_labels
from overheard.questions.membership.scorer import MembershipScorer


@dataclass(frozen=True, slots=True)
class EpsilonResult:
    """The epsilon of a mechanism in an arm against some observers, with a verdict.

    Args:
        arm: its name.
        defense: that has the mechanism.
        accounted: the mechanism and its recomputed epsilon.
        observers: parties that pool what they read; () = readers of the global models alone.
        upper_bound: the smallest upper bound that is recomputed for the run and these
            observers; infinite if nothing is guaranteed against them, None if unknown.
        lower_bound: lower bound from their membership attacks; None = not measured.
        verdict: the verdict.
        attack_label: displayed name of the attack that gives the lower bound; "" = no bound.
        estimates: of the epsilon of a client, by canary clients, the one that shows most
            first; () = there were none, or it is about another unit.
        are_cohorts_known: whether an attack of these observers is told who took part.

    """

    arm: str
    defense: ArmDefense
    accounted: AccountedMechanism
    observers: tuple[Party, ...]
    upper_bound: float | None
    lower_bound: EpsilonBound | None
    verdict: EpsilonVerdict
    attack_label: str
    estimates: tuple[ClientEpsilonEstimate, ...] = ()
    are_cohorts_known: bool = False


def epsilon_results(audit: Audit) -> tuple[EpsilonResult, ...]:
    """Return one result per mechanism and group of observers, by arm.

    There is always one for the server. There is one for readers of the global models unless an
    audited group of observers is without the server. Only bounds from canaries prove a
    violation, and the level of the plan is divided by the results that could be one: so a true
    claim of any of them is called violated with that probability at most. Other bounds assume
    that records are independent given the models, so a larger one contradicts the claim under
    that assumption. Each of them has 95 % confidence by itself.
    """
    runs = dict[str, ArmRun]()
    for run in audit.arms:
        # Runs of an arm differ in who took part, and so in the accounts of clients.
        if not run.is_control and _largest_account(run) >= (
            _largest_account(runs[run.arm]) if run.arm in runs else 0.0
        ):
            runs[run.arm] = run
    audited = dict.fromkeys(
        [
            *(finding.cell.observers for finding in audit.findings),
            *(refusal.cell.observers for refusal in audit.refusals),
        ]
    )
    has_group_without_server = any(
        SERVER not in group and group != (NETWORK,) for group in audited
    )
    groups = dict.fromkeys([(SERVER,), *audited, *([] if has_group_without_server else [()])])
    lines = [
        (run, defense, defense.accounted, observers)
        for run in runs.values()
        for defense in run.defenses
        if defense.accounted is not None
        for observers in groups
    ]
    refutable = sum(
        _is_refutable(audit, run, accounted, observers)
        for run, _, accounted, observers in lines
    )
    level = audit.bound_settings.level / max(refutable, 1)
    return tuple(_epsilon_result(audit, *line, level) for line in lines)


def _is_refutable(
    audit: Audit, run: ArmRun, accounted: AccountedMechanism, observers: tuple[Party, ...]
) -> bool:
    """Return whether canaries could call a claim violated, whatever attacks say."""
    mechanism, knows = accounted.mechanism, _are_cohorts_known(audit, observers)
    ceiling = epsilon_upper_bound(accounted, observers, are_cohorts_known=knows)
    cells = [one.cell for one in audit.findings] + [one.cell for one in audit.refusals]
    is_attacked = any(_is_membership_cell(one, run.arm, observers) for one in cells)
    return (
        is_attacked
        and run.canary_odds is not None
        and not mechanism.flaw
        and mechanism.covers(observers)
        and epsilon_under_test(accounted, observers, ceiling, are_cohorts_known=knows)
        is not None
    )


def _are_cohorts_known(audit: Audit, observers: tuple[Party, ...]) -> bool:
    """Return whether an attack of these observers is told who took part in each round."""
    cells = [one.cell for one in audit.findings] + [one.cell for one in audit.refusals]
    return any(one.observers == observers and COHORTS_KNOWN in one.attack for one in cells)


def _largest_account(run: ArmRun) -> float:
    """Return the largest epsilon of a client of a run; 0 if clients have no accountants."""
    accounts = [one.clients for one in run.defenses if one.clients is not None]
    return max((one.largest.epsilon for one in accounts), default=0.0)


def _epsilon_result(
    audit: Audit,
    run: ArmRun,
    defense: ArmDefense,
    accounted: AccountedMechanism,
    observers: tuple[Party, ...],
    level: float,
) -> EpsilonResult:
    findings = [
        one for one in audit.findings if _is_membership_cell(one.cell, run.arm, observers)
    ]
    checked = [one for one in findings if one.is_checked]
    mechanism, knows = accounted.mechanism, _are_cohorts_known(audit, observers)
    ceiling = epsilon_upper_bound(accounted, observers, are_cohorts_known=knows)
    runs = [one for one in audit.arms if one.arm == run.arm and not one.is_control]
    claim = CanaryClaim(
        claimed_family(accounted, is_sample_secret=_is_sample_secret(observers, knows)),
        mechanism.delta,
        steps_of_relation(mechanism),
    )
    tested = epsilon_under_test(accounted, observers, ceiling, are_cohorts_known=knows)
    bound_at = partial(_bound_by_rates, checked, runs)
    bound = _bound_by_canaries(checked, runs, claim, audit.bound_settings, level) or bound_at(
        mechanism.delta
    )
    is_larger = bound is not None and tested is not None and bound.epsilon > tested
    refuted: EpsilonVerdict | None = None
    if is_larger and bound is not None and bound.method != "rates":
        refuted = "violated" if audit.bound_settings.are_as_stated else "estimate"
    elif is_larger and tested is not None and _is_disproved(mechanism, tested, bound_at):
        refuted = "contradicted"
    verdict = _verdict(accounted, observers, ceiling, bound, refuted)
    if verdict == "not tested" and findings:
        verdict = "not exchangeable" if checked else "unchecked"
    elif verdict == "not tested" and any(
        _is_membership_cell(one.cell, run.arm, observers) for one in audit.refusals
    ):
        verdict = "refused"
    label = "" if bound is None else attack_labels(one.cell for one in findings)[bound.attack]
    estimates = _client_estimates(audit, run.arm, accounted.mechanism, observers)
    return EpsilonResult(
        run.arm, defense, accounted, observers, ceiling, bound, verdict, label, estimates, knows
    )


def _client_estimates(
    audit: Audit, arm: str, mechanism: Mechanism, observers: tuple[Party, ...]
) -> tuple[ClientEpsilonEstimate, ...]:
    """Return what canary clients show to these observers of a mechanism for clients.

    The server reads the updates of canaries, and anybody else the global models.
    """
    if mechanism.unit != "client" or not mechanism.covers(observers):
        return ()
    read: tuple[CanaryEvidence, ...] = ("all rounds together", "best round")
    if SERVER in observers:
        read = ("own updates",)
    scores = [
        one
        for run in audit.arms
        if run.arm == arm and not run.is_control
        for one in run.canary_scores
    ]
    of_evidence = ([one for one in scores if one.evidence == evidence] for evidence in read)
    found = (
        estimate_client_epsilon(group, mechanism.delta, mechanism.moves)
        for group in of_evidence
        if group
    )
    return tuple(one for one in found if one is not None)


def _bound_by_canaries(
    findings: Sequence[Finding],
    runs: Sequence[ArmRun],
    claim: CanaryClaim,
    settings: BoundSettings,
    level: float,
) -> EpsilonBound | None:
    """Return the bound from canaries of single clients, else of the cohort; None = no canaries.

    Canaries that older versions assigned at odds give a bound for a bare epsilon alone.
    """
    of_clients = [one for one in findings if one.target != COHORT]
    if findings and all(run.canary_clients for run in runs):
        tested = of_clients or findings
        return bound_epsilon_by_canaries(tested, runs, claim, settings, level)
    odds = {run.canary_odds for run in runs}
    if of_clients and len(odds) == 1 and (common := odds.pop()) is not None:
        return bound_epsilon_at_odds(
            of_clients, common, claim.delta, level=level, times=claim.times
        )
    return None


def _bound_by_rates(
    findings: Sequence[Finding], runs: Sequence[ArmRun], delta: float
) -> EpsilonBound | None:
    """Return the bound by error rates of exchangeable records at this delta."""
    if not findings or not all(run.are_records_exchangeable for run in runs):
        return None
    return bound_epsilon_by_thresholds(findings, delta)


def epsilon_upper_bound(
    accounted: AccountedMechanism,
    observers: tuple[Party, ...],
    *,
    are_cohorts_known: bool = False,
) -> float | None:
    """Return the smallest upper bound that is recomputed for the run and these observers.

    A bound that counts on the sampling of clients is one only for observers who do not know
    the sample. Infinite if nothing is guaranteed, None if nothing is known.
    """
    mechanism, found = accounted.mechanism, accounted.recomputed
    if mechanism.flaw or not mechanism.covers(observers):
        return inf
    if found is None or accounted.run.is_open:
        return None
    is_secret = _is_sample_secret(observers, are_cohorts_known)
    return found.smallest if is_secret else found.against_everybody


def epsilon_under_test(
    accounted: AccountedMechanism,
    observers: tuple[Party, ...],
    ceiling: float | None,
    *,
    are_cohorts_known: bool = False,
) -> float | None:
    """Return the epsilon that attacks of these observers may disprove; None = there is none.

    It is the smaller one of the upper bound and of the epsilon stated for the run. One that
    counts on the sampling of clients is not stated for observers who know the sample.
    """
    mechanism = accounted.mechanism
    known = [] if ceiling is None else [ceiling]
    is_secret = _is_sample_secret(observers, are_cohorts_known)
    is_for_these = is_secret or not mechanism.is_drawn
    if mechanism.stated is not None and mechanism.stated_for == "run" and is_for_these:
        known.append(mechanism.stated)
    return min(known, default=None)


def _is_sample_secret(observers: tuple[Party, ...], are_cohorts_known: bool) -> bool:
    """Return whether these observers do not know who was sampled.

    The server and the network see who is asked, and others may be told. Several observers may
    know more of the sample than accounting allows.
    """
    sees_sample = are_cohorts_known or bool({SERVER, NETWORK} & {*observers})
    return not sees_sample and len(observers) < 2


def _verdict(
    accounted: AccountedMechanism,
    observers: tuple[Party, ...],
    ceiling: float | None,
    bound: EpsilonBound | None,
    refuted: EpsilonVerdict | None,
) -> EpsilonVerdict:
    if accounted.mechanism.flaw:
        return "flawed"
    if not accounted.mechanism.covers(observers):
        return "outside guarantee"
    if refuted is not None:
        return refuted
    if accounted.claim in ("false", "not confirmed"):
        return accounted.claim
    if ceiling is None:
        return "unaccounted"
    return "not tested" if bound is None else "holds"


def _is_disproved(
    mechanism: Mechanism, ceiling: float, bound_at: Callable[[float], EpsilonBound | None]
) -> bool:
    """Return whether error rates prove a larger epsilon, allowing for the relation.

    Members and non-members differ by replacing data of a client. An epsilon for adding or
    removing a unit covers a replacement as a removal and an addition: its definition, used
    twice, gives 2 epsilon and (1 + e^epsilon) delta.
    """
    if mechanism.moves >= 2:
        return True
    if ceiling > -log(mechanism.delta):
        return False  # (1 + e^epsilon) delta is 1 or more: nothing is guaranteed
    bound = bound_at(min((1 + exp(ceiling)) * mechanism.delta, 1.0))
    return bound is not None and bound.epsilon > 2 * ceiling


def _is_membership_cell(cell: Cell, arm: str, observers: tuple[Party, ...]) -> bool:
    return (
        cell.arm == arm
        and cell.question == MembershipScorer.name
        and cell.observers == observers
        and not cell.is_control
    )
