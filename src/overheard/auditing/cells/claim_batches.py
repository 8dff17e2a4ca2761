"""Claims of attacks that treat targets separately, in turns on groups of targets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

from overheard.archive.tensor_files import CACHED_FILES
from overheard.core.attack import Attack
from overheard.core.custom_code.attack_claims import AttackClaims, make_claims
from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.evaluate import MODELS_PER_STACK


@final
@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """An attack and what it is asked.

    Args:
        attack: the attack.
        targets: the targets to make claims about.
        knowledge: the attacker's knowledge.
        seed: the seed of the attack.

    """

    # Any: an attack answers a question of its own.
    attack: Attack[Any]
    targets: Sequence[Party]
    knowledge: Knowledge
    seed: Seed


def make_claims_in_batches(
    view: View, requests: Sequence[ClaimRequest]
) -> tuple[AttackClaims, ...]:
    """Return the claims of each attack. All treat one group of targets, then the next one.

    If the group's files fit into memory, the second attack finds them there.

    Args:
        view: what all attacks observe.
        requests: attacks that treat targets separately (see `Attack.has_separate_targets`).

    """
    targets = tuple(dict.fromkeys(one for request in requests for one in request.targets))
    wanted = [frozenset(request.targets) for request in requests]
    made = [list[AttackClaims]() for _ in requests]
    for group in _groups(targets, len(view.rounds())):
        for request, own, parts in zip(requests, wanted, made, strict=True):
            chosen = tuple(target for target in group if target in own)
            if chosen and not (parts and parts[-1].has_failed):
                parts.append(
                    make_claims(request.attack, view, chosen, request.knowledge, request.seed)
                )
    return tuple(
        _joined(request.targets, parts) for request, parts in zip(requests, made, strict=True)
    )


def _groups(targets: Sequence[Party], rounds: int) -> Iterator[Sequence[Party]]:
    """Yield the targets in groups whose files are kept in memory, as far as possible."""
    # A round has a broadcast, too. Whole stacks of models are computed faster, which saves more
    # than reading files once if these do not fit.
    most = CACHED_FILES // max(rounds, 1) - 1
    size = max(1, most // MODELS_PER_STACK) * MODELS_PER_STACK
    for start in range(0, len(targets), size):
        yield targets[start : start + size]


def _joined(targets: Sequence[Party], parts: Sequence[AttackClaims]) -> AttackClaims:
    """Return all claims in the order of the targets, or why there are none.

    A failure of code outside of Overheard concerns all targets.
    """
    if parts and parts[-1].has_failed:
        reason = next(iter(parts[-1].problems.values()))
        return AttackClaims({}, dict.fromkeys(targets, reason), has_failed=True)
    claims = {target: claim for part in parts for target, claim in part.claims.items()}
    problems = {target: why for part in parts for target, why in part.problems.items()}
    return AttackClaims(
        {target: claims[target] for target in targets if target in claims},
        {target: problems[target] for target in targets if target in problems},
        failures={target: why for part in parts for target, why in part.failures.items()},
    )
