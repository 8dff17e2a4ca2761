"""What really was the case in a run, worked out from the federation and its transcript."""

from overheard.core.messages import Broadcast, Update
from overheard.core.parties import is_shadow
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth
from overheard.federation.federation import Federation
from overheard.learning.evaluate import accuracy
from overheard.statistics.spread import spread

MOST_TESTED = 51
"""Broadcasts that are tested: with hundreds of short rounds, tests would take the longest."""


def truth_of(federation: Federation, transcript: Transcript) -> GroundTruth:
    """What clients that answered held, how good each broadcast was, and who shifted when.

    Counted is what a client holds, before any defense changes it: that is the secret which a
    defense of the data is to keep. The accuracy is that of each round's broadcast, the
    closing one included; in a longer run than `MOST_TESTED` of as many, evenly from the first
    to the last.
    """
    heard = [one.round for one in transcript.messages if isinstance(one.body, Broadcast)]
    tested = frozenset(spread(sorted(heard), MOST_TESTED))
    index_of = {party: index for index, party in enumerate(federation.clients)}
    counts, accuracies = {}, {}
    for message in transcript.messages:
        # What shadow devices hold is the server's own: nobody's secret.
        if isinstance(message.body, Update) and not is_shadow(message.sender):
            rows = federation.rows[message.round][index_of[message.sender]]
            held = federation.pool.labels[rows].bincount(minlength=federation.task.classes)
            counts[message.round, message.sender] = held
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
    )
