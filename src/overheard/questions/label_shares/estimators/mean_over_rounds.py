"""Claims from the mean of the shares that were estimated in each round."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.parties import Party
from overheard.learning.simplex import normalize_rows_to_shares
from overheard.questions.label_shares.claim import LabelShares


def claim_mean_over_rounds(
    rounds: Mapping[Party, Sequence[Float[Tensor, " classes"]]],
) -> dict[Party, LabelShares]:
    """Claim the mean of each target's estimates, scaled to shares.

    Args:
        rounds: for each target its estimates, one or more, in the order of the rounds.

    """
    # Targets with equally many rounds are averaged at once.
    by_count = defaultdict[int, list[Party]](list)
    for target, estimates in rounds.items():
        by_count[len(estimates)].append(target)
    claims = dict[Party, LabelShares]()
    for count, targets in by_count.items():
        stacked = torch.stack([one for target in targets for one in rounds[target]])
        means = stacked.view(len(targets), count, -1).mean(1)  # (targets, classes)
        shares = normalize_rows_to_shares(means).float()
        claims.update(zip(targets, map(LabelShares, shares), strict=True))
    return {target: claims[target] for target in rounds}
