"""Evidence for known users from corrected updates, which are compared within a round alone."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.needs import UPDATES
from overheard.core.parties import Party
from overheard.core.view import View
from overheard.linkage.known_updates import KnownUpdates
from overheard.linkage.layers import Layer
from overheard.linkage.metadata_features import list_senders
from overheard.linkage.projected_updates import project_updates
from overheard.linkage.user_evidence import fit_user_evidence

CHUNK_FACTOR = 2
"""How many times as many chunks of prior examples are trained where each round is compared
alone: on tuning seeds of WISDM (10, 11, 12), 89 % of updates were identified with 8 chunks a
user, 75 % with 4, and 88 % with 12."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class RoundEvidence:
    """Evidence for known users, one row an update, ordered by round.

    Args:
        sender_indices: the index of each sender, from 0.
        senders: index of each update's sender.
        rounds: round of each update.
        scores: log-likelihood of each user with known updates, up to a constant per update.
        unseen: the probability that the sender is none of these users.

    """

    sender_indices: Mapping[Party, int]
    senders: Int[Tensor, " updates"]
    rounds: Int[Tensor, " updates"]
    scores: Float[Tensor, "updates users"]
    unseen: Float[Tensor, " updates"]

    def index_of(self, sender: Party) -> int:
        """Return the index of a sender.

        Raises:
            NeedsError: if it has no readable update.

        """
        if sender not in self.sender_indices:
            raise NeedsError(f"no update of {sender} can be read: choose other targets")
        return self.sender_indices[sender]

    def same_user(self) -> Float[Tensor, "updates updates"]:
        """Return the log-probability that two updates are of one user, if they are of any.

        Users are equally likely, and updates are independent given the user.
        """
        log_probabilities = self.scores.log_softmax(1)
        pairs = log_probabilities[:, None] + log_probabilities[None]  # (updates, updates, ...)
        return pairs.logsumexp(2)


def fit_round_evidence(
    view: View, known: Mapping[Layer, KnownUpdates], excluded: Collection[Party]
) -> RoundEvidence:
    """Compare the updates of each round with those of known users in the same round.

    A control variate makes an update the change of a gradient, so that those of one user
    differ between rounds.

    Args:
        view: with updates.
        known: updates of known users in all rounds with updates of others, by layer.
        excluded: senders that are left out.

    Raises:
        NeedsError: if no sender is left, or an update contains NaN or infinity.

    """
    indices = {sender: index for index, sender in enumerate(list_senders(view, excluded))}
    if not indices:
        raise NeedsError(f"comparing senders needs {UPDATES.description}")
    rounds = sorted({number for sender in indices for number in view.updates(sender)})
    senders, scores, unseen = list[int](), list[Tensor](), list[Tensor]()
    sizes = list[int]()
    for number in rounds:
        evidence = fit_user_evidence(
            {name: _during(one, number) for name, one in known.items()}
        )
        crowd = project_updates(view.during((number,)), excluded, evidence)
        counts = torch.ones(len(crowd.senders), dtype=torch.long)
        scores.append(evidence.scores(crowd.projections, counts)[:, evidence.has_updates])
        unseen.append(evidence.open_set.probabilities(scores[-1]))
        names = list(crowd.sender_indices)
        senders += [indices[names[index]] for index in crowd.senders.tolist()]
        sizes.append(len(counts))
    return RoundEvidence(
        indices,
        torch.tensor(senders),
        torch.tensor(rounds).repeat_interleave(torch.tensor(sizes)),
        torch.cat(scores),
        torch.cat(unseen),
    )


def _during(known: KnownUpdates, number: int) -> KnownUpdates:
    """Return the known updates of one round."""
    rows = known.rounds == number
    return replace(
        known,
        vectors=known.vectors[rows],
        users=known.users[rows],
        rounds=known.rounds[rows],
        chunks=known.chunks[rows],
    )
