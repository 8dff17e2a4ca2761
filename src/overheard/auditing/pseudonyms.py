"""Gives every client a new pseudonym in each round, as a shuffler would."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import final

import torch

from overheard.core.messages import DistilledSet, Message, MissingReply, Update
from overheard.core.parties import SERVER, Party, is_shadow_device
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth

CLIENT_MESSAGES = (Update, DistilledSet)
"""Messages of clients. An update derived from a distilled set moves with that set."""


@final
@dataclass(frozen=True, slots=True)
class PseudonymizedRun:
    """A run in which every update has its own pseudonym as sender.

    Args:
        transcript: the same messages; those of clients have new senders and another order.
        truth: the same ground truth, by pseudonym.
        clients: the client behind each pseudonym; empty = senders keep their names.

    """

    transcript: Transcript
    truth: GroundTruth
    clients: Mapping[Party, Party] = field(default_factory=dict)


def pseudonymize(transcript: Transcript, truth: GroundTruth, seed: Seed) -> PseudonymizedRun:
    """Replace the sender of each client update by `anon/ROUND-NUMBER`, numbered at random.

    Updates within a round are ordered by these numbers, so that their order reveals nothing
    (Bittau et al. 2017, Prochlo: the shuffler). Missing updates are left out, since the server
    must not learn which clients were sampled. Shadow devices belong to the server and keep
    their names. The ground truth has no shifts, since every pseudonym lasts one round only.
    """
    by_round = defaultdict[int, list[Message]](list)
    for message in transcript.messages:
        by_round[message.round].append(message)
    messages, names = list[Message](), dict[tuple[int, Party], Party]()
    for number, in_round in by_round.items():
        sent = defaultdict[Party, list[Message]](list)
        for message in in_round:
            if isinstance(message.body, CLIENT_MESSAGES) and not _is_exempt(message.sender):
                sent[message.sender].append(message)
        senders = list(sent)
        order = torch.randperm(len(senders), generator=seed.child("round", number).generator())
        messages += [
            message
            for message in in_round
            if message.sender not in senders and not isinstance(message.body, MissingReply)
        ]
        for rank, index in enumerate(order.tolist()):
            name = Party(f"anon/{number}-{rank}")
            names[number, senders[index]] = name
            messages += [replace(message, sender=name) for message in sent[senders[index]]]
    return PseudonymizedRun(
        Transcript(tuple(messages)),
        _pseudonymize_truth(truth, names),
        {name: party for (_, party), name in names.items()},
    )


def _is_exempt(party: Party) -> bool:
    return party == SERVER or is_shadow_device(party)


def _pseudonymize_truth(
    truth: GroundTruth, names: Mapping[tuple[int, Party], Party]
) -> GroundTruth:
    return GroundTruth(
        counts={
            (number, names[number, party]): counts
            for (number, party), counts in truth.counts.items()
            if (number, party) in names
        },
        accuracy=truth.accuracy,
        users={
            name: truth.users[party]
            for (_, party), name in names.items()
            if party in truth.users
        },
        attributes=truth.attributes,
        has_label_counts=truth.has_label_counts,
        redrawn_counts={
            (number, names[number, party]): counts
            for (number, party), counts in truth.redrawn_counts.items()
            if (number, party) in names
        },
        partition=None
        if truth.partition is None
        else truth.partition.select_and_rename(
            {
                (number, party): (number, name)
                for (number, party), name in names.items()
                if (number, party) in truth.partition.rows
            }
        ),
    )
