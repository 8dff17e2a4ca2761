"""The chance that a sender is none of the known users, by how much speaks for the likeliest."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import softplus

from overheard.linkage.logit import Logit, fit_logit

WORSE = 1.25
"""Times the log loss of the largest evidence, up to which how it stands out is preferred."""

OTHERS = 8
"""As many values as which the spread of all senders' evidence counts beside a sender's own."""


@final
@dataclass(frozen=True, slots=True)
class Stranger:
    """A logistic fit of the largest evidence, or of how far it stands out.

    Args:
        logit: the chance by the statistic.
        stands_out: which one.

    """

    logit: Logit
    stands_out: bool

    def chances(self, scores: Float[Tensor, "senders users"]) -> Float[Tensor, " senders"]:
        """The chance for each sender, by the evidence for all who may be named."""
        able = torch.ones_like(scores, dtype=torch.bool)
        told = standing_out(scores, able) if self.stands_out else scores.amax(1)
        return torch.tensor([self.logit.chance(float(one)) for one in told])


UNKNOWN = Stranger(Logit(0.0, 0.0), stands_out=False)
"""Where nothing is known to calibrate on: 1/2."""


def fit_stranger(
    trials: Iterable[
        tuple[Float[Tensor, "_cases users"], Int[Tensor, " _cases"], Bool[Tensor, " users"]]
    ],
) -> Stranger:
    """Learn it from updates of known users, seen and unseen alike.

    Whole updates speak louder than the parts of them in the trials, for the right user and for
    wrong ones. So a chance learned from how loudly the largest evidence speaks is too low for
    real strangers, and how far it stands out is preferred: unless it tells the trials apart
    worse (`WORSE`), as it does where known users differ in few directions, and the evidence for
    wrong ones is no noise.

    Args:
        trials: evidence for each user, who it really is (-1 = a user who is not among them),
            and whom the evidence is of. An update plays an unseen user's besides, with its own
            user left out.

    """
    loud, far, are_strangers = [], [], []
    for scores, users, known in trials:
        able, own = known.expand(len(scores), -1), users >= 0
        others = able.clone()
        others[own, users[own]] = False
        for some, among in ((scores[own], able[own]), (scores, others)):
            loud.append(some.masked_fill(~among, -torch.inf).amax(1))
            far.append(standing_out(some, among))
        are_strangers += [torch.zeros(int(own.sum())).bool(), torch.ones(len(scores)).bool()]
    holds = torch.cat(are_strangers)
    by_far, by_loud = fit_logit(torch.cat(far), holds), fit_logit(torch.cat(loud), holds)
    told = by_far.slope < 0 and _loss(by_far, torch.cat(far), holds) <= WORSE * _loss(
        by_loud, torch.cat(loud), holds
    )
    return Stranger(by_far if told else by_loud, stands_out=told)


def standing_out(
    scores: Float[Tensor, "senders users"], able: Bool[Tensor, "senders users"]
) -> Float[Tensor, " senders"]:
    """How far the largest evidence for able users is above that for the others.

    In standard deviations of the others' (the normalisation by a cohort of Reynolds, Quatieri
    and Dunn 2000, whose cohort are the other known users), drawn to that of all senders by
    `OTHERS`: of few users it is hardly known. -inf where nobody is able.
    """
    largest, best = scores.masked_fill(~able, -torch.inf).max(1)
    rest = able.clone()
    rest[torch.arange(len(scores)), best] = False
    count = rest.sum(1)
    mean = (scores * rest).sum(1) / count.clamp(min=1)
    squares = ((scores - mean[:, None]).square() * rest).sum(1)
    common = squares.sum() / count.sum().clamp(min=1)
    variance = (squares + OTHERS * common) / (count + OTHERS)
    return (largest - mean) / torch.where(variance > 0, variance, 1.0).sqrt()


def _loss(
    logit: Logit, statistic: Float[Tensor, " cases"], holds: Bool[Tensor, " cases"]
) -> float:
    """The mean log loss, both outcomes weighed alike."""
    power = (logit.level + logit.slope * statistic) * torch.where(holds, -1.0, 1.0)
    finite = statistic.isfinite()
    lost = [softplus(power[finite & one]).mean() for one in (holds, ~holds)]
    return float(torch.stack(lost).mean())
