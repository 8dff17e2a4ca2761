"""The scorer of claims about which records a target trained on."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.special import chdtrc
from torch import Tensor

from overheard.core.claims import Claim
from overheard.core.errors import ClaimError, NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import CandidateRecords
from overheard.core.parties import COHORT, Party
from overheard.core.scorer import Guesses, Score, Scorer
from overheard.core.true_facts.record_owners import RecordOwners
from overheard.core.truth import GroundTruth
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.measures import WITHIN_LABELS

FALSE_POSITIVE_RATES = ((0.01, "tpr_at_1_percent"), (0.001, "tpr_at_0.1_percent"))
"""False positive rates, each with the name of the score of the true positive rate there."""

RATE_WITHIN_LABELS = 0.01
"""The false positive rate at which records are compared within labels."""

SKEW = 1e-4
"""Labels of members and non-members differ if a chi-squared test has a smaller p-value."""

FEWEST_OF_LABEL = 20
"""Non-members of a label that its threshold needs."""


@final
@dataclass(frozen=True, slots=True)
class MembershipScorer(Scorer[Membership]):
    """How well members are distinguished from non-members.

    Members are records that the target trained on; non-members are records of no client.

    - `membership_auc`: the probability that a member has a higher score than a non-member, ties
      count half. Uninformed guess: 0.5.
    - `membership_accuracy`: the mean of the shares of members and of non-members classified
      correctly, with scores above 0 as members. Uninformed guess: 0.5.
    - `tpr_at_1_percent`, `tpr_at_0.1_percent`: the true positive rate at this false positive
      rate (Carlini et al. 2022); requires at least 100 or 1,000 non-members. If records tie at
      the threshold, the same share of tied members and tied non-members counts as above it.
      Uninformed guess: 0.01 and 0.001.
    - `membership_auc_within_labels`, `tpr_at_1_percent_within_labels`: the same for a member
      and a non-member of its label, and with a threshold of each label, if the labels of
      members and non-members differ (`SKEW`). A claim that sees labels alone gains nothing
      here. A threshold is the median of the label's non-members plus a multiple of the distance
      to their 90 % quantile; the multiple is one for all labels, so that 1 % of all
      non-members are above. Members of a label with too few non-members are left out.

    Records of other clients are neither, unless the target is all clients. Records of observers
    are always neither.
    """

    name: ClassVar[str] = "membership"
    claim_type: ClassVar[type[Claim]] = Membership
    headline: ClassVar[str] = "membership_auc"
    source: ClassVar[str] = (
        "Carlini et al. 2022 (Membership Inference Attacks From First Principles), Section IV"
    )

    def true_claim(
        self, truth: GroundTruth, target: Party, rounds: Collection[int], claim: Membership
    ) -> Membership:
        """Return 1 for members, -1 for non-members, 0 for records of other clients.

        Raises:
            NeedsError: if the ground truth does not list the target's records.

        """
        owners = truth.facts.need(RecordOwners)
        if target not in (COHORT, *owners.members) or not owners.members:
            raise NeedsError(
                f"the ground truth does not state which records {target} trained on"
            )
        labels = torch.full((len(claim.scores),), -1.0)
        for places in (owners.excluded, *owners.members.values()):
            labels[list(places)] = 0.0
        labels[list(owners.members_of(target))] = 1.0
        return Membership(labels)

    def uninformed_guesses(
        self, claim: Membership, knowledge: Knowledge
    ) -> Mapping[str, Membership]:
        """Return equal scores for all records.

        Raises:
            ClaimError: if the claim scores another number of records than there are candidates.

        """
        known = knowledge.facts.get(CandidateRecords)
        if known is not None and len(claim.scores) != len(known.records):
            raise ClaimError(
                f"the claim scores {len(claim.scores)} records, there are {len(known.records)}"
            )
        labels = known.records.labels.cpu() if known and knowledge.has_classes else None
        return {"a coin": Membership(torch.zeros(len(claim.scores)), labels)}

    def informed_guesses(self, truth: Membership) -> Mapping[str, Membership]:
        """Return nothing: no guess knows part of the truth."""
        return {}

    def score(
        self, claim: Membership, truth: Membership, guesses: Guesses[Membership]
    ) -> tuple[Score, ...]:
        """Return every score that the number of records allows, in the order of the class."""
        members, non_members = claim.scores[truth.scores > 0], claim.scores[truth.scores < 0]
        if not len(members) or not len(non_members):
            return ()
        values = dict[str, tuple[float, float]]()
        labels = guesses.uninformed["a coin"].labels
        if labels is not None:
            values |= _values_within_labels(claim.scores, truth.scores, labels)
        values["membership_auc"] = (_auc(members, non_members), 0.5)
        correct = (members > 0).double().mean() + (non_members <= 0).double().mean()
        values["membership_accuracy"] = (float(correct) / 2, 0.5)
        for rate, name in FALSE_POSITIVE_RATES:
            if len(non_members) * rate >= 1:
                values[name] = (_true_positive_rate(members, non_members, rate), rate)
        return tuple(
            Score(name, value, "higher", {"a coin": uninformed}, {})
            for name, (value, uninformed) in values.items()
        )


def _values_within_labels(
    scores: Float[Tensor, " records"],
    kinds: Float[Tensor, " records"],
    labels: Int[Tensor, " records"],
) -> Mapping[str, tuple[float, float]]:
    """Return scores within labels with their uninformed guesses; {} if labels are alike.

    Args:
        scores: of all records.
        kinds: 1 = member, -1 = non-member, 0 = neither.
        labels: of all records.

    """
    is_member, is_outside = kinds > 0, kinds < 0
    if not _labels_differ(labels[is_member], labels[is_outside]):
        return {}
    precise, wins, has_threshold = scores.double().clone(), [], torch.zeros_like(is_member)
    for label in np.unique(labels[is_member].numpy()):
        is_of_label = labels == label
        own, others = precise[is_of_label & is_member], precise[is_of_label & is_outside]
        if len(others):
            wins.append((len(own), _auc(own, others)))
        if len(others) >= FEWEST_OF_LABEL:
            middle = others.median()
            width = others.quantile(0.9) - middle
            precise[is_of_label] -= middle
            precise[is_of_label] /= width if width > 0 else 1.0
            has_threshold |= is_of_label
    values, half = dict[str, tuple[float, float]](), int(is_member.sum()) / 2
    compared = sum(count for count, _ in wins)
    if compared > half:
        mean = sum(count * value for count, value in wins) / compared
        values["membership_auc" + WITHIN_LABELS] = (mean, 0.5)
    members, non_members = (
        precise[is_member & has_threshold],
        precise[is_outside & has_threshold],
    )
    if len(members) > half and len(non_members) * RATE_WITHIN_LABELS >= 1:
        found = _true_positive_rate(members, non_members, RATE_WITHIN_LABELS)
        values["tpr_at_1_percent" + WITHIN_LABELS] = (found, RATE_WITHIN_LABELS)
    return values


def _labels_differ(one: Int[Tensor, " members"], other: Int[Tensor, " non_members"]) -> bool:
    """Return whether a chi-squared test says that labels are of different distributions."""
    classes = int(max(one.max(), other.max())) + 1
    counts = torch.stack([labels.bincount(minlength=classes) for labels in (one, other)])
    present = counts[:, counts.sum(0) > 0].double()  # (2, classes that occur)
    expected = present.sum(1, keepdim=True) * present.sum(0) / present.sum()
    statistic = float(((present - expected).square() / expected).sum())
    return bool(chdtrc(present.shape[1] - 1, statistic) < SKEW)


def _auc(
    members: Float[Tensor, " members"], non_members: Float[Tensor, " non_members"]
) -> float:
    """Return the Mann-Whitney statistic over all pairs."""
    levels = np.sort(non_members.double().numpy())
    scores = members.double().numpy()
    below = np.searchsorted(levels, scores, side="left")
    tied = np.searchsorted(levels, scores, side="right") - below
    return float((below + tied / 2).mean() / len(levels))


def _true_positive_rate(
    members: Float[Tensor, " members"], non_members: Float[Tensor, " non_members"], rate: float
) -> float:
    """Return the true positive rate at this false positive rate; tied records count in part."""
    # Ranks start at the highest score; ties share a rank.
    levels, rank = np.unique(-torch.cat([members, non_members]).numpy(), return_inverse=True)
    positives = np.bincount(rank[: len(members)], minlength=len(levels))
    negatives = np.bincount(rank[len(members) :], minlength=len(levels))
    allowed = rate * len(non_members) - (negatives.cumsum() - negatives)
    part = np.where(negatives > 0, allowed / np.maximum(negatives, 1), 1.0).clip(0, 1)
    return float((positives * part * (allowed >= 0)).sum() / len(members))
