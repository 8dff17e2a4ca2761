"""Write the claims of every attack on the runs of the tests, with each of its settings.

python claims.py OUT JOB JOBS    writes OUT/claims/ATTACK.json for the attacks of one job
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

from _reference.storage import store_json
from overheard.core.attack import Attack
from overheard.core.claims import Claim
from overheard.core.errors import AuditError
from overheard.core.parties import SERVER, Party, client
from overheard.core.seeds import Seed
from overheard.plans.registries import ATTACKS, SCORERS
from overheard.questions.attribute.claim import Attribute
from overheard.questions.identity.claim import Identity
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.membership.claim import Membership
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.shift.claim import Shift
from overheard.testing.planted_runs import planted_shift
from overheard.testing.planted_runs.planted_identity import (
    ALL_USERS,
    IdentityRun,
    make_identical_user,
    make_user,
    simulate_users,
)
from overheard.testing.planted_runs.planted_labels import (
    EVEN,
    SKEWED,
    LabelSharesRun,
    assemble_run,
    simulate_one_round,
)
from overheard.testing.planted_runs.planted_membership import MembershipRun, simulate_membership
from overheard.testing.planted_runs.planted_shift import ShiftingRun, simulate_shift

Run = LabelSharesRun | ShiftingRun | IdentityRun | MembershipRun

TARGETS = tuple(client(number) for number in range(4))


def test_runs() -> dict[type[Claim], dict[str, Run]]:
    """Return the test runs by question: first a leaking one, then a leak-free one."""
    even = simulate_one_round(EVEN)
    people: dict[str, Run] = {
        "different": simulate_users([make_user(number) for number in ALL_USERS], Seed(0)),
        "alike": simulate_users(
            [make_identical_user(n) for n in ALL_USERS], Seed(0), redraw_examples=True
        ),
    }
    return {
        LabelShares: {
            "leaky": simulate_one_round(SKEWED),
            "tight": assemble_run(
                even.start, even.deltas, SKEWED, even.knowledge.auxiliary, even.sets
            ),
        },
        Shift: {
            "shifting": simulate_shift(planted_shift.SKEWED, Seed(0)),
            "still": simulate_shift(None, Seed(0)),
        },
        Membership: {
            "by_heart": simulate_membership(memorised=True),
            "never_seen": simulate_membership(memorised=False),
        },
        **dict.fromkeys((Identity, SameSender, Attribute), people),
    }


# Any: attacks may be on different questions.
def variants(attack: Attack[Any]) -> Iterator[Attack[Any]]:
    """Yield the attack, and its copies with other values of settings that are choices."""
    yield attack
    hints = get_type_hints(type(attack))
    for field in fields(attack):  # type: ignore[arg-type]
        for value in choices(hints[field.name]):
            if value != getattr(attack, field.name):
                yield replace(attack, **{field.name: value})  # type: ignore[type-var]


def choices(hint: object) -> tuple[object, ...]:
    """Return the values of a setting, if they are finite."""
    if hint is bool:
        return (False, True)
    if get_origin(hint) is Literal:
        return get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return tuple(value for part in get_args(hint) for value in choices(part))
    return ()


def claimed(attack: Attack[Any], run: Run) -> dict[str, object]:
    """Return all claims of an attack and their scores, or its error."""
    targets = run.targets if isinstance(run, IdentityRun) else TARGETS
    view = run.transcript.seen_by(SERVER)
    try:
        claims = attack.infer(view, targets, run.knowledge, Seed(0))
    except AuditError as error:
        return {"refused": str(error)}
    plain_claims = {target: plain(claim) for target, claim in claims.items()}
    digest = hashlib.sha256(json.dumps(plain_claims, sort_keys=True).encode()).hexdigest()
    scores = {} if isinstance(run, ShiftingRun) else scored(attack, run, claims)
    return {"digest": digest, "claims": plain_claims, "scores": scores}


def scored(
    attack: Attack[Any],
    run: LabelSharesRun | IdentityRun | MembershipRun,
    claims: Mapping[Party, Any],
) -> dict[str, object]:
    """Return every score of each claim, with those of the guesses."""
    scorers = SCORERS.plugins().values()
    (scorer,) = (one() for one in scorers if one.claim_type is attack.claim_type)
    scores_of = {}
    for target, claim in claims.items():
        truth = scorer.true_claim(run.truth, target, (0,), claim)
        scores = scorer.score(claim, truth, scorer.guesses(truth, run.knowledge))
        scores_of[target] = [plain(score) for score in scores]
    return scores_of


def plain(value: object) -> Any:
    """Convert a claim to numbers, strings, lists and dictionaries."""
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
    """Run the attacks of a job: defaults on both runs, variants on the leaking one."""
    out, job, jobs = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    attacks, runs = ATTACKS.plugins(), test_runs()
    for name in list(attacks)[job::jobs]:
        results: dict[str, dict[str, object]] = {}
        for number, attack in enumerate(variants(attacks[name]())):
            selected = list(runs[attack.claim_type].items())[: None if number == 0 else 1]
            results[repr(attack)] = {world: claimed(attack, run) for world, run in selected}
        store_json(results, out / "claims" / f"{name}.json")


if __name__ == "__main__":
    main()
