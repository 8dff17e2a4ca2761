"""Synthetic audits of users with a given strength of each attack."""

from collections.abc import Sequence

import torch

from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.parties import SERVER, Party
from overheard.core.scorer import Scorer
from overheard.core.true_facts.attributes import Attributes
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import GroundTruth, TrueFact
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmDefense, ArmRun, Cell, ClaimRow, Finding
from overheard.questions.attribute.claim import Attribute
from overheard.questions.attribute.scorer import AttributeScorer
from overheard.questions.identity.claim import Identity
from overheard.questions.identity.scorer import IdentityScorer
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.same_sender.scorer import SameSenderScorer

USERS = tuple(f"u{number:03d}" for number in range(12))
STRANGERS = ("x0", "x1", "x2")
ROUNDS = tuple(range(8))
ONE_EXAMPLE = Examples(torch.zeros(1, 2), torch.zeros(1, dtype=torch.int64))
MLP = "reidentify_mlp"

AUGMENTED = ArmDefense("MmAug(alpha=0.5)", "client", "the client itself", "none")


def user_truth(texts: Sequence[str], *more: TrueFact) -> GroundTruth:
    """Return the truth of a run in which these users have a pseudonym in each round."""
    users = {
        Party(f"anon/{number}-{place}"): who
        for number in ROUNDS
        for place, who in enumerate(texts)
    }
    return GroundTruth(Facts(UsersOfClients(users), *more))


def identity_findings(
    arm: str,
    attack: str,
    strength: float,
    *,
    runs: int = 1,
    part: str = "planted",
    users: Sequence[str] = USERS,
    strangers: Sequence[str] = STRANGERS,
    says_unseen: bool = True,
    has_controls: bool = True,
) -> list[Finding]:
    """One finding an update: standard normal scores, the true user's `strength` higher.

    Updates of one user are correlated: a part of their scores is the same in all rounds. In
    controls the true user has no advantage.
    """
    knowledge = Knowledge(2, facts=Facts(KnownUsers(dict.fromkeys(users, ONE_EXAMPLE))))
    truth = user_truth((*users, *strangers))
    findings = []
    for seed in range(runs):
        for is_control in (False, True) if has_controls else (False,):
            random = torch.Generator().manual_seed(
                int(1000 * strength) + 10 * seed + 5 * is_control + len(arm)
            )
            shared = {
                who: 0.5 * torch.randn(len(users), generator=random)
                for who in (*users, *strangers)
            }
            who_asks, settings = (SERVER,), f"{part}()"
            cell = Cell(
                arm, seed, who_asks, attack, settings, "identity", ROUNDS, is_control, part
            )
            for target, who in truth.facts.need(UsersOfClients).users.items():
                scores = torch.randn(len(users), generator=random) + shared[who]
                if who in users and not is_control:
                    scores[users.index(who)] += strength
                unseen = float(torch.sigmoid(2 - scores.max())) if says_unseen else None
                claim = Identity(tuple(users), scores, unseen)
                findings.append(
                    score_finding(IdentityScorer(), cell, target, claim, truth, knowledge)
                )
    return findings


def sender_findings(arm: str, attack: str, strength: float) -> list[Finding]:
    """One finding an update: every other compared, those of the same user `strength` higher."""
    truth = user_truth(USERS[:4])
    random = torch.Generator().manual_seed(int(1000 * strength))
    cell = Cell(arm, 0, (SERVER,), attack, "Planted()", "same_sender", ROUNDS)
    findings = []
    users = truth.facts.need(UsersOfClients).users
    for target, who in users.items():
        others = tuple(other for other in users if other != target)
        same = torch.tensor([float(users[other] == who) for other in others])
        scores = torch.randn(len(others), generator=random) + strength * same
        claim = SameSender(others, scores)
        findings.append(
            score_finding(SameSenderScorer(), cell, target, claim, truth, Knowledge(classes=2))
        )
    return findings


def attribute_findings(arm: str, attack: str, strength: float) -> list[Finding]:
    """One finding an update: users with an even number are young, of three groups."""
    values = ("young", "middle", "old")
    ages = {user: values[int(user[1:]) % 2] for user in USERS}
    truth = user_truth(USERS, Attributes({"age": ages}))
    known = KnownUsers(dict.fromkeys(USERS, ONE_EXAMPLE), attributes={"age": ages})
    random = torch.Generator().manual_seed(int(1000 * strength))
    findings = []
    for is_control in (False, True):
        cell = Cell(arm, 0, (SERVER,), attack, "Planted()", "attribute", ROUNDS, is_control)
        for target, who in truth.facts.need(UsersOfClients).users.items():
            evidence = torch.randn(3, generator=random)
            if not is_control:
                evidence[values.index(ages[who])] += strength
            claim = Attribute("age", values, evidence.softmax(0))
            findings.append(
                score_finding(
                    AttributeScorer(),
                    cell,
                    target,
                    claim,
                    truth,
                    Knowledge(2, facts=Facts(known)),
                )
            )
    return findings


def score_finding(
    scorer: Scorer,
    cell: Cell,
    target: Party,
    claim: Identity | SameSender | Attribute,
    truth: GroundTruth,
    knowledge: Knowledge,
) -> Finding:
    """Score a claim against the ground truth, as an audit does."""
    true = scorer.true_claim(truth, target, cell.rounds, claim)
    return Finding(
        cell,
        (target,),
        ClaimRow.of(claim),
        ClaimRow.of(true),
        scorer.score(claim, true, scorer.guesses(true, knowledge)),
        true_user=truth.facts.need(UsersOfClients).users.get(target),
    )


def user_audit(findings: Sequence[Finding], accuracies: dict[str, float]) -> Audit:
    """An audit of these findings; all arms but "none" have a defense."""
    runs = dict.fromkeys((one.cell.arm, one.cell.seed, one.cell.is_control) for one in findings)
    return Audit(
        title="Who sent this",
        subject="15 people, 8 rounds",
        class_names=("cat", "dog"),
        arms=tuple(
            ArmRun(
                arm,
                seed,
                () if arm == "none" else (AUGMENTED,),
                {0: 0.1, 8: accuracies[arm]},
                missing=0,
                answers=120,
                is_control=is_control,
            )
            for arm, seed, is_control in runs
        ),
        findings=tuple(findings),
        refusals=(),
        plan='title = "people"\n',
        versions={"overheard": "0.1.0"},
    )
