"""Applies a policy's exceptions: verdicts that are accepted until a date."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import final

from overheard.gate.policy import PolicyException
from overheard.gate.verdict import Acceptance, RuleVerdict

SOON = 30
"""Days before the end of an exception from which on a note tells of it."""

SCORE = "exception"
"""The score of the verdict on an expired exception."""


@final
@dataclass(frozen=True, slots=True)
class ExceptedVerdicts:
    """Verdicts after exceptions were applied.

    Args:
        verdicts: the verdicts, with one more for each expired exception.
        notes: exceptions that expire soon, and exceptions that nothing needs.

    """

    verdicts: tuple[RuleVerdict, ...]
    notes: tuple[str, ...]


def apply_exceptions(
    verdicts: Iterable[RuleVerdict], exceptions: Sequence[PolicyException], today: date
) -> ExceptedVerdicts:
    """Apply exceptions to the verdicts that do not pass.

    An exception holds through its last day. After that it changes no verdict and fails.

    Args:
        verdicts: the verdicts of all rules.
        exceptions: the exceptions of the policy; of several that match, the first one counts.
        today: the day of the check.

    """
    valid = [one for one in exceptions if one.expires >= today]
    used = set[int]()
    judged = []
    for verdict in verdicts:
        matching = [number for number, one in enumerate(valid) if _covers(one, verdict)]
        if verdict.status in ("fail", "inconclusive") and matching:
            used.update(matching)
            judged.append(_accept(verdict, valid[matching[0]]))
        else:
            judged.append(verdict)
    expired = (
        _expired(number, one) for number, one in enumerate(exceptions, 1) if one.expires < today
    )
    notes = [
        note
        for number, one in enumerate(valid)
        for note in _notes(one, (one.expires - today).days, is_used=number in used)
    ]
    return ExceptedVerdicts((*judged, *expired), tuple(notes))


def _covers(exception: PolicyException, verdict: RuleVerdict) -> bool:
    observers = None if verdict.observers is None else set(verdict.observers)
    return (
        exception.rule == verdict.rule
        and (exception.arms is None or verdict.arm in exception.arms)
        and (exception.observers is None or observers == set(exception.observers))
        and (exception.attacks is None or verdict.attack in exception.attacks)
    )


def _accept(verdict: RuleVerdict, exception: PolicyException) -> RuleVerdict:
    accepted = f"{verdict.status}, accepted until {exception.expires}: {exception.reason}"
    return replace(
        verdict,
        status="excepted",
        why=f"{accepted}; {verdict.why}" if verdict.why else accepted,
        acceptance=Acceptance(verdict.status, exception.reason, exception.expires),
    )


def _expired(number: int, exception: PolicyException) -> RuleVerdict:
    why = (
        f"the exception has expired: renew it or remove it; its reason was: {exception.reason}"
    )
    limit = f"until {exception.expires}"
    return RuleVerdict(exception.rule, SCORE, f"exception {number}", "fail", limit, None, why)


def _notes(exception: PolicyException, days: int, *, is_used: bool) -> Iterable[str]:
    name = f"The exception for “{exception.rule}” until {exception.expires}"
    if not is_used:
        yield f"{name} is not needed: remove it."
    elif days <= SOON:
        left = "today" if days == 0 else f"in {days} day{'' if days == 1 else 's'}"
        yield f"{name} expires {left}."
