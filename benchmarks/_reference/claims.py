"""What every attack claims about the worlds of the tests, in each of its settings.

python claims.py OUT PART PARTS    writes OUT/claims/ATTACK.json for every attack of one part
"""

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

from _reference.kept import keep_json
from overheard.core.attack import Attack
from overheard.core.claims import Claim
from overheard.core.errors import AuditError
from overheard.core.parties import SERVER, Party, client
from overheard.core.seeds import Seed
from overheard.plans.kinds import ATTACKS, SCORERS
from overheard.questions.attribute.claim import Attribute
from overheard.questions.identity.claim import Identity
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.membership.claim import Membership
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.shift.claim import Shift
from overheard.testing.worlds import planted_shift
from overheard.testing.worlds.planted import EVEN, SKEWED, Overheard, federate, hold
from overheard.testing.worlds.planted_identity import (
    EVERYONE,
    Peopled,
    anybody,
    federate_people,
    person,
)
from overheard.testing.worlds.planted_membership import Remembered, federate_records
from overheard.testing.worlds.planted_shift import ShiftingRun, federate_on

Run = Overheard | ShiftingRun | Peopled | Remembered

TARGETS = tuple(client(number) for number in range(4))


def worlds() -> dict[type[Claim], dict[str, Run]]:
    """By question: where it leaks first, where nothing leaks second; as the tests have it."""
    even = federate(EVEN)
    people: dict[str, Run] = {
        "different": federate_people([person(number) for number in EVERYONE], Seed(0)),
        "alike": federate_people([anybody(n) for n in EVERYONE], Seed(0), fresh=True),
    }
    return {
        LabelShares: {
            "leaky": federate(SKEWED),
            "tight": hold(even.start, even.deltas, SKEWED, even.knowledge.auxiliary, even.sets),
        },
        Shift: {
            "shifting": federate_on(planted_shift.SKEWED, Seed(0)),
            "still": federate_on(None, Seed(0)),
        },
        Membership: {
            "by_heart": federate_records(by_heart=True),
            "never_seen": federate_records(by_heart=False),
        },
        **dict.fromkeys((Identity, SameSender, Attribute), people),
    }


# Any: an attack answers a question of its own.
def variants(attack: Attack[Any]) -> Iterator[Attack[Any]]:
    """The attack as it is, and with every other value of each setting that is a choice."""
    yield attack
    hints = get_type_hints(type(attack))
    for field in fields(attack):  # type: ignore[arg-type]
        for value in choices(hints[field.name]):
            if value != getattr(attack, field.name):
                yield replace(attack, **{field.name: value})  # type: ignore[type-var]


def choices(hint: object) -> tuple[object, ...]:
    """What a setting may be, where that can be counted up."""
    if hint is bool:
        return (False, True)
    if get_origin(hint) is Literal:
        return get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return tuple(value for part in get_args(hint) for value in choices(part))
    return ()


def claimed(attack: Attack[Any], run: Run) -> dict[str, object]:
    """All claims of an attack and their scores, or why there are none."""
    targets = run.targets if isinstance(run, Peopled) else TARGETS
    view = run.transcript.seen_by(SERVER)
    try:
        claims = attack.infer(view, targets, run.knowledge, Seed(0))
    except AuditError as error:
        return {"refused": str(error)}
    told = {who: plain(claim) for who, claim in claims.items()}
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
    scores = {} if isinstance(run, ShiftingRun) else scored(attack, run, claims)
    return {"digest": digest, "claims": told, "scores": scores}


def scored(
    attack: Attack[Any], run: Overheard | Peopled | Remembered, claims: Mapping[Party, Any]
) -> dict[str, object]:
    """Every score of each claim, beside those of the guesses."""
    every = SCORERS.parts().values()
    (scorer,) = (one() for one in every if one.claim is attack.answers)
    told = {}
    for target, claim in claims.items():
        truth = scorer.truth(run.truth, target, (0,), claim)
        scores = scorer.score(claim, truth, scorer.guesses(truth, run.knowledge))
        told[target] = [plain(score) for score in scores]
    return told


def plain(value: object) -> Any:
    """Anything that is claimed as numbers, texts, lists and tables."""
    if isinstance(value, Tensor):
        return plain(value.tolist())
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    assert isinstance(value, str | int | float | bool | NoneType), value
    return value


def main() -> None:
    """Ask all attacks of a part: in their own settings about both worlds, else about one."""
    out, part, parts = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    every, runs = ATTACKS.parts(), worlds()
    for name in list(every)[part::parts]:
        told: dict[str, dict[str, object]] = {}
        for number, attack in enumerate(variants(every[name]())):
            asked = list(runs[attack.answers].items())[: None if number == 0 else 1]
            told[repr(attack)] = {world: claimed(attack, run) for world, run in asked}
        keep_json(told, out / "claims" / f"{name}.json")


if __name__ == "__main__":
    main()
