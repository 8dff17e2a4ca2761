"""Whether candidate records are exchangeable: members with non-members, or of one label."""

import torch

from overheard.core.split import Split
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import DataPartition
from overheard.findings.finding import RecordExchange

SIGNIFICANCE = 0.01
"""Significance level of the test that labels differ: its false positive rate."""


def record_exchange(
    split: Split | None, dataset: Dataset, partition: DataPartition
) -> RecordExchange:
    """Return which candidate records might as well have had each other's owner.

    Canaries are assigned at random, so any two might. Of the others, two with one label might
    if the split draws the examples of a label at random, and every example is a record of its
    own: records of one user, or cut from one original, belong together.
    """
    if partition.canary_odds is not None:
        return "all"
    if split is None or not split.draws_labels_at_random or dataset.records is not None:
        return "none"
    return "same label"


def are_exchangeable(split: Split | None, dataset: Dataset, partition: DataPartition) -> bool:
    """Return whether members and non-members are exchangeable.

    If they are not, a run that reveals the distribution of the clients' data separates members
    from non-members, although it reveals no single record. Canaries are exchangeable, since
    they are assigned at random. Other candidates are if three conditions hold: the split makes
    clients alike, every example is a record of its own, and label frequencies do not differ
    (chi-squared test at `SIGNIFICANCE`).
    """
    candidates = partition.candidates
    if partition.canary_odds is not None:
        return True
    if (
        candidates is None
        or split is None
        or not split.is_exchangeable
        or dataset.records is not None
    ):
        return False
    is_member = torch.zeros(len(candidates.labels), dtype=torch.bool)
    for rows in partition.members.values():
        is_member[list(rows)] = True
    groups = [candidates.labels[is_member], candidates.labels[~is_member]]
    counts = torch.stack([group.bincount(minlength=dataset.task.classes) for group in groups])
    from scipy.stats import chi2_contingency  # only here: importing it takes half a second

    present = counts[:, counts.sum(0) > 0].numpy()  # (2, classes that occur)
    return present.shape[1] < 2 or bool(chi2_contingency(present).pvalue >= SIGNIFICANCE)
