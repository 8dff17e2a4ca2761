"""The ground truth of a run, computed from the federation and its transcript."""

from overheard.core.messages import Broadcast, Update
from overheard.core.parties import is_shadow_device
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth
from overheard.federation.federation import Federation
from overheard.learning.evaluate import accuracy
from overheard.statistics.evenly_spaced import select_evenly_spaced

MAX_TESTED_BROADCASTS = 51
"""Most broadcasts that are tested; with hundreds of short rounds, tests would dominate."""


def build_ground_truth(federation: Federation, transcript: Transcript) -> GroundTruth:
    """Build the ground truth: label counts, accuracies, shifts, users, attributes, members.

    Label counts are of the clients with an update, before any defense changes their examples,
    because such a defense is to protect them. Accuracies are of the broadcasts, the closing one
    included. Of more than `MAX_TESTED_BROADCASTS` broadcasts, that many are tested, evenly
    spaced.
    """
    rounds = [one.round for one in transcript.messages if isinstance(one.body, Broadcast)]
    tested = frozenset(select_evenly_spaced(sorted(rounds), MAX_TESTED_BROADCASTS))
    index_of = {party: index for index, party in enumerate(federation.clients)}
    counts, accuracies, drawn_from = {}, {}, {}
    for message in transcript.messages:
        # The data of shadow devices are the server's, so they are no secret.
        if isinstance(message.body, Update) and not is_shadow_device(message.sender):
            rows = federation.rows[message.round][index_of[message.sender]]
            labels = federation.pool.labels[rows]
            label_counts = labels.bincount(minlength=federation.task.classes)
            counts[message.round, message.sender] = label_counts
            if federation.drawn_from is not None:
                by_client = federation.drawn_from[message.round]
                shares = by_client[index_of[message.sender]]
                drawn_from[message.round, message.sender] = shares
        if isinstance(message.body, Broadcast) and message.round in tested:
            accuracies[message.round] = accuracy(
                federation.build_model,
                message.body.weights,
                federation.test,
                device=federation.device,
            )
    return GroundTruth(
        counts,
        accuracies,
        federation.shifts,
        federation.users,
        federation.attributes,
        federation.members,
        drawn_from=drawn_from,
    )
