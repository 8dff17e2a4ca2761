"""The ground truth of a run, computed from the federation and its transcript."""

from collections.abc import Sequence

from overheard.core.messages import Broadcast, Update, Weights
from overheard.core.parties import is_shadow_device
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth
from overheard.federation.federation import Federation
from overheard.federation.home import HomeTensors
from overheard.learning.evaluate import utility
from overheard.statistics.evenly_spaced import select_evenly_spaced

MAX_TESTED_BROADCASTS = 51
"""Most broadcasts that are tested; with hundreds of short rounds, tests would dominate."""


def build_ground_truth(
    federation: Federation, transcript: Transcript, home: HomeTensors | None = None
) -> GroundTruth:
    """Build the ground truth: label counts, accuracies, shifts, users, attributes, members.

    Label counts are of the clients with an update, before any defense changes their examples,
    because such a defense is to protect them. Accuracies are of the broadcasts, the closing one
    included; without classes, they are the utility of the task. Of more than
    `MAX_TESTED_BROADCASTS` broadcasts, that many are tested, evenly spaced.

    Args:
        federation: the run.
        transcript: its messages.
        home: the tensors that stay with each client; the accuracy is then the mean over the
            models of clients, and known after the last round alone. None = all are sent.

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
            shared = message.body.weights
            if home is None:
                accuracies[message.round] = _mean_utility(federation, [shared])
            elif message.round == federation.rounds:
                clients = [one for one in federation.clients if not is_shadow_device(one)]
                models = [home.model_of(one, message.round, shared) for one in clients]
                accuracies[message.round] = _mean_utility(federation, models)
    return GroundTruth(
        counts,
        accuracies,
        federation.shifts,
        federation.users,
        federation.attributes,
        federation.members,
        drawn_from=drawn_from,
    )


def _mean_utility(federation: Federation, models: Sequence[Weights]) -> float:
    """Return the mean utility of models on the test examples."""
    kind, device = federation.task.kind, federation.device
    found = [
        utility(federation.build_model, model, federation.test, kind, device)
        for model in models
    ]
    return sum(found) / len(found)
