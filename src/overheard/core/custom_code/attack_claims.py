"""The claims of one attack, and why it makes none about some targets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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

    If an attack that treats targets separately fails, each target is tried by itself, so that
    one of them does not cost the others their claims.

    Raises:
        AuditError: if Overheard itself cannot go on, such as on a full disk.

    """
    if not targets:
        return AttackClaims({}, {})
    try:
        return AttackClaims(_infer(attack, view, targets, knowledge, seed), {})
    except NeedsError as error:
        return (
            AttackClaims({}, dict.fromkeys(targets, str(error)))
            if attack.is_joint
            else _one_by_one(attack, view, targets, knowledge, seed)
        )
    except Exception as error:
        if _is_others_failure(error):
            reason = describe_claim_failure(attack.name, attack.claim_type, error)
            return AttackClaims({}, dict.fromkeys(targets, reason), has_failed=True)
        reason = _describe_failure(attack, error)
        if len(targets) > 1 and attack.has_separate_targets():
            return _one_by_one(attack, view, targets, knowledge, seed)
        return AttackClaims({}, {}, failures=dict.fromkeys(targets, reason))


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
        except NeedsError as error:
            problems[target] = str(error)
        except Exception as error:
            if _is_others_failure(error):
                reason = describe_claim_failure(attack.name, attack.claim_type, error)
                return AttackClaims({}, dict.fromkeys(targets, reason), True)
            failures[target] = _describe_failure(attack, error)
    return AttackClaims(claims, problems, failures=failures)


def _describe_failure(
    # Any: an attack answers a question of its own.
    attack: Attack[Any],
    error: Exception,
) -> str:
    """Return why an attack of Overheard failed; raise what no attack is the cause of."""
    return describe_internal_error(f"the attack {attack.name}", error)


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
        return True
    return not isinstance(error, AuditError | MemoryError) and is_from_custom_code(error)


def describe_claim_failure(attack: str, claim_type: type[Claim], error: Exception) -> str:
    """Return why an attack of this name has no claim, and what it must take and return."""
    return (
        f"an attack without errors: {attack}: infer failed, {describe_failure(error)}; it "
        "takes a view, targets, knowledge and a seed, and returns a mapping with a "
        f"{claim_type.__name__} for each target"
    )
