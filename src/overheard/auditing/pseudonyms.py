"""Gives every client a new pseudonym in each round, as a shuffler would."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar, final

import torch

from overheard.core.messages import DistilledSet, Message, MissingReply, UnstoredMessage, Update
from overheard.core.parties import SERVER, Party, is_shadow_device
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.truth import ByRound, Renaming

CLIENT_MESSAGES = (Update, DistilledSet)
"""Messages of clients. An update derived from a distilled set moves with that set."""

V = TypeVar("V")

_NO_UPDATES = (MissingReply, UnstoredMessage)


@final
@dataclass(frozen=True, slots=True)
class Pseudonyms(Renaming):
    """The pseudonym of each client in each round.

    Args:
        names: by round and client, its pseudonym.

    """

    names: Mapping[tuple[int, Party], Party]

    keeps_names = False

    def clients(self) -> Mapping[Party, Party]:
        """Return the client behind each pseudonym."""
        return {name: party for (_, party), name in self.names.items()}

    def rename_senders(self, transcript: Transcript) -> Transcript:
        """Return the messages of a run, those of clients from pseudonyms and in their order.

        Updates within a round are ordered by the numbers of pseudonyms, so that their order
        reveals nothing. Missing updates are left out, since the server must not learn which
        clients were sampled. Shadow devices belong to the server and keep their names.
        """
        by_round = defaultdict[int, list[Message]](list)
        for message in transcript.messages:
            by_round[message.round].append(message)
        messages = list[Message]()
        for number, in_round in by_round.items():
            sent = defaultdict[Party, list[Message]](list)
            for message in in_round:
                name = self.names.get((number, message.sender))
                if name is not None and isinstance(message.body, CLIENT_MESSAGES):
                    sent[name].append(message)
                elif name is None and not isinstance(message.body, _NO_UPDATES):
                    messages.append(message)
            for name in sorted(sent, key=_number_in_round):
                messages += [replace(message, sender=name) for message in sent[name]]
        return Transcript(tuple(messages))

    def rename_parties(self, held: Mapping[Party, V]) -> Mapping[Party, V]:
        """Return what is held by client, by pseudonym."""
        return {name: held[party] for (_, party), name in self.names.items() if party in held}

    def rename_by_round(self, held: ByRound[V]) -> ByRound[V]:
        """Return what is held by (round, client), by round and pseudonym."""
        return {
            (number, self.names[number, party]): one
            for (number, party), one in held.items()
            if (number, party) in self.names
        }


def draw_pseudonyms(transcript: Transcript, seed: Seed) -> Pseudonyms:
    """Draw a name `anon/ROUND-NUMBER` for each client that sends an update in a round.

    The numbers are random (Bittau et al. 2017, Prochlo: the shuffler).
    """
    senders = defaultdict[int, dict[Party, None]](dict)
    for message in transcript.messages:
        if isinstance(message.body, CLIENT_MESSAGES) and not _is_exempt(message.sender):
            senders[message.round][message.sender] = None
    names = dict[tuple[int, Party], Party]()
    for number, parties in senders.items():
        order = torch.randperm(len(parties), generator=seed.child("round", number).generator())
        in_order = list(parties)
        for rank, index in enumerate(order.tolist()):
            names[number, in_order[index]] = Party(f"anon/{number}-{rank}")
    return Pseudonyms(names)


def _number_in_round(name: Party) -> int:
    return int(name.rpartition("-")[2])


def _is_exempt(party: Party) -> bool:
    return party == SERVER or is_shadow_device(party)
