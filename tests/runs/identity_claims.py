"""How well claims identify the users of a planted run."""

from collections.abc import Mapping
from dataclasses import replace

from overheard.core.attack import Attack
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.parties import SERVER, Party
from overheard.core.seeds import Seed
from overheard.questions.identity.claim import Identity
from overheard.testing.planted_users import users_of
from overheard.testing.trial import PlantedRun


def infer_claims(attack: Attack, run: PlantedRun, seed: int = 0) -> Mapping[Party, Identity]:
    return attack.infer(run.transcript.seen_by(SERVER), run.targets, run.knowledge, Seed(seed))


def share_identified(run: PlantedRun, claims_by_target: Mapping[Party, Identity]) -> float:
    """Return the share of known users' targets with the highest score for the true user."""
    known = KnownUsers.of(run.knowledge).prior_examples
    right = [
        claim.users[int(claim.scores.argmax())] == users_of(run)[target]
        for target, claim in claims_by_target.items()
        if users_of(run)[target] in known
    ]
    return sum(right) / len(right)


def with_known_users(run: PlantedRun, **changes) -> PlantedRun:
    """Return the run with changed knowledge of its users."""
    facts = run.knowledge.facts.having(replace(KnownUsers.of(run.knowledge), **changes))
    return replace(run, knowledge=replace(run.knowledge, facts=facts))
