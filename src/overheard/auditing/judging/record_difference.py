"""How well a classifier that sees listed candidate records alone separates their owners.

Records that nobody drew at random differ by themselves: those of one hospital have other ages
than public ones. An attack then separates members from outsiders without any memory of a
record. A classifier that never sees the run does so too, and tells how far.
"""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.listed_records import ListedRecords
from overheard.findings.finding import RecordDifference
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


def measure_record_difference(listed: ListedRecords, task: Task) -> RecordDifference:
    """Return the AUC of a random forest that tells members from outsiders by the records alone.

    It sees inputs and labels of records and is tested on those that it did not learn from. With
    known owners, it tells clients apart too: the mean AUC of each client's records among all
    others is taken if it is larger. Few records give a wide interval.
    """
    numbers = _numbers(listed.records, task)
    is_member = np.zeros(len(numbers), np.bool_)
    for rows in listed.members.values():
        is_member[list(rows)] = True
    members, outsiders = int(is_member.sum()), int((~is_member).sum())
    if min(members, outsiders) < FEWEST:
        return RecordDifference(None, members, outsiders)
    groups = _groups(listed, len(numbers))
    auc = estimate_auc_of_trials(_auc(numbers, groups), members, outsiders)
    return RecordDifference(auc, members, outsiders)


def _groups(listed: ListedRecords, records: int) -> Int[np.ndarray, " records"]:
    """Return the group of each record: 0 = outsiders, 1 = members of no group of their own."""
    groups = np.zeros(records, np.int64)
    largest = sorted(listed.members.values(), key=len, reverse=True)
    for place, rows in enumerate(largest):
        is_own = place < MOST_OWNERS and len(rows) >= FEWEST
        groups[list(rows)] = place + 2 if is_own else 1
    return groups


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


def _auc(
    numbers: Float[np.ndarray, "records numbers"], groups: Int[np.ndarray, " records"]
) -> float:
    """Return the larger of the AUC of members and the mean AUC of the groups of clients."""
    from sklearn.ensemble import RandomForestClassifier  # only here: the import takes a second
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    seed = Seed(0).child("record difference").value % 2**32
    forest = RandomForestClassifier(TREES, min_samples_leaf=3, random_state=seed)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    names = np.unique(groups)
    if (groups == 1).sum() in range(1, FOLDS):
        groups = np.where(groups == 1, names[-1], groups)
        names = np.unique(groups)
    scores = cross_val_predict(forest, numbers, groups, cv=folds, method="predict_proba")
    of_members = roc_auc_score(groups > 0, 1 - scores[:, 0])
    by_client = [
        roc_auc_score(groups == name, scores[:, column])
        for column, name in enumerate(names)
        if name > 1
    ]
    return float(max(of_members, np.mean(by_client or [0.0])))
