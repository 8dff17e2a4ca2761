"""Re-identification by label counts alone, as a baseline."""

import numpy as np
import torch

from overheard.auditing.inputs import partition_for_plan
from overheard.core.parties import client
from overheard.data.dataset import Dataset
from overheard.plans.plan import Plan
from overheard.statistics.estimate import Estimate
from overheard.statistics.run_means import estimate_mean

MOST_CLASSES = 100
"""With more classes, labels are words, which reveal more than label skew."""


def labels_alone(plan: Plan, dataset: Dataset) -> Estimate:
    """Return the top-1 accuracy of an attacker who knows the label counts of every client.

    The claim is the known user whose prior label shares, with one added example per label
    (Laplace), give the counts the largest likelihood; ties are divided. No update is read: an
    attack that is better infers more than label skew.
    """
    hits, seeds = [], []
    for number in plan.seeds:
        partition = partition_for_plan(plan, dataset, number)
        assert partition.participants is not None
        priors, classes = partition.participants.known.prior_examples, dataset.task.classes
        names = tuple(priors)
        prior_counts = (
            torch.stack([priors[name].label_counts(classes) for name in names]).double() + 1
        )
        shares = (prior_counts / prior_counts.sum(1, keepdim=True)).log()
        for index in range(plan.data.clients):
            user = partition.participants.users.get(client(index))
            if user is not None and user in priors:
                counts = partition.client_examples(index, 0).label_counts(classes).double()
                likelihood = shares @ counts
                is_best = likelihood >= likelihood.max() - 1e-9
                is_correct = bool(is_best[names.index(user)])
                hits.append(is_correct / int(is_best.sum()))
                seeds.append(number)
    return estimate_mean(np.array(hits), np.array(seeds))
