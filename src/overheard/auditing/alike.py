"""Whether records that are asked about differ in nothing but who holds them."""

import torch
from scipy.stats import chi2_contingency

from overheard.core.split import Split
from overheard.data.dataset import Dataset
from overheard.data.partition.deal import Deal

SIGNIFICANCE = 0.01
"""How often labels that differ by chance alone are taken to differ."""


def are_alike(split: Split | None, dataset: Dataset, dealt: Deal) -> bool:
    """Whether chance alone parted the clients' records in question from those of nobody.

    Only then is a record of nobody what one of a client would have been, had it been left out;
    else a run that gives away of which kind the clients' data are lets members be told from
    others, though no single record shows. Canaries are parted by a die. Else it takes a split
    that makes clients alike, examples that are records of their own, and labels that are no
    more frequent among the former than among the latter (chi-squared test at `SIGNIFICANCE`).
    """
    asked = dealt.candidates
    if dealt.canary_odds is not None:
        return True
    if asked is None or split is None or not split.makes_alike or dataset.records is not None:
        return False
    held = torch.zeros(len(asked.labels), dtype=torch.bool)
    for places in dealt.members.values():
        held[list(places)] = True
    kinds = [asked.labels[held], asked.labels[~held]]
    counts = torch.stack([kind.bincount(minlength=dataset.task.classes) for kind in kinds])
    there = counts[:, counts.sum(0) > 0].numpy()  # (2, classes of which there are some)
    return there.shape[1] < 2 or bool(chi2_contingency(there).pvalue >= SIGNIFICANCE)
