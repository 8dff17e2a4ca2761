"""The claims of one attack, and why it makes none about some targets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from traceback import extract_tb
from typing import Any, final

from overheard.core.attack import Attack
from overheard.core.claims import Claim
from overheard.core.custom_code.failure import describe_failure, is_from_custom_code
from overheard.core.errors import AuditError, ClaimError, NeedsError
from overheard.core.failures import describe_internal_error
from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, Party
from overheard.core.seeds import Seed
from overheard.core.view import View


@final
@dataclass(frozen=True, slots=True)
class AttackClaims:
    """What an attack returned.

    Args:
        claims: a claim about each target, where there is one; a joint claim is about `COHORT`.
        problems: by target without a claim, the reason.
        has_failed: whether code outside of Overheard failed, which may be corrected later.
        failures: by target, why Overheard itself failed to make a claim.

    """

    claims: Mapping[Party, Claim]
    problems: Mapping[Party, str]
    has_failed: bool = False
    failures: Mapping[Party, str] = field(default_factory=dict)


def make_claims(
    # Any: an attack answers a question of its own.
    attack: Attack[Any],
    view: View,
    targets: Sequence[Party],
    knowledge: Knowledge,
    seed: Seed,
) -> AttackClaims:
    """Run an attack; an error in it is a reason and does not end the audit.

    If an attack of Overheard fails, each target is tried by itself, so that one client whose
    messages no attack can read does not cost the others their claims. A joint claim has no such
    parts.

    Raises:
        AuditError: if Overheard itself cannot go on, such as on a full disk.

    """
    if not targets:
        return AttackClaims({}, {})
    try:
        return AttackClaims(_infer(attack, view, targets, knowledge, seed), {})
    except Exception as error:
        reason, is_others = _explain(attack, error)
        if not attack.is_joint and not is_others and len(targets) > 1:
            return _one_by_one(attack, view, targets, knowledge, seed)
        reasons = dict.fromkeys(targets, reason)
        if is_others or isinstance(error, NeedsError | ClaimError):
            return AttackClaims({}, reasons, has_failed=is_others)
        return AttackClaims({}, {}, failures=reasons)


def _one_by_one(
    attack: Attack[Any],
    view: View,
    targets: Sequence[Party],
    knowledge: Knowledge,
    seed: Seed,
) -> AttackClaims:
    """Try the targets one by one, as what is missing may concern one target only."""
    claims = dict[Party, Claim]()
    problems, failures = dict[Party, str](), dict[Party, str]()
    for target in targets:
        try:
            claims |= _infer(attack, view, (target,), knowledge, seed)
        except Exception as error:
            reason, is_others = _explain(attack, error)
            if is_others:
                return AttackClaims({}, dict.fromkeys(targets, reason), has_failed=True)
            is_problem = isinstance(error, NeedsError | ClaimError)
            (problems if is_problem else failures)[target] = reason
    return AttackClaims(claims, problems, failures=failures)


def _explain(
    # Any: an attack answers a question of its own.
    attack: Attack[Any],
    error: Exception,
) -> tuple[str, bool]:
    """Return why an attack made no claim, and whether code outside of Overheard failed.

    Raises:
        Exception: the error itself, if no attack is the cause of it.

    """
    if isinstance(error, NeedsError):
        return str(error), False
    is_others = _is_others_failure(error)
    if is_others or isinstance(error, ClaimError):
        return describe_claim_failure(attack.name, attack.claim_type, error), is_others
    return describe_internal_error(f"the attack {attack.name}", error), False


def _infer(
    attack: Attack[Any],
    view: View,
    targets: Sequence[Party],
    knowledge: Knowledge,
    seed: Seed,
) -> Mapping[Party, Claim]:
    """Run the attack and refuse a result that breaks its contract."""
    claims = attack.infer(view, targets, knowledge, seed)
    if not isinstance(claims, Mapping):
        raise ClaimError(f"it returned a {type(claims).__name__}")
    asked = (COHORT,) if attack.is_joint else targets
    for target in asked:
        claim = claims.get(target)
        # A subclass would be another claim once it is stored and read again.
        if type(claim) is not attack.claim_type:
            given = "no claim" if claim is None else f"a {type(claim).__name__}"
            raise ClaimError(f"it returned {given} about {target}")
    # Claims about others were not asked for.
    return {target: claims[target] for target in asked}


def _is_others_failure(error: Exception) -> bool:
    if isinstance(error, ClaimError):
        # Raised here, it says that the attack returned something else than claims. Overheard's
        # own attacks raise it for numbers that are no claim, as of a diverged model.
        is_contract = extract_tb(error.__traceback__)[-1].filename == __file__
        return is_contract or is_from_custom_code(error)
    return not isinstance(error, AuditError | MemoryError) and is_from_custom_code(error)


def describe_claim_failure(attack: str, claim_type: type[Claim], error: Exception) -> str:
    """Return why an attack of this name has no claim, and what it must take and return."""
    return (
        f"an attack without errors: {attack}: infer failed, {describe_failure(error)}; it "
        "takes a view, targets, knowledge and a seed, and returns a mapping with a "
        f"{claim_type.__name__} for each target"
    )
