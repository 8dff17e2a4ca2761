"""How well users are told apart by what labels they hold, and nothing else."""

import numpy as np
import torch

from overheard.auditing.supplies import deal_examples
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.data.dataset import Dataset
from overheard.plans.plan import Plan
from overheard.statistics.estimate import Estimate, estimate

MOST_CLASSES = 100
"""Above it labels are words, which tell more than a skew."""


def labels_alone(plan: Plan, dataset: Dataset, seed: Seed) -> Estimate:
    """Top-1 of one who is told how many examples of each label every client holds.

    The known user under whose prior label shares, one example of each label added (Laplace),
    these counts are the likeliest; users who are alike in that share the place. No update is
    read: what an attack tells beyond it is style.
    """
    hits, runs = [], []
    for number in plan.seeds:
        dealt = deal_examples(plan, dataset, number)
        assert dealt.who is not None
        priors, classes = dealt.who.known.priors, dataset.task.classes
        names = tuple(priors)
        counts = torch.stack([priors[name].counts(classes) for name in names]).double() + 1
        shares = (counts / counts.sum(1, keepdim=True)).log()
        for place in range(plan.data.clients):
            user = dealt.who.users.get(client(place))
            if user is not None and user in priors:
                held = dealt.held(place, 0).counts(classes).double()
                likely = shares @ held
                best = likely >= likely.max() - 1e-9
                right = bool(best[names.index(user)])
                hits.append(right / int(best.sum()))
                runs.append(number)
    return estimate(np.array(hits), np.array(runs), seed.child("labels alone"))
