"""Audits of federations in which nothing can leak: each "leaks" of theirs is false."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args
from unittest.mock import patch

import tomli_w
import torch

from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.core.known_facts.candidate_records import CandidateRecords
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.seeds import Seed
from overheard.core.true_facts.attributes import Attributes
from overheard.data.partition.known_user_settings import PriorKind
from overheard.findings.question import Question
from overheard.learning.training_job import ClientResult, TrainingGroup
from overheard.plans.plan import parse_plan
from overheard.plans.registries import ATTACKS, SPLITS, questions
from tests.nulls.sources import LOSS_OF_NUMBERS, Source, mnist, sources

Null = Literal["noise", "users"]
"""Why nothing can leak. "noise": updates are random numbers that depend on no data, and losses
are equal. All that is true to the data is what a client states of itself: how many examples it
has. "users": updates are honest, but users are shuffled over the rows."""

NULLS: tuple[Null, ...] = get_args(Null)

NOT_OF_USERS = ("same_sender",)
"""Questions about users that honest updates answer whoever the users are: a client has the same
examples in each round, so that its updates are alike."""

CHEAP_ATTACKS: Mapping[str, Sequence[str]] = {
    "label_shares": ("bias_inversion", "mean_softmax"),
    "membership": ("whitened_membership", "loss_membership", "fed_mia"),
    "shift": ("validation_shift", "shift"),
    "identity": ("metadata", "reidentify_wccn"),
    "attribute": ("attribute_forest",),
}
"""Attacks of questions whose other attacks take long; of others, all attacks are made."""

IN_TURN = ("shift",)
"""Questions whose audits make one attack each, in turn. Two runs with six controls have 49
pairings, so the p-value of two attacks is small enough only if both put the same one first."""

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "shift": {"trend": 2},
    "validation_shift": {"trend": 2},
}
"""Settings of attacks that read trends, so that few rounds are enough."""

CLIENTS = 10
CLIENTS_THAT_CHANGE = 4
ROUNDS = 2
ROUNDS_WITH_CHANGE = 5

PRIORS: tuple[PriorKind, ...] = ("random", "chronological", "chronological_within_labels")
CANARIES = ("no", "labelled", "mislabelled")

NOISE = 0.05
"""The deviation of the numbers of an update that depends on no data."""

Kind = Literal["users", "changes", "records"]
"""What a plan states beside clients and training: users, a shift or candidate records."""


@dataclass(frozen=True)
class Federation:
    """A kind of federation, whose audits answer some questions at once.

    Args:
        source: the source of its data.
        split: the name of its split.
        null: why nothing can leak.
        kind: what its plan states.
        questions: the names of the questions.
        auxiliary_from: the table of the data set of auxiliary examples in a plan; None = the
            source itself.

    """

    source: Source
    split: str
    null: Null
    kind: Kind
    questions: tuple[str, ...]
    auxiliary_from: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """Its name in a file of results."""
        return f"{self.source.name}, {self.split}, {self.null}, {self.kind}"


@dataclass(frozen=True)
class NullVerdict:
    """The verdict of an audit on a question that nothing can answer.

    Args:
        question: the name of the question.
        verdict: the verdict.
        is_tested: whether it might have been a false "leaks".
        p_value: its p-value; 1 where claims about all targets are alike.

    """

    question: str
    verdict: str
    is_tested: bool
    p_value: float


def federations() -> Iterator[Federation]:
    """Yield a federation for each question, source, split and null that go together."""
    asked = questions().values()
    for source in sources():
        for split, split_type in SPLITS.plugins().items():
            # Users of a built-in set are for the splits by user; the other set has none.
            is_by_user = split_type.has_one_user_per_client
            if is_by_user > source.has_users or is_by_user < (source.name == "wisdm"):
                continue
            for null in NULLS:
                for kind in get_args(Kind):
                    names = tuple(
                        one.name
                        for one in asked
                        if _kind_of(one) == kind and _is_possible(one, source, split, null)
                    )
                    if names:
                        yield Federation(source, split, null, kind, names)
    clothes = {"kind": "fashion_mnist", "shrink": 2}
    yield Federation(mnist(), "iid", "noise", "records", ("membership",), clothes)


# Any: a question has claims of its own.
def _kind_of(question: Question[Any]) -> Kind:
    if question.is_about_users:
        return "users"
    return "changes" if question.control == "exchange" else "records"


def _is_possible(question: Question[Any], source: Source, split: str, null: Null) -> bool:
    if question.is_about_users and not SPLITS.plugins()[split].has_one_user_per_client:
        return False
    # Other questions are asked of classes, and their splits divide by classes.
    asks_numbers = question.name == "target_distribution"
    if asks_numbers != (source.loss == LOSS_OF_NUMBERS):
        return False
    if asks_numbers and SPLITS.plugins()[split].needs_classes:
        return False
    # Honest updates of shuffled users leak all that is not about users.
    of_users = question.is_about_users and question.name not in NOT_OF_USERS
    if null == "users" and not (of_users and source.are_users_shuffled):
        return False
    if Attributes in question.reads and not source.has_attributes:
        return False
    return source.has_texts or TokenWords not in question.gives


def audit_null(federation: Federation, number: int) -> list[NullVerdict]:
    """Return the verdicts of the audit of a federation with this number.

    Raises:
        PlanError: if its draws run short of examples.

    """
    # Honest updates are those of the product; noise takes their place where clients train.
    changed: AbstractContextManager[object] = nullcontext()
    if federation.null == "noise":
        generator = Seed(number).child("noise", federation.name).generator()
        changed = patch(
            "overheard.federation.round.train_groups", partial(_send_noise, generator)
        )
    with tempfile.TemporaryDirectory(prefix="nulls-") as folder, changed:
        stated = tomli_w.dumps(_plan_of(federation, number, Path(folder)))
        plan = parse_plan(stated, federation.name)
        made = audit(plan, Path(folder) / "audit", resources=Resources(device="cpu", workers=1))
    return [
        NullVerdict(
            one.question,
            one.judgement.verdict,
            one.judgement.is_tested,
            one.judgement.p_value,
        )
        for arm in made.arm_results
        for one in arm.threat_results
    ]


def _send_noise(
    generator: torch.Generator,
    build_model: object,
    groups: Sequence[TrainingGroup],
    recipe: object,
    **settings: object,
) -> Iterator[ClientResult]:
    """Yield updates of noise alone, with equal losses, in place of trained ones.

    Controls have the seeds of their run. A generator for the audit gives them other noise.
    """
    for group in groups:
        for client in group.clients:
            delta = {
                name: NOISE * torch.randn(tensor.shape, generator=generator)
                for name, tensor in group.start.items()
            }
            yield ClientResult(client, delta, 1.0)


def _plan_of(federation: Federation, number: int, folder: Path) -> Mapping[str, Any]:
    """Return the plan of an audit; its settings vary with the number."""
    source, split = federation.source, SPLITS.plugins()[federation.split]
    is_by_user, stated = split.has_one_user_per_client, dict[str, Any]()
    is_foreign = federation.auxiliary_from is not None
    # Half of the audits have auxiliary examples, which leave users with unequal rests.
    stated["auxiliary"] = 100 if number % 2 or federation.null != "users" else None
    stated["examples"] = 12 if is_by_user else (20, 40)
    rounds = ROUNDS
    if federation.kind == "users":
        stated["people"] = {"prior": PRIORS[number % len(PRIORS)], "holdout": 6}
        # Clients of equal size, as equal sizes link updates of one sender, whatever they hold.
        stated["examples"] = 10 if federation.null == "noise" else ROWS_OF_CLIENT
    elif federation.kind == "changes":
        rounds = ROUNDS_WITH_CHANGE
        stated["shifts"] = [
            {"client": 1, "round": 3, "shares": _uneven_shares(source.classes, 0)}
        ]
        stated |= {
            "natural_controls": 6,
            "exact_controls": 0,
            "examples": 8 if is_by_user else 24,
        }
    elif any(CandidateRecords in questions()[one].gives for one in federation.questions):
        # Records of users belong together, so that only canaries can be exchanged.
        canaries = CANARIES[1 + number % 2 if is_by_user else number % 3]
        stated["candidates"] = {"members": 6, "outsiders": 40, "canaries": canaries}
    return {
        "title": federation.name,
        "seeds": _seeds_of(federation, number),
        "data": {
            "source": source.write(folder, _seeds_of(federation, number)[0]),
            "split": {"kind": split.name, **_settings_of(federation)},
            "clients": _clients_of(federation),
            **{name: value for name, value in stated.items() if value is not None},
        },
        "training": {
            "model": source.model,
            "rounds": rounds,
            "rate": 0.2 if source.loss == "cross_entropy" else 0.02,
            "batch": 8,
            "loss": source.loss,
        },
        "threats": [
            {
                "by_round": False,
                "attacks": _attacks_on(name, number),
                "pseudonyms": "round" if federation.kind == "users" else "run",
                "virtual": {"clients": 30},
                **({"auxiliary_from": federation.auxiliary_from} if is_foreign else {}),
            }
            for name in federation.questions
        ],
    }


ROWS_OF_CLIENT = 60
"""As many as a user has rows, so that no client is cut."""


def _clients_of(federation: Federation) -> int:
    return CLIENTS_THAT_CHANGE if federation.kind == "changes" else CLIENTS


def _settings_of(federation: Federation) -> Mapping[str, Any]:
    """Return the settings of a split; `shares` has none and gets a row per client."""
    if federation.split != "shares":
        return {}
    classes, clients = federation.source.classes, _clients_of(federation)
    return {"compositions": [_uneven_shares(classes, one % classes) for one in range(clients)]}


def _uneven_shares(classes: int, frequent: int) -> list[float]:
    rest = 0.6 / (classes - 1)
    return [0.4 if label == frequent else rest for label in range(classes)]


def _seeds_of(federation: Federation, number: int) -> list[int]:
    """Return seeds that no other audit has, so that all audits are independent."""
    runs = 2 if federation.kind == "changes" else 1
    seed = Seed(number).child(federation.name)
    return [seed.child("run", run).value % 2**31 for run in range(runs)]


def _attacks_on(question: str, number: int) -> list[Mapping[str, Any]]:
    """Return the attacks of an audit that answer a question, with quick settings."""
    claim_type = questions()[question].scorer.claim_type
    wanted = CHEAP_ATTACKS.get(question)
    attacks = [
        {"kind": name, **attack.quick_settings, **SETTINGS.get(name, {})}
        for name, attack in ATTACKS.plugins().items()
        if attack.claim_type is claim_type and (wanted is None or name in wanted)
    ]
    return [attacks[number % len(attacks)]] if question in IN_TURN else attacks
