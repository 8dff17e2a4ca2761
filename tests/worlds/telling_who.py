"""How well claims about the people of a planted run name them."""

from collections.abc import Mapping
from dataclasses import replace

from overheard.core.attack import Attack
from overheard.core.parties import SERVER, Party
from overheard.core.seeds import Seed
from overheard.questions.identity.claim import Identity
from overheard.testing.worlds.planted_identity import Peopled


def claims(attack: Attack, run: Peopled, seed: int = 0) -> Mapping[Party, Identity]:
    return attack.infer(run.transcript.seen_by(SERVER), run.targets, run.knowledge, Seed(seed))


def named(run: Peopled, told: Mapping[Party, Identity]) -> float:
    """The share of the targets of known users who are given the highest score."""
    known = run.knowledge.people.priors
    right = [
        claim.users[int(claim.scores.argmax())] == run.truth.users[who]
        for who, claim in told.items()
        if run.truth.users[who] in known
    ]
    return sum(right) / len(right)


def knowing(run: Peopled, **changes) -> Peopled:
    """The same run, of whose people something else is known."""
    people = replace(run.knowledge.people, **changes)
    return replace(run, knowledge=replace(run.knowledge, people=people))
