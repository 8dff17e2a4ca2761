"""Hides who sent what behind a new name in every round, as a shuffler between them would."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

import torch

from overheard.core.messages import DistilledSet, Message, Missing, Update
from overheard.core.parties import SERVER, Party, is_shadow
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth

ANSWERS = (Update, DistilledSet)
"""What a client sends; where it distils, what follows from its set goes with the set."""


@final
@dataclass(frozen=True, slots=True)
class Renamed:
    """A run in which every update comes from a sender of its own.

    Args:
        transcript: the same messages; those of clients under new names and in another order.
        truth: the same, by the new names.

    """

    transcript: Transcript
    truth: GroundTruth


def renamed(transcript: Transcript, truth: GroundTruth, seed: Seed) -> Renamed:
    """Give each update of a client a sender `anon/ROUND-NUMBER`, numbered by chance.

    The order of the updates within a round is that of the numbers, so that it tells nothing
    either (Bittau et al. 2017, Prochlo: the shuffler). What failed to answer is left out: who
    was asked is not for the server to know. Shadow devices, which are the server's own, keep
    their names. The truth keeps no shifts: no new name lasts long enough to have one.
    """
    by_round = defaultdict[int, list[Message]](list)
    for message in transcript.messages:
        by_round[message.round].append(message)
    messages, names = list[Message](), dict[tuple[int, Party], Party]()
    for number, said in by_round.items():
        sent = defaultdict[Party, list[Message]](list)
        for one in said:
            if isinstance(one.body, ANSWERS) and not _keeps_its_name(one.sender):
                sent[one.sender].append(one)
        hidden = list(sent)
        order = torch.randperm(len(hidden), generator=seed.child("round", number).generator())
        messages += [
            one
            for one in said
            if one.sender not in hidden and not isinstance(one.body, Missing)
        ]
        for rank, place in enumerate(order.tolist()):
            name = Party(f"anon/{number}-{rank}")
            names[number, hidden[place]] = name
            messages += [replace(one, sender=name) for one in sent[hidden[place]]]
    return Renamed(Transcript(tuple(messages)), _renamed_truth(truth, names))


def _keeps_its_name(who: Party) -> bool:
    return who == SERVER or is_shadow(who)


def _renamed_truth(truth: GroundTruth, names: Mapping[tuple[int, Party], Party]) -> GroundTruth:
    return GroundTruth(
        counts={
            (number, names[number, who]): counts
            for (number, who), counts in truth.counts.items()
            if (number, who) in names
        },
        accuracy=truth.accuracy,
        users={new: truth.users[who] for (_, who), new in names.items() if who in truth.users},
        attributes=truth.attributes,
        are_counts_told=truth.are_counts_told,
        partition=None
        if truth.partition is None
        else truth.partition.renamed(
            {
                (number, who): (number, new)
                for (number, who), new in names.items()
                if (number, who) in truth.partition.rows
            }
        ),
    )
