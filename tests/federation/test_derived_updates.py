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
from tests.federation.conftest import files
from tests.federation.test_distillation_run import CLIENTS, ROUNDS, federation, sets


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def derived(run_folder: Path) -> Transcript:
    """A complete run; tests must not change it."""
    transcript, _ = run(federation(), run_folder)
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


def test_adds_the_model_trained_on_each_set(derived: Transcript, run_folder: Path) -> None:
    messages = open_transcript(run_folder).messages
    start = next(m.body.weights for m in messages if isinstance(m.body, Broadcast))
    view = derived.seen_by(SERVER)
    for number in range(ROUNDS):
        round_sets = sets(messages, number)
        shared = trained(start, round_sets[SERVER])
        broadcast = view.broadcasts()[number]
        assert all(
            broadcast[name].allclose(one.float(), atol=1e-5) for name, one in shared.items()
        )
        for k in range(CLIENTS):
            weights = trained(start, round_sets[client(k)])
            update = view.updates(client(k))[number]
            assert update.examples is None
            assert not update.metrics
            for name, one in weights.items():
                assert update.delta[name].allclose((one - shared[name]).float(), atol=1e-5)
    assert view.broadcasts().keys() == set(range(ROUNDS + 1))


def test_derived_updates_have_the_readers_of_their_sets(
    derived: Transcript,
) -> None:
    view = derived.seen_by(client(0))
    assert not view.updates(client(1))
    assert view.updates(client(0)).keys() == set(range(ROUNDS))


def test_does_not_derive_updates_again(
    derived: Transcript, run_folder: Path, tmp_path: Path
) -> None:
    assert derived.messages
    shutil.copytree(run_folder, tmp_path, dirs_exist_ok=True)
    again = tmp_path / "rebuilt" / "transcript"
    for number in (3, 4):
        for path in round_folder(again, number).iterdir():
            path.unlink()
    stored = next(iter(round_folder(again, 0).glob("*.safetensors")))
    modified = stored.stat().st_mtime_ns
    run(federation(), tmp_path)
    assert files(run_folder) == files(tmp_path)
    assert stored.stat().st_mtime_ns == modified
