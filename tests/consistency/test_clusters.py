"""A recording in which clients were sent different models in a round is no run of one model."""

from collections.abc import Sequence

import torch

from overheard.consistency.check import RecordingCheck
from overheard.consistency.clusters import CLUSTERS_MEND
from overheard.consistency.proof import RecordingProof
from overheard.consistency.statement import StatedStep
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import SERVER, Party, client
from overheard.core.seeds import Seed

CLIENTS = tuple(client(number) for number in range(4))
TO_SERVER = frozenset({SERVER})


def run(clusters: Sequence[tuple[Party, ...]], repeats: int = 1) -> RecordingProof:
    """Check four rounds of FedAvg in each cluster, which sends each model so often."""
    generator, found = Seed(0).generator(), RecordingCheck(StatedStep())
    models = [torch.randn(40, generator=generator) for _ in clusters]
    for number in range(4):
        messages = list[Message]()
        for place, members in enumerate(clusters):
            start = Broadcast({"w": models[place]})
            messages += [Message(number, SERVER, frozenset(members), start)] * repeats
            deltas = [0.1 * torch.randn(40, generator=generator) for _ in members]
            messages += [
                Message(number, one, TO_SERVER, Update({"w": delta}, 10))
                for one, delta in zip(members, deltas, strict=True)
            ]
            models[place] = models[place] + torch.stack(deltas).mean(0)
        found.add(messages)
    return found.result()


def test_clusters_are_told_and_refused_with_what_to_do():
    proof = run([CLIENTS[:2], CLIENTS[2:]])
    assert proof.is_refused
    assert proof.mend == CLUSTERS_MEND
    told = "in rounds 0, 1, 2, 3 clients were sent different models, up to 2 in a round"
    assert told in proof.finding


def test_a_cluster_alone_is_a_run_that_follows():
    assert run([CLIENTS[:2]]).outcome == "follows"


def test_a_model_that_is_evaluated_and_then_trained_is_one_model():
    assert run([CLIENTS], repeats=2).outcome == "follows"
