"""A small recording with every kind of message."""

from pathlib import Path

import torch

from overheard.archive.manifest import DefenseRecord, Manifest
from overheard.archive.recorder import Recorder
from overheard.archive.run_time import RunTime, write_run_time
from overheard.archive.truth import write_truth
from overheard.core.facts import Facts
from overheard.core.mechanism import Mechanism
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Evaluation,
    Message,
    MissingReply,
    Timestamps,
    Update,
)
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.task import Task
from overheard.core.true_facts.attributes import Attributes
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.true_facts.record_owners import RecordOwners
from overheard.core.true_facts.shifts import Shifts
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import GroundTruth


def recorded(folder: Path) -> None:
    """Record a run with every kind of message, a ground truth and a run time."""
    everyone, server = frozenset({client(0), client(1)}), frozenset({SERVER})
    manifest = Manifest(
        Task((2,), ("no", "yes")),
        "linear",
        Recipe(0.1, 1, 4),
        (
            DefenseRecord(
                "noise", "Noise(1.0)", "client", "the client",
                Mechanism(1.0, 2.0, 1e-5, "client", "client"),
            ),
        ),
        (SERVER, client(0), client(1)),
        rounds=1,
        framework="flwr 1.41.0",
        left_out=("steps",),
    )  # fmt: skip
    start = {"weight": torch.tensor([[1.0, 2.0]]), "bias": torch.tensor([0.5])}
    labels = torch.tensor([[1.0, 0.0]] * 3)
    distilled = DistilledSet(torch.ones(3, 2), labels, torch.ones(3), torch.ones(3))
    messages = (
        Message(0, SERVER, everyone, Broadcast(start, {"lr": "0.1"}), Timestamps(1.0, None)),
        Message(0, client(1), server, MissingReply("late")),
        Message(0, client(0), server, Update(start, 5, {"loss": 0.75}), Timestamps(2.0, 2.5)),
        Message(0, SERVER, frozenset(), Aggregate(start, everyone, 5)),
        Message(0, client(1), server, distilled),
        Message(0, client(1), server, Evaluation({"accuracy": 0.5}, 7)),
        Message(1, SERVER, everyone, Broadcast(start)),
    )
    recorder = Recorder(folder, manifest)
    for number in (0, 1):
        with recorder.open_round() as open_round:
            for message in messages:
                if message.round == number:
                    open_round.record(message)
    counts = {(0, client(0)): torch.tensor([3, 2]), (0, client(1)): torch.tensor([0, 4])}
    write_truth(
        folder,
        GroundTruth(
            Facts(
                LabelCounts(counts),
                Shifts({client(0): (1,)}),
                UsersOfClients({client(0): "ann", client(1): "bob"}),
                Attributes({"sex": {"ann": "f", "bob": "m"}}),
                RecordOwners({client(0): (1, 2)}),
            ),
            {0: 0.5, 1: 0.75},
        ),
    )
    write_run_time(folder, RunTime(1.5, None))
