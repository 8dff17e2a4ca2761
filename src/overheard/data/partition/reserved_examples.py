"""What is drawn before the split: auxiliary examples, prior ones of users, and canaries."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.settings import NotNegative, Settings
from overheard.core.split import Rows
from overheard.data.content_hash import ContentHashes
from overheard.data.dataset import Dataset
from overheard.data.draws import apportion, check_availability, draw_stratified
from overheard.data.partition.candidates import (
    CandidateSet,
    CandidateSettings,
    assign_canaries,
    mark_other_records,
)
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.partition.prior_private_split import PriorPrivateSplit, split_prior_private


@dataclass(frozen=True, slots=True)
class AuxiliarySize(Settings):
    """The number of labelled auxiliary examples; none if neither number is given.

    Args:
        per_class: examples of each label.
        total: examples in all, with the label shares of the training part.

    """

    per_class: NotNegative | None = None
    total: NotNegative | None = None

    def check_together(self) -> None:
        """Refuse both numbers at once."""
        if self.per_class is not None and self.total is not None:
            raise PlanError("auxiliary: give per_class or total, not both")


@dataclass(frozen=True, slots=True)
class ReservedExamples:
    """What is drawn before the split.

    Args:
        dataset: the data set; mislabelled canaries have their wrong labels.
        auxiliary_rows: rows of the attacker's examples.
        free: marks the rows that the split may assign.
        unused: marks the rows that neither attacker nor canaries use.
        user_split: the prior and private examples of users; None = nothing is known of users.
        canaries: the canaries; None = there are none.

    """

    dataset: Dataset
    auxiliary_rows: Rows
    free: Bool[Tensor, " examples"]
    unused: Bool[Tensor, " examples"]
    user_split: PriorPrivateSplit | None
    canaries: CandidateSet | None


def reserve_examples(
    dataset: Dataset,
    contents: ContentHashes,
    *,
    clients: int,
    smallest: int,
    auxiliary: AuxiliarySize,
    seed: Seed,
    known_users: KnownUserSettings | None,
    candidates: CandidateSettings | None,
    canaries_at_odds: bool = False,
) -> ReservedExamples:
    """Draw auxiliary examples, the prior examples of users, and canaries.

    Args:
        dataset: the data set.
        contents: the hashes of its examples.
        clients: the number of clients.
        smallest: the size of the smallest client.
        auxiliary: the number of auxiliary examples.
        seed: the seed of the partition.
        known_users: what the attacker knows of users; None = nothing.
        candidates: the number of candidate records; None = none.
        canaries_at_odds: see `assign_canaries`.

    Raises:
        PlanError: if there are too few examples, or settings exclude each other.

    """
    if known_users is not None and candidates is not None and candidates.are_canaries:
        raise PlanError(
            "candidates: a canary belongs to no user, so canaries and data.people cannot be "
            "combined: leave out canaries or people"
        )
    auxiliary_rows = _auxiliary_rows(
        dataset, contents.is_unique, auxiliary, seed.child("auxiliary")
    )
    free = unused = mark_other_records(auxiliary_rows, len(dataset.train), dataset.records)
    user_split = None
    if known_users is not None:
        user_split = split_prior_private(
            dataset, contents, free, known_users, smallest, seed.child("people")
        )
        free = user_split.private.clone()
    canaries = None
    if candidates is not None and candidates.are_canaries:
        canaries, dataset = assign_canaries(
            dataset,
            candidates,
            clients,
            free & contents.is_unique,
            seed.child("canaries"),
            at_odds=canaries_at_odds,
        )
        others = mark_other_records(canaries.rows, len(dataset.train), dataset.records)
        free = unused = free & others
    return ReservedExamples(dataset, auxiliary_rows, free, unused, user_split, canaries)


def _auxiliary_rows(
    dataset: Dataset, is_unique: Bool[Tensor, " examples"], auxiliary: AuxiliarySize, seed: Seed
) -> Rows:
    labels, classes = dataset.train.labels, dataset.task.classes
    if auxiliary.per_class is not None:
        counts = torch.full((classes,), auxiliary.per_class)
    elif auxiliary.total is not None:
        counts = apportion(labels.bincount(minlength=classes).double(), auxiliary.total)
    else:
        counts = torch.zeros(classes, dtype=torch.long)
    if not int(counts.sum()):
        return torch.zeros(0, dtype=torch.long)
    unique = is_unique.nonzero().flatten()
    available = labels[unique].bincount(minlength=classes)
    copies = len(labels) - len(unique)
    hint = (
        f"{copies} of {len(labels)} examples have the same inputs as another, and none of them "
        "can be auxiliary: remove copies, or "
        if copies
        else ""
    )
    check_availability(available, counts, classes, hint)
    (positions,) = draw_stratified(labels[unique], counts[None], classes, seed)
    return unique[positions]
