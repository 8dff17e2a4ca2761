"""The holders of candidate records, from the sums that an observer reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch

from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.needs import SUMS
from overheard.core.parties import COHORT, Party
from overheard.core.view import View
from overheard.participation.observed_sums import ObservedSums, find_sums
from overheard.participation.record_holders import HolderOdds, fit_holders
from overheard.simulation.gradient_evidence import (
    LARGEST_CHANGE,
    compute_gradient_evidence,
    is_diverged,
)

MOST_SUMS = 400
"""Most sums that are read together: a fit decomposes matrices of this many rows."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class RecordHolders:
    """The holders of candidate records, as far as sums tell.

    Args:
        sums: the sums that were read.
        odds: what they say, by client in the order of `sums.clients`.

    """

    sums: ObservedSums
    odds: HolderOdds


def find_record_holders(
    view: View, targets: Sequence[Party], knowledge: Knowledge, most_rounds: int, attack: str
) -> RecordHolders:
    """Return the holders of candidate records.

    The whitened fit of a record's gradient is computed in each sum, and these fits are divided
    among the clients by who took part (`participation.record_holders`). A single update is a
    sum of one client.

    Args:
        view: what the observer reads.
        targets: the clients that are asked about.
        knowledge: with candidates, a model and a recipe.
        most_rounds: at most this many rounds are read, evenly spaced; fewer where they have
            more than `MOST_SUMS` sums.
        attack: the name of the attack, for errors.

    Raises:
        NeedsError: if no sums can be read, a target is in none, cohorts do not vary, or no sum
            is that of trained models.

    """
    if COHORT in targets:
        raise NeedsError(f'{attack} needs single clients as targets: about = "clients"')
    sums = find_sums(view, most_rounds)
    if sums is not None and len(sums.rounds) > MOST_SUMS:
        sums = find_sums(view, max(1, len(set(sums.rounds)) * MOST_SUMS // len(sums.rounds)))
    if sums is None or not set(targets) <= set(sums.clients):
        raise NeedsError(f"{attack} needs {SUMS.description}")
    sums.check_separable(attack)
    is_read = np.array([not is_diverged(delta) for delta in sums.deltas])
    if not is_read.any():
        raise NeedsError(
            f"{attack} needs sums without numbers beyond {LARGEST_CHANGE:g}: see whether "
            "training diverged, or whether updates were recorded as they were sent"
        )
    senders = dict[int, list[Party]]()
    for number, sender, is_kept in zip(sums.rounds, sums.senders, is_read, strict=True):
        if is_kept:
            senders.setdefault(number, []).append(sender)
    evidence = compute_gradient_evidence(view, knowledge, senders)
    fit = torch.cat([evidence[number].fit for number in senders])
    strength = torch.cat([evidence[number].strength for number in senders])
    odds = fit_holders(
        fit.double().numpy(),
        strength.double().numpy(),
        sums.weights[is_read],
        np.array(sums.rounds)[is_read],
    )
    return RecordHolders(sums, odds)
