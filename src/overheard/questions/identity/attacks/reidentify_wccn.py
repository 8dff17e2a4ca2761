"""Overheard's re-identification: cosines in spaces normalised within users."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log
from typing import Annotated, ClassVar, final

import torch
from annotated_types import Ge
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.algorithm.control_variates import corrected_history
from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.needs import UPDATES, USERS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.linkage.known_updates import UpdateSource, load_known_updates
from overheard.linkage.layers import DifferentLayers
from overheard.linkage.learns_from_updates import LearnsFromUpdates
from overheard.linkage.projected_updates import project_updates, read_default_layers
from overheard.linkage.round_evidence import CHUNK_FACTOR, RoundEvidence, fit_round_evidence
from overheard.linkage.update_linking import link_updates
from overheard.linkage.user_evidence import fit_user_evidence
from overheard.linkage.wccn import mean_by_user
from overheard.questions.identity.claim import Identity
from overheard.questions.identity.estimators.user_classes import (
    NO_UPDATE_SCORE,
    UserClasses,
    build_user_classes,
)

SIMULATED_ROUNDS = 6
"""Rounds in which known users are trained: more rounds read the same data at more cost."""


@final
@dataclass(frozen=True, slots=True)
class ReidentifyWccn(LearnsFromUpdates, Attack[Identity]):
    """Similarity of an update to each known user after within-class covariance normalisation.

    1. Each user's prior examples are cut into chunks in order of time. On each chunk, the
       attacker trains from some broadcasts, as a separate client would. Differences between the
       chunks of one user estimate how its private examples may differ from its prior ones.
    2. An update is scaled to length 1, the mean of its round is subtracted, and it is whitened
       so that chunks of one user vary equally in all directions (`linkage.wccn`). The
       cosine with each user is the evidence. Several layers are read in this way.
    3. Weights of the cosines are learned on prior examples only: half of the chunks is used to
       classify the other half (`linkage.user_evidence`). They turn cosines into probabilities.
    4. Updates under pseudonyms that last one round are linked first if they are near enough to
       come from the same data. Linked updates are combined.
    5. No user replies twice in a round or under two lasting pseudonyms. Probabilities are
       fitted to that (`sinkhorn_assignment`). `unseen` is calibrated on left-out
       users and on holdout users.

    Updates that control variates corrected are compared with those of known users in the same
    round alone, and are not linked. Prior examples are then cut into twice as many chunks.

    With `link` and `at_most_one` both false, a claim about a pseudonym that lasts one round
    rests on its update alone, as the claims of the other attacks do. With the defaults it rests
    on all updates of the run.

    Misleading if private examples differ from prior ones in ways in which chunks of prior
    examples do not differ. This is the case with shadow devices, which hold the same data in
    all rounds: `unseen` is then too high, and more so the less users differ. `unseen` assumes
    that known and unknown users are equally likely a priori (`linkage.user_evidence`).

    Args:
        updates: the source of known updates.
        layers: the parts of an update that are read separately; None = the last layer's bias
            if it has one, the last layer, and all layers.
        pieces: number of chunks of each user's prior examples, if simulated; at least 2.
        most_rounds: maximum number of rounds in which known users are trained.
        link: whether updates of short-lived pseudonyms are linked.
        at_most_one: whether a user may be behind at most one sender.

    """

    updates: UpdateSource = "simulated"
    layers: DifferentLayers | None = None
    pieces: Annotated[int, Ge(2)] = 4
    most_rounds: Positive = SIMULATED_ROUNDS
    link: bool = True
    at_most_one: bool = True

    name: ClassVar[str] = "reidentify_wccn"
    claim_type: ClassVar = Identity
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = (
        "Overheard; within-class covariance normalisation: Hatch, Kajarekar and Stolcke 2006; "
        "cosine scoring: Dehak et al. 2011; the threat: Orekondy et al. 2018 (arXiv 1805.05838)"
    )

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Identity]:
        """Claim the log-probability of each known user for each target.

        Raises:
            NeedsError: if updates of known users are unavailable.

        """
        is_corrected = self.updates == "simulated" and bool(corrected_history(view))
        chunks = self.pieces * (CHUNK_FACTOR if is_corrected else 1)
        known = {
            layer: load_known_updates(
                view, knowledge, self.updates, layer, chunks, self.most_rounds
            )
            for layer in self.layers or read_default_layers(view)
        }
        classes = build_user_classes(next(iter(known.values())), self.name)
        devices = KnownUsers.of(knowledge).shadow_devices
        if is_corrected:
            return self._infer_by_round(
                fit_round_evidence(view, known, devices), classes, targets
            )
        evidence = fit_user_evidence(known)
        crowd = project_updates(view, devices, evidence)
        senders, rounds, count = crowd.senders, crowd.rounds, len(crowd.sender_indices)
        is_lasting = len(senders) > count
        groups = senders
        if self.link and not is_lasting:
            groups = link_updates(
                evidence.similarity(crowd.projections), rounds, evidence.link_threshold
            )
        group_count = int(groups.max()) + 1
        means = [mean_by_user(layer, groups, group_count) for layer in crowd.projections]
        scores = evidence.scores(means, groups.bincount(minlength=group_count))
        scores = scores[:, evidence.has_updates][_group_of_sender(groups, senders, count)]
        unseen = evidence.open_set.probabilities(scores)
        log_probabilities = scores.log_softmax(1)
        if self.at_most_one:
            log_probabilities = _assign_one_to_one(
                log_probabilities, senders, rounds, is_lasting
            )
        numbers = {target: crowd.index_of(target) for target in targets}
        return {
            target: classes.build_claim(
                log_probabilities[number].clamp(min=NO_UPDATE_SCORE).float(),
                float(unseen[number]),
            )
            for target, number in numbers.items()
        }

    def _infer_by_round(
        self, evidence: RoundEvidence, classes: UserClasses, targets: Sequence[Party]
    ) -> Mapping[Party, Identity]:
        """Claim the user of each target from updates that are compared round by round.

        Updates of one pseudonym count alike, and updates of different ones are not linked.
        """
        senders, count = evidence.senders, len(evidence.sender_indices)
        log_probabilities = evidence.scores.new_zeros(count, evidence.scores.shape[1])
        log_probabilities.index_add_(0, senders, evidence.scores.log_softmax(1))
        log_probabilities = log_probabilities.log_softmax(1)
        unseen = mean_by_user(evidence.unseen[:, None], senders, count)[:, 0]
        if self.at_most_one:
            is_lasting = len(senders) > count
            log_probabilities = _assign_one_to_one(
                log_probabilities, senders, evidence.rounds, is_lasting
            )
        numbers = {target: evidence.index_of(target) for target in targets}
        return {
            target: classes.build_claim(
                log_probabilities[number].clamp(min=NO_UPDATE_SCORE).float(),
                float(unseen[number]),
            )
            for target, number in numbers.items()
        }


def _group_of_sender(
    groups: Int[Tensor, " updates"], senders: Int[Tensor, " updates"], count: int
) -> Int[Tensor, " senders"]:
    """Return the group of linked updates that each sender is in."""
    group_of_sender = torch.zeros(count, dtype=torch.long)
    group_of_sender[senders] = groups
    return group_of_sender


def _assign_one_to_one(
    log_probabilities: Float[Tensor, "senders users"],
    senders: Int[Tensor, " updates"],
    rounds: Int[Tensor, " updates"],
    is_lasting: bool,
) -> Float[Tensor, "senders users"]:
    """Assign each user to at most one sender of a round, or of all lasting pseudonyms."""
    if is_lasting:
        return sinkhorn_assignment(log_probabilities)
    fitted = log_probabilities.clone()
    for number in sorted(set(rounds.tolist())):
        of_round = senders[rounds == number]
        fitted[of_round] = sinkhorn_assignment(log_probabilities[of_round])
    return fitted


MAX_ITERATIONS = 200
"""Per temperature; for 100 senders, probabilities then change by less than 0.001."""

COOLING_FACTOR = 4.0
"""Factor between successive temperatures."""


def sinkhorn_assignment(
    scores: Float[Tensor, "senders users"],
) -> Float[Tensor, "senders users"]:
    """Return log-probabilities of each user for each sender, given at most one sender per user.

    Sinkhorn's scaling (1967) with sums of at most 1 over the senders, as some users sent
    nothing. A user claimed by several senders gets a price, raised until its probabilities sum
    to 1 or less. This is a soft form of the assignment problem that keeps uncertainty. With
    more senders than users, the probabilities of each user sum to senders / users.

    If scores are far apart, prices converge slowly. They are therefore found at a high
    temperature first (scores divided by a large number), then at lower and lower ones, like
    the epsilon scaling of auction algorithms (Bertsekas 1988).
    """
    price = torch.zeros(scores.shape[1], dtype=scores.dtype)
    for temperature in _temperatures(scores):
        for _ in range(MAX_ITERATIONS):
            log_probabilities = ((scores - price) / temperature).log_softmax(1)
            new_price = (price + temperature * log_probabilities.logsumexp(0)).clamp(min=0)
            if torch.allclose(new_price, price, atol=1e-4 * temperature, rtol=0):
                break
            price = new_price
    return (scores - price).log_softmax(1)


def _temperatures(scores: Float[Tensor, "senders users"]) -> list[float]:
    """Return temperatures from the widest gap between scores of a sender down to 1."""
    finite = scores.where(scores.isfinite(), torch.nan)
    gap = float((scores.amax(1) - finite.nanmedian(1).values).nan_to_num().amax())
    steps = max(0, ceil(log(max(gap, 1.0), COOLING_FACTOR)))
    return [COOLING_FACTOR**step for step in reversed(range(steps + 1))]
