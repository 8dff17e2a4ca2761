from pathlib import Path

import torch
from torch.nn.functional import log_softmax

from overheard.archive.layout import round_folder
from overheard.archive.reader import open_transcript
from overheard.core.messages import Broadcast, DistilledSet
from overheard.core.parties import SERVER, client
from overheard.federation.run import run
from tests.federation.test_distilling import CLIENTS, ROUNDS, federation, files, sets


def trained(start, body: DistilledSet) -> dict[str, torch.Tensor]:
    """One pass over a set by torch's own descent, in float64."""
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


def test_beside_each_set_stands_the_model_that_follows_from_it(tmp_path: Path) -> None:
    told, _ = run(federation(), tmp_path)
    said = open_transcript(tmp_path).messages
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


def test_what_was_said_stands_there_as_it_was(tmp_path: Path) -> None:
    told, _ = run(federation(), tmp_path)
    assert {(m.round, m.sender) for m in told.messages if isinstance(m.body, DistilledSet)} == {
        (m.round, m.sender)
        for m in open_transcript(tmp_path).messages
        if isinstance(m.body, DistilledSet)
    }


def test_a_client_reads_the_models_of_others_no_more_than_their_sets(tmp_path: Path) -> None:
    told, _ = run(federation(), tmp_path)
    view = told.seen_by(client(0))
    assert not view.updates(client(1))
    assert view.updates(client(0)).keys() == set(range(ROUNDS))


def test_what_was_rebuilt_is_not_trained_again(tmp_path: Path) -> None:
    run(federation(), tmp_path / "one")
    run(federation(), tmp_path / "two")
    home = tmp_path / "two" / "rebuilt" / "transcript"
    for number in (3, 4):
        for path in round_folder(home, number).iterdir():
            path.unlink()
    kept = next(iter(round_folder(home, 0).glob("*.safetensors")))
    when = kept.stat().st_mtime_ns
    run(federation(), tmp_path / "two")
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert kept.stat().st_mtime_ns == when
