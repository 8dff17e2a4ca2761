"""What is claimed of epsilon, what settings come to, and what attacks prove, side by side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp, inf, log

from overheard.core.accountant import Accounted
from overheard.core.mechanism import Mechanism
from overheard.core.parties import COHORT, SERVER, Party
from overheard.epsilon.bound import EpsilonBound, epsilon_bound
from overheard.epsilon.guesses import bound_by_guesses
from overheard.findings.document_rows import Standing
from overheard.findings.exposures import reader_labels
from overheard.findings.finding import ArmDefense, ArmRun, Audit, Cell, Finding
from overheard.questions.membership.scorer import MembershipScorer

ROUNDING = 0.01
"""By how much a stated epsilon may lie below the recomputed one: it may have been rounded."""


@dataclass(frozen=True, slots=True)
class EpsilonLine:
    """How a mechanism of an arm stands towards some observers.

    Args:
        arm: its name.
        defense: that has the mechanism.
        accounted: the mechanism and what its settings come to.
        observers: who pool what they read; () = whoever reads the global models alone.
        ceiling: the least epsilon that is stated or recomputed for the run towards these
            observers; infinite where nothing is guaranteed to them, None where it is unknown.
        bound: what their attacks on membership prove; None = nothing was measured.
        standing: what that amounts to.
        label: what readers see of the attack that proves the bound; "" = there is no bound.

    """

    arm: str
    defense: ArmDefense
    accounted: Accounted
    observers: tuple[Party, ...]
    ceiling: float | None
    bound: EpsilonBound | None
    standing: Standing
    label: str = ""


def epsilon_lines(audit: Audit) -> tuple[EpsilonLine, ...]:
    """One line a mechanism and group of observers, arm by arm.

    The server always has one, and so do those who read the models alone unless some observers
    without the server do. Each line is held at 95 % confidence by itself: among twenty at the
    very edge of their claim one may be called violated by chance.
    """
    runs = {run.arm: run for run in audit.arms if not run.is_control}
    listening = dict.fromkeys(
        [
            *(finding.cell.observers for finding in audit.findings),
            *(refusal.cell.observers for refusal in audit.refusals),
        ]
    )
    insiders = any(SERVER not in who for who in listening)
    groups = dict.fromkeys([(SERVER,), *listening, *([] if insiders else [()])])
    return tuple(
        _line(audit, run, defense, defense.accounted, who)
        for run in runs.values()
        for defense in run.defenses
        if defense.accounted is not None
        for who in groups
    )


def _line(
    audit: Audit,
    run: ArmRun,
    defense: ArmDefense,
    accounted: Accounted,
    observers: tuple[Party, ...],
) -> EpsilonLine:
    own = [one for one in audit.findings if _asks(one.cell, run.arm, observers)]
    checked = [one for one in own if one.is_checked]
    bound_at = partial(_bound_at, audit, run.arm, checked)
    bound, ceiling = bound_at(accounted.mechanism.delta), ceiling_of(accounted, observers)
    is_violated = (
        bound is not None
        and ceiling is not None
        and bound.epsilon > ceiling
        and _is_disproved(accounted.mechanism, ceiling, bound_at)
    )
    standing = _standing(accounted, observers, ceiling, bound, is_violated)
    if standing == "unasked" and own:
        standing = "unlike" if checked else "unchecked"
    elif standing == "unasked" and any(
        _asks(one.cell, run.arm, observers) for one in audit.refusals
    ):
        standing = "refused"
    label = "" if bound is None else reader_labels(one.cell for one in own)[bound.attack]
    return EpsilonLine(run.arm, defense, accounted, observers, ceiling, bound, standing, label)


def _bound_at(
    audit: Audit, arm: str, findings: Sequence[Finding], delta: float
) -> EpsilonBound | None:
    """What attacks prove of an epsilon that goes with this delta."""
    runs = [run for run in audit.arms if run.arm == arm and not run.is_control]
    if not findings or not all(run.are_records_alike for run in runs):
        return None
    odds = {run.canary_odds for run in runs}
    single = [one for one in findings if one.target != COHORT]
    if single and len(odds) == 1 and (each := odds.pop()) is not None:
        return bound_by_guesses(single, each, delta)
    return epsilon_bound(findings, delta)


def ceiling_of(accounted: Accounted, observers: tuple[Party, ...]) -> float | None:
    """The least epsilon that is stated or recomputed for the run towards these observers.

    That clients were drawn counts towards one observer without the server, in what is stated
    as in what is recomputed: several may know more of who was asked than the accountant allows
    for. Infinite where nothing is guaranteed, None where nothing is known.
    """
    mechanism, found = accounted.mechanism, accounted.recomputed
    is_draw_hidden = SERVER not in observers and len(observers) < 2
    if mechanism.flaw or not mechanism.covers(observers):
        return inf
    known = list[float]()
    is_for_them = is_draw_hidden or not mechanism.is_drawn
    if mechanism.stated is not None and mechanism.stated_for == "run" and is_for_them:
        known.append(mechanism.stated)
    if found is not None:
        known.append(found.pld)
        if found.drawn is not None and is_draw_hidden:
            known.append(found.drawn)
    return min(known, default=None)


def _standing(
    accounted: Accounted,
    observers: tuple[Party, ...],
    ceiling: float | None,
    bound: EpsilonBound | None,
    is_violated: bool,
) -> Standing:
    if accounted.mechanism.flaw:
        return "flawed"
    if not accounted.mechanism.covers(observers):
        return "uncovered"
    if is_violated:
        return "violated"
    if _is_overclaimed(accounted):
        return "overclaimed"
    if ceiling is None:
        return "unaccounted"
    return "unasked" if bound is None else "holds"


def _is_disproved(
    mechanism: Mechanism, ceiling: float, bound_at: Callable[[float], EpsilonBound | None]
) -> bool:
    """Whether attacks tell more of a client whose data differ than this epsilon allows.

    Members and others differ in what one client holds, not in whether it takes part. An epsilon
    for units that are added or left out covers that as one left out and another added: its
    definition, used twice, comes to 2 epsilon and (1 + e^epsilon) delta.
    """
    if mechanism.moves >= 2:
        return True
    if ceiling > -log(mechanism.delta):
        return False  # (1 + e^epsilon) delta is 1 or more, and nothing is promised
    bound = bound_at(min((1 + exp(ceiling)) * mechanism.delta, 1.0))
    return bound is not None and bound.epsilon > 2 * ceiling


def _is_overclaimed(accounted: Accounted) -> bool:
    """Whether the settings come to more than is stated, however it is reckoned."""
    stated, found = accounted.mechanism.stated, accounted.recomputed
    if stated is None or found is None:
        return False
    least = found.one_round
    if accounted.mechanism.stated_for == "run":
        least = found.pld if found.drawn is None else found.drawn
    return stated + ROUNDING < least


def _asks(cell: Cell, arm: str, observers: tuple[Party, ...]) -> bool:
    return (
        cell.arm == arm
        and cell.question == MembershipScorer.name
        and cell.observers == observers
        and not cell.is_control
    )
