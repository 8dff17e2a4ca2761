"""Contract tests on label shares: clients with skewed labels, and updates that tell nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import final

import torch

from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer
from overheard.testing.planted_labels import (
    leak_free_run,
    permute_classes,
    skewed_run,
)
from overheard.testing.require import require
from overheard.testing.trial import (
    AttackTrial,
    PlantedRun,
    QuestionChecks,
    claims_about,
    gain_message,
    mean_gain,
    require_gain,
    require_no_gain,
)

ORDER = torch.tensor([2, 0, 3, 1])
"""New class i is old class ORDER[i]."""


@cache
def permuted_skewed_run() -> PlantedRun:
    """Return the skewed run with permuted classes: new class i is old class `ORDER[i]`."""
    return permute_classes(skewed_run(), ORDER)


def finds_planted_shares(trial: AttackTrial) -> None:
    """Check that it beats the uninformed guess on a planted leak."""
    require_gain(trial, 0.1, "label shares leak")


def finds_no_shares_where_nothing_leaks(trial: AttackTrial) -> None:
    """Check that it does not beat the uninformed guess if updates do not depend on the data."""
    require_no_gain(trial, 0.05, "nothing leaks")


def permuting_classes_permutes_shares(trial: AttackTrial) -> None:
    """Check that permuting the classes merely permutes its claims."""
    if not trial.attack.is_label_equivariant:
        # A permutation changes its networks, which must find the leak all the same.
        gain = mean_gain(trial, permuted_skewed_run())
        require(
            gain > 0.1, gain_message(trial, gain, "more than 0.1 where classes are permuted")
        )
        return
    before = claims_about(trial, skewed_run())
    after = claims_about(trial, permuted_skewed_run())
    for one, other in zip(before, after, strict=True):
        require(
            torch.allclose(other.shares, one.shares[ORDER], atol=1e-3, rtol=0),
            f"{trial.attack.name}: permuting the classes changes its claims: set "
            "`is_label_equivariant = False` if its draws depend on the order of classes",
        )


@final
@dataclass(frozen=True, slots=True)
class LabelSharesChecks(QuestionChecks):
    """Clients with mostly one class each, whose updates depend on it or do not."""

    name = "label_shares"
    attack_checks = (
        finds_planted_shares,
        finds_no_shares_where_nothing_leaks,
        permuting_classes_permutes_shares,
    )
    order_dependent = ("wasserstein",)
    is_about_labels = True
    scorer = LabelSharesScorer()
    example = LabelShares(torch.full((5,), 0.2))

    def leaky_runs(self) -> Sequence[PlantedRun]:
        """Return a run in which each client has mostly examples of one class."""
        return (skewed_run(),)

    def leak_free_runs(self) -> Sequence[PlantedRun]:
        """Return the same run with updates of even clients."""
        return (leak_free_run(),)
