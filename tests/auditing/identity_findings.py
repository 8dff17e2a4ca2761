"""Identity findings with given scores."""

from collections.abc import Sequence

import numpy as np

from overheard.core.parties import SERVER, Party
from overheard.core.scorer import Score
from overheard.findings.finding import Cell, ClaimRow, Finding

USERS = ("a", "b", "c", "d")
ROUNDS = (0, 1)


def identity_finding(
    scores: Sequence[float],
    who: str,
    number: int,
    *,
    users: Sequence[str] = USERS,
    known: Sequence[str] | None = None,
    seed: int = 0,
    is_control: bool = False,
    attack: str = "planted",
    part: str = "planted",
    unseen: float | None = None,
) -> Finding:
    """Return a finding; `number` identifies the target; `known` are the users it knows."""
    held = tuple(map(float, scores))
    cell = Cell(
        "none", seed, (SERVER,), attack, f"{part}()", "identity", ROUNDS, is_control, part
    )
    told = ()
    if who in (users if known is None else known):
        best = [user for user, score in zip(users, held, strict=True) if score == max(held)]
        guess = {"a random order": 1 / len(users)}
        told = (Score("top1", (who in best) / len(best), "higher", guess, {}),)
    return Finding(
        cell,
        (Party(f"anon/{number}"),),
        ClaimRow(held, candidates=tuple(users), none_of_them=unseen),
        ClaimRow((1.0,)),
        told,
        true_user=who,
    )


def identity_run(
    strength: float,
    *,
    all_users: int = 12,
    strangers: int = 0,
    updates: int = 6,
    clump: float = 0.7,
    seed: int = 0,
    is_control: bool = False,
    attack: str = "planted",
    part: str = "planted",
) -> list[Finding]:
    """Return a run with normally distributed scores, `strength` higher for the true user.

    A part of each score, with standard deviation `clump`, is the same in all updates of a user.
    """
    random = np.random.default_rng([seed, is_control, int(1000 * strength)])
    users = [f"u{number}" for number in range(all_users)]
    findings = []
    for place, who in enumerate([*users, *(f"x{number}" for number in range(strangers))]):
        shared = clump * random.normal(size=all_users)
        for update in range(updates):
            scores = random.normal(size=all_users) + shared
            if place < all_users:
                scores[place] += strength
            findings.append(
                identity_finding(
                    scores.tolist(),
                    who,
                    place * updates + update,
                    users=users,
                    seed=seed,
                    is_control=is_control,
                    attack=attack,
                    part=part,
                )
            )
    return findings
