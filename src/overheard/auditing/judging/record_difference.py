"""How well a classifier that sees listed candidate records alone separates their owners.

Records that nobody drew at random differ by themselves: those of one hospital have other ages
than public ones. An attack then separates members from outsiders without any memory of a
record. A classifier that never sees the run does so too, and tells how far.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from overheard.core.examples import Examples
from overheard.core.parties import COHORT
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.listed_records import ListedRecords
from overheard.findings.finding import RecordDifference
from overheard.statistics.estimate import Estimate
from overheard.statistics.exact_intervals import estimate_auc_of_trials

FOLDS = 5
"""Parts of the cross-validation."""

TREES = 100

MOST_OWNERS = 50
"""The most clients whose records are told apart; those of others are one group."""

MOST_INPUTS = 1000
"""The most inputs of a record; of more, those that vary most are taken."""

FEWEST = 2 * FOLDS
"""Fewest members, and outsiders, of which a classifier can tell anything."""

FEWEST_OF_CLIENT = FOLDS
"""Fewest records of a client that is told apart from outsiders."""


def measure_record_difference(listed: ListedRecords, task: Task) -> RecordDifference:
    """Return how well a random forest tells members from outsiders by the records alone.

    It sees inputs and labels of records, and is tested on those that it did not learn from. Two
    figures follow, as attacks are asked two questions:

    - Members of any client among outsiders.
    - With known owners, the records of a client among outsiders, the mean over clients. An
      update says which records a client has many of, so this one is larger where clients
      differ. Records of other clients are not compared, as no score compares them.

    Both compare records of the same label: a verdict compares no others
    (`questions.membership.statistics.re_paired_owners`). So clients that differ in their labels
    alone do not count. Few records give a wide interval.
    """
    is_member = np.zeros(len(listed.records), np.bool_)
    for rows in listed.members.values():
        is_member[list(rows)] = True
    members, outsiders = int(is_member.sum()), int((~is_member).sum())
    if min(members, outsiders) < FEWEST:
        return RecordDifference(None, None, members, outsiders)
    groups = _groups(listed)
    chances = _chances(_numbers(listed.records, task), groups)
    labels = listed.records.labels.numpy()
    of_members = auc_within(1 - chances[0], groups > 0, groups == 0, labels)
    by_client = [
        auc_within(of_client / (of_client + chances[0]), groups == name, groups == 0, labels)
        for name, of_client in chances.items()
        if name > 1
    ]
    return RecordDifference(of_members.estimate(), _mean(by_client), members, outsiders)


def _groups(listed: ListedRecords) -> Int[np.ndarray, " records"]:
    """Return the group of each record: 0 = outsiders, 1 = members of no group of their own."""
    groups = np.zeros(len(listed.records), np.int64)
    largest = sorted(listed.members.items(), key=lambda one: len(one[1]), reverse=True)
    for place, (owner, rows) in enumerate(largest):
        is_own = owner != COHORT and place < MOST_OWNERS and len(rows) >= FEWEST_OF_CLIENT
        groups[list(rows)] = place + 2 if is_own else 1
    return groups


@final
@dataclass(frozen=True, slots=True)
class ComparedRecords:
    """How well scores tell members from outsiders of the same label.

    Args:
        auc: the share of pairs that are in order, ties count half; None = there is no pair.
        members: number of members in some pair.
        outsiders: number of outsiders in some pair.

    """

    auc: float | None
    members: int
    outsiders: int

    def estimate(self) -> Estimate | None:
        """Return the AUC with an interval over records; None = no pair."""
        if self.auc is None:
            return None
        return estimate_auc_of_trials(self.auc, self.members, self.outsiders)


def auc_within(
    scores: Float[np.ndarray, " records"],
    are_members: Bool[np.ndarray, " records"],
    are_outsiders: Bool[np.ndarray, " records"],
    labels: Int[np.ndarray, " records"],
) -> ComparedRecords:
    """Return the AUC over pairs of a member and an outsider of the same label.

    >>> scores, labels = np.array([0.9, 0.1, 0.2, 0.8]), np.array([0, 0, 1, 1])
    >>> auc_within(scores, scores > 0.5, scores < 0.5, labels).auc
    1.0
    """
    in_order, pairs, members, outsiders = 0.0, 0, 0, 0
    for label in np.unique(labels):
        own = scores[are_members & (labels == label)]
        others = np.sort(scores[are_outsiders & (labels == label)])
        if not len(own) or not len(others):
            continue
        below = np.searchsorted(others, own, "left") + np.searchsorted(others, own, "right")
        in_order += float(below.sum()) / 2
        pairs += len(own) * len(others)
        members, outsiders = members + len(own), outsiders + len(others)
    return ComparedRecords(in_order / pairs if pairs else None, members, outsiders)


def _mean(compared: Sequence[ComparedRecords]) -> Estimate | None:
    """Return the mean AUC over clients; None = none has an outsider of its labels."""
    aucs = [one.auc for one in compared if one.auc is not None]
    if not aucs:
        return None
    members = sum(one.members for one in compared)
    return estimate_auc_of_trials(
        float(np.mean(aucs)), members, max(one.outsiders for one in compared)
    )


def _numbers(records: Examples, task: Task) -> Float[np.ndarray, "records numbers"]:
    """Return the inputs as numbers, of texts how often each token occurs, and the labels."""
    inputs = records.inputs.flatten(1)
    if task.vocabulary is not None:
        counts = torch.zeros(len(inputs), task.vocabulary)
        inputs = counts.scatter_add_(1, inputs, torch.ones(inputs.shape))
    if inputs.shape[1] > MOST_INPUTS:
        inputs = inputs[:, inputs.float().var(0).topk(MOST_INPUTS).indices]
    labels: Tensor = records.loss_labels
    if task.has_classes:
        labels = one_hot(labels, task.classes)
    parts = torch.cat((inputs.double(), labels.double().reshape(len(inputs), -1)), 1)
    array: np.ndarray = parts.numpy()
    return array


def _chances(
    numbers: Float[np.ndarray, "records numbers"], groups: Int[np.ndarray, " records"]
) -> Mapping[int, Float[np.ndarray, " records"]]:
    """Return by group the probability of each record, from folds that do not have it.

    They are kept for the same numbers: a first plan, its audit and the command that prints it
    ask for the same records, and 500 trees are to be fitted.
    """
    key = blake2b(np.int64(numbers.shape[1]).tobytes(), digest_size=24)
    key.update(numbers.tobytes())
    key.update(groups.tobytes())
    if key.digest() not in _KEPT:
        if len(_KEPT) == MOST_KEPT:
            _KEPT.clear()
        _KEPT[key.digest()] = _cross_validated_chances(numbers, groups)
    return _KEPT[key.digest()]


_KEPT = dict[bytes, Mapping[int, Float[np.ndarray, " records"]]]()
"""Probabilities of records, by a digest of all numbers and groups that they follow from."""

MOST_KEPT = 8
"""The most lists whose probabilities are kept."""


def _cross_validated_chances(
    numbers: Float[np.ndarray, "records numbers"], groups: Int[np.ndarray, " records"]
) -> Mapping[int, Float[np.ndarray, " records"]]:
    from sklearn.ensemble import RandomForestClassifier  # only here: the import takes a second
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    seed = Seed(0).child("record difference").value % 2**32
    forest = RandomForestClassifier(TREES, min_samples_leaf=3, random_state=seed)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    few = (groups == 1).sum() in range(1, FOLDS)
    learned = np.where(groups == 1, groups.max(), groups) if few else groups
    found = cross_val_predict(forest, numbers, learned, cv=folds, method="predict_proba")
    # No probability is 0, so that those of a pair can be compared.
    return dict(zip(np.unique(learned).tolist(), (found + 1e-9).T, strict=True))
