"""Whether members and non-members among the candidate records are exchangeable."""

import torch
from scipy.stats import chi2_contingency

from overheard.core.split import Split
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import DataPartition

SIGNIFICANCE = 0.01
"""Significance level of the test that labels differ: its false positive rate."""


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
    present = counts[:, counts.sum(0) > 0].numpy()  # (2, classes that occur)
    return present.shape[1] < 2 or bool(chi2_contingency(present).pvalue >= SIGNIFICANCE)
