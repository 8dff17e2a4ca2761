"""What stays with a client is in no message, and is the client's own from round to round."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from overheard.algorithms.fed_bn import FedBn
from overheard.algorithms.partial_sharing import PartialSharing
from overheard.core.errors import OutputError, PlanError
from overheard.core.messages import Broadcast, Update, apply_update
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.federation.federation import Federation
from overheard.federation.local_tensors import LocalTensors, SharedPartBuilder, local_names
from overheard.federation.run import run
from overheard.learning.evaluate import accuracy
from overheard.learning.initialization import initial_weights
from overheard.learning.models.mlp import Mlp
from overheard.learning.sent_tensors import sent_tensors
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from tests.algorithms.test_every_algorithm import TASK, federation

BUILD = partial(Mlp(hidden=(5,)).build, TASK)

HEAD = PartialSharing()


def normed() -> torch.nn.Module:
    """A network with one batch norm."""
    return torch.nn.Sequential(
        torch.nn.Linear(4, 5), torch.nn.BatchNorm1d(5), torch.nn.ReLU(), torch.nn.Linear(5, 3)
    )


@pytest.fixture
def planned() -> Federation:
    """Six clients that keep the last layer; all take part in each of four rounds."""
    return replace(federation(HEAD), participation=1.0, epochs_range=None)


def test_patterns_name_tensors_and_head_the_last_linear_layer() -> None:
    last = list(initial_weights(BUILD, Seed(0)))[-2:]
    assert local_names(HEAD, BUILD) == set(last)
    assert local_names(PartialSharing(("*.bias",)), normed) == {"0.bias", "1.bias", "3.bias"}


@pytest.mark.parametrize(
    ("algorithm", "found"), [(FedBn(), "none"), (PartialSharing(("*",)), "all")]
)
def test_refuses_to_keep_nothing_or_all(algorithm: FedBn | PartialSharing, found: str) -> None:
    with pytest.raises(PlanError, match=f"keeps {found} of"):
        local_names(algorithm, BUILD)


def test_no_message_has_a_tensor_that_stays(planned: Federation, tmp_path: Path) -> None:
    transcript, _ = run(planned, tmp_path)
    kept = local_names(HEAD, BUILD)
    bodies = [message.body for message in transcript.messages]
    sent = [one.weights for one in bodies if isinstance(one, Broadcast)]
    sent += [one.delta for one in bodies if isinstance(one, Update)]
    assert len(sent) == 5 + 24
    for weights in sent:
        assert weights.keys() == initial_weights(BUILD, Seed(0)).keys() - kept


def test_a_client_starts_from_the_broadcast_and_its_own_last_layer(
    planned: Federation, tmp_path: Path
) -> None:
    """Two rounds of client 3 computed by hand, from the broadcasts alone."""
    transcript, _ = run(planned, tmp_path)
    kept = local_names(HEAD, BUILD)
    own = initial_weights(BUILD, planned.seed.child("initial"))
    for number in range(2):
        (shared,) = (
            message.body.weights
            for message in transcript.messages
            if message.round == number and isinstance(message.body, Broadcast)
        )
        (update,) = (
            message.body.delta
            for message in transcript.messages
            if message.round == number
            and message.sender == client(3)
            and isinstance(message.body, Update)
        )
        start = {name: own[name] if name in kept else shared[name] for name in own}
        (trained,) = train_cohort(
            BUILD,
            start,
            planned.pool,
            [ClientTask("client/3", planned.rows[number][3])],
            planned.recipe,
            seed=planned.seed.child("training"),
            round=number,
            engine="sequential",
        )
        for name in update:
            assert torch.equal(update[name], trained.delta[name])
        own = apply_update(start, trained.delta)


def test_the_accuracy_is_the_mean_over_clients_after_the_last_round(
    planned: Federation, tmp_path: Path
) -> None:
    transcript, truth = run(planned, tmp_path)
    last = transcript.messages[-1].body
    assert isinstance(last, Broadcast)
    home = LocalTensors(planned, local_names(HEAD, BUILD), tmp_path)
    found = [
        accuracy(BUILD, home.model_of(one, 4, last.weights), planned.test)
        for one in planned.clients
    ]
    assert truth.accuracy == {4: pytest.approx(sum(found) / 6)}


def test_a_run_whose_tensors_are_lost_is_not_continued(
    planned: Federation, tmp_path: Path
) -> None:
    def stop(number: int) -> None:
        if number == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(planned, tmp_path, stop)
    (tmp_path / "home" / "r0001.safetensors").unlink()
    with pytest.raises(OutputError, match="stay with clients are lost"):
        run(planned, tmp_path)


def test_attackers_build_what_stays_with_its_initial_values() -> None:
    kept, seed = local_names(FedBn(), normed), Seed(3)
    model = SharedPartBuilder(normed, tuple(sorted(kept)), seed)()
    initial = initial_weights(normed, seed)
    weights = dict(model.named_parameters())
    for name in ("1.weight", "1.bias"):
        assert torch.equal(weights[name], initial[name])
        assert not weights[name].requires_grad
    assert "1.weight" not in sent_tensors(model)
    assert "0.weight" in sent_tensors(model)
