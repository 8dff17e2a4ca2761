"""A small transcript of two rounds."""

from pathlib import Path

import pytest
import torch

from overheard.archive.manifest import Manifest
from overheard.archive.recorder import Recorder
from overheard.core.messages import Broadcast, Message, MissingReply, Update
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.task import Task

EVERYONE = frozenset({client(0), client(1)})
TO_SERVER = frozenset({SERVER})


@pytest.fixture
def manifest() -> Manifest:
    return Manifest(
        task=Task((2,), ("no", "yes")),
        model="linear",
        recipe=Recipe(rate=0.1, epochs=1, batch=4),
        defenses=(),
        parties=(SERVER, client(0), client(1)),
        rounds=1,
        seed=3,
    )


@pytest.fixture
def messages() -> tuple[Message, ...]:
    start = {"weight": torch.tensor([[1.0, 2.0]]), "bias": torch.tensor([0.5])}
    delta = {"weight": torch.tensor([[0.25, -4.0]]), "bias": torch.tensor([8.0])}
    end = {name: start[name] + delta[name] for name in start}
    return (
        Message(0, SERVER, EVERYONE, Broadcast(start)),
        Message(0, client(1), TO_SERVER, MissingReply("late")),
        Message(0, client(0), TO_SERVER, Update(delta, 5, {"loss": 0.75})),
        Message(1, SERVER, EVERYONE, Broadcast(end)),
    )


@pytest.fixture
def folder(tmp_path: Path, manifest: Manifest, messages: tuple[Message, ...]) -> Path:
    recorder = Recorder(tmp_path / "run", manifest)
    for number in (0, 1):
        with recorder.open_round() as open_round:
            for message in messages:
                if message.round == number:
                    open_round.record(message)
    return tmp_path / "run"
