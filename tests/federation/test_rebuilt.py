import shutil
from pathlib import Path

import pytest
import torch
from torch.nn.functional import log_softmax

from overheard.archive.layout import round_folder
from overheard.archive.reader import open_transcript
from overheard.core.messages import Broadcast, DistilledSet
from overheard.core.parties import SERVER, client
from overheard.core.transcript import Transcript
from overheard.federation.run import run
from tests.federation.test_distilling import CLIENTS, ROUNDS, federation, files, sets


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def told(home: Path) -> Transcript:
    """A complete run; tests must not change it."""
    transcript, _ = run(federation(), home)
    return transcript


def trained(start, body: DistilledSet) -> dict[str, torch.Tensor]:
    """Train for one pass over a set with autograd, in float64."""
    model = federation().build_model().double()
    model.load_state_dict({name: one.double() for name, one in start.items()})
    for x, y, rate in zip(body.inputs, body.labels, body.rates, strict=True):
        model.zero_grad()
        loss = -(y.double() * log_softmax(model(x.double()[None])[0], 0)).sum()
        loss.backward()
        with torch.no_grad():
            for one in model.parameters():
                one.sub_(rate.double() * one.grad)
    return {name: one.detach() for name, one in model.named_parameters()}


def test_adds_the_model_trained_on_each_set(told: Transcript, home: Path) -> None:
    said = open_transcript(home).messages
    start = next(m.body.weights for m in said if isinstance(m.body, Broadcast))
    view = told.seen_by(SERVER)
    for number in range(ROUNDS):
        own = sets(said, number)
        shared = trained(start, own[SERVER])
        broadcast = view.broadcasts()[number]
        assert all(
            broadcast[name].allclose(one.float(), atol=1e-5) for name, one in shared.items()
        )
        for k in range(CLIENTS):
            theirs = trained(start, own[client(k)])
            update = view.updates(client(k))[number]
            assert update.examples is None
            assert not update.metrics
            for name, one in theirs.items():
                assert update.delta[name].allclose((one - shared[name]).float(), atol=1e-5)
    assert view.broadcasts().keys() == set(range(ROUNDS + 1))


def test_keeps_the_recorded_messages(told: Transcript, home: Path) -> None:
    assert {(m.round, m.sender) for m in told.messages if isinstance(m.body, DistilledSet)} == {
        (m.round, m.sender)
        for m in open_transcript(home).messages
        if isinstance(m.body, DistilledSet)
    }


def test_derived_updates_have_the_readers_of_their_sets(
    told: Transcript,
) -> None:
    view = told.seen_by(client(0))
    assert not view.updates(client(1))
    assert view.updates(client(0)).keys() == set(range(ROUNDS))


def test_does_not_derive_updates_again(told: Transcript, home: Path, tmp_path: Path) -> None:
    assert told.messages
    shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    again = tmp_path / "rebuilt" / "transcript"
    for number in (3, 4):
        for path in round_folder(again, number).iterdir():
            path.unlink()
    kept = next(iter(round_folder(again, 0).glob("*.safetensors")))
    when = kept.stat().st_mtime_ns
    run(federation(), tmp_path)
    assert files(home) == files(tmp_path)
    assert kept.stat().st_mtime_ns == when
