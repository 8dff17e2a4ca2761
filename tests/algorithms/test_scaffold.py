"""SCAFFOLD is Algorithm 1 of the paper with option II, and its messages tell the gradients."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from overheard.algorithms.scaffold import Scaffold
from overheard.archive.reader import verify_transcript
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.messages import Broadcast, Update, Weights
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.core.transcript import Transcript
from overheard.defenses.class_balanced import ClassBalanced
from overheard.defenses.noise import Noise
from overheard.defenses.secure_aggregation import SecureAggregation
from overheard.federation.federation import Federation
from overheard.federation.run import run
from overheard.findings.traffic import measure_traffic
from overheard.learning.batches import epoch_order
from overheard.learning.initialization import initial_weights
from overheard.learning.models.logistic import Logistic

TASK = Task((3,), ("a", "b"))
RATE, EPOCHS, BATCH, ROUNDS = 0.2, 2, 4, 4
SIZES = (6, 9, 14)


@pytest.fixture(scope="module")
def federation() -> Federation:
    """Three clients of unequal sizes; all train in each round, one of them twice a round."""
    draw = torch.Generator().manual_seed(3)
    pool = Examples(torch.randn(29, 3, generator=draw), torch.arange(29) % 2)
    return Federation(
        build_model=lambda: Logistic().build(TASK),
        model="logistic",
        task=TASK,
        recipe=Recipe(rate=RATE, epochs=EPOCHS, batch=BATCH),
        pool=pool,
        rows=[list(torch.arange(29).split(list(SIZES)))] * ROUNDS,
        test=pool,
        rounds=ROUNDS,
        seed=Seed(5),
        engine="sequential",
        algorithm=Scaffold(rate=0.5),
    )


@pytest.fixture(scope="module")
def transcript(federation: Federation, tmp_path_factory: pytest.TempPathFactory) -> Transcript:
    """The run of these clients."""
    return run(federation, tmp_path_factory.mktemp("scaffold"))[0]


def gradient(weights: Mapping[str, torch.Tensor], examples: Examples) -> Weights:
    """The gradient of the mean cross-entropy, worked out in float64."""
    names = list(weights)
    matrix, offset = weights[names[0]].double(), weights[names[1]].double()
    inputs = examples.inputs.double()
    error = (inputs @ matrix.T + offset).softmax(1)
    error[torch.arange(len(inputs)), examples.labels] -= 1
    return {names[0]: error.T @ inputs / len(inputs), names[1]: error.mean(0)}


def reference(federation: Federation) -> list[dict[str, Weights]]:
    """Algorithm 1 in float64: by round, what the server and each client send.

    The server's is "x" and "c"; those of client i are "delta i" and "control i"; "mean i" is
    its mean gradient.
    """
    seed = federation.seed
    start = initial_weights(federation.build_model, seed.child("initial"))
    x = {name: one.double() for name, one in start.items()}
    c = {name: torch.zeros_like(one) for name, one in x.items()}
    own = [dict(c) for _ in SIZES]
    rounds = []
    for number in range(ROUNDS):
        sent: dict[str, Weights] = {"x": dict(x), "c": dict(c)}
        deltas, changes = [], []
        for place, size in enumerate(SIZES):
            y, steps = dict(x), 0
            rows = federation.rows[number][place]
            total = {name: torch.zeros_like(one) for name, one in x.items()}
            for epoch in range(EPOCHS):
                order = epoch_order(
                    seed.child("training"), number, f"client/{place}", epoch, size
                )
                for batch in rows[order].split(BATCH):
                    found = gradient(y, federation.pool.take(batch))
                    y = {
                        name: y[name] - RATE * (found[name] - own[place][name] + c[name])
                        for name in y
                    }
                    total = {name: total[name] + found[name] for name in total}
                    steps += 1
            new = {
                name: own[place][name] - c[name] + (x[name] - y[name]) / (steps * RATE)
                for name in x
            }
            deltas.append({name: y[name] - x[name] for name in x})
            changes.append({name: new[name] - own[place][name] for name in x})
            own[place] = new
            sent[f"delta {place}"], sent[f"control {place}"] = deltas[-1], changes[-1]
            sent[f"mean {place}"] = {name: one / steps for name, one in total.items()}
            sent[f"steps {place}"] = {"steps": torch.tensor(float(steps))}
        x = {name: one + 0.5 * sum(d[name] for d in deltas) / 3 for name, one in x.items()}
        c = {name: one + sum(d[name] for d in changes) / 3 for name, one in c.items()}
        rounds.append(sent)
    return rounds


def assert_close(one: Weights | None, other: Weights) -> None:
    """All tensors agree up to the rounding of float32."""
    assert one is not None
    assert one.keys() == other.keys()
    for name, tensor in other.items():
        assert torch.allclose(one[name].double(), tensor, atol=2e-6), name


def test_all_messages_are_those_of_the_paper(
    federation: Federation, transcript: Transcript
) -> None:
    expected = reference(federation)
    for message in transcript.messages:
        if message.round == ROUNDS:
            continue
        body, of_round = message.body, expected[message.round]
        if isinstance(body, Broadcast):
            assert_close(body.weights, of_round["x"])
            assert_close(body.control, of_round["c"])
        else:
            assert isinstance(body, Update)
            place = message.sender.removeprefix("client/")
            assert_close(body.delta, of_round[f"delta {place}"])
            assert_close(body.control, of_round[f"control {place}"])


def test_the_server_computes_each_mean_gradient_and_number_of_steps(
    federation: Federation, transcript: Transcript
) -> None:
    """K r times the mean gradient, with K r unknown to the server before."""
    expected = reference(federation)
    view = Scaffold(rate=0.5).plain_updates(transcript.seen_by(SERVER))
    for place in range(len(SIZES)):
        told = view.updates(client(place))
        assert list(told) == list(range(ROUNDS))
        for number, update in told.items():
            steps = float(expected[number][f"steps {place}"]["steps"])
            mean = expected[number][f"mean {place}"]
            plain = {name: -steps * RATE * one for name, one in mean.items()}
            for name, tensor in plain.items():
                assert torch.allclose(update.delta[name].double(), tensor, atol=1e-4)


def test_a_client_reads_the_servers_control_variate_and_no_other(
    transcript: Transcript,
) -> None:
    view = transcript.seen_by(client(0))
    assert {message.sender for message in view.messages} == {SERVER, client(0)}
    plain = Scaffold(rate=0.5).plain_updates(view)
    # Its own updates stay, as they are subtracted from the mean of all.
    for number, update in view.updates(client(0)).items():
        assert plain.updates(client(0))[number].delta is update.delta


def test_without_the_first_rounds_updates_stay_as_they_were_sent(
    transcript: Transcript,
) -> None:
    late = transcript.seen_by(SERVER).during((2, 3))
    assert Scaffold(rate=0.5).plain_updates(late) is late


def test_control_variates_are_verified_and_counted_as_traffic(
    transcript: Transcript, tmp_path: Path, federation: Federation
) -> None:
    run(federation, tmp_path)
    # Two files for each of 5 broadcasts and 12 updates.
    assert verify_transcript(tmp_path) == 2 * (ROUNDS + 1 + ROUNDS * len(SIZES))
    # 8 numbers of 4 bytes, for the update and for the control variate.
    assert measure_traffic(transcript).up == ROUNDS * len(SIZES) * 2 * 8 * 4


@pytest.mark.parametrize("defense", [Noise(1.0), SecureAggregation()])
def test_refuses_defenses_of_updates_alone(federation: Federation, defense: object) -> None:
    with pytest.raises(PlanError, match="control variates"):
        replace(federation, defenses=(defense,))
    assert replace(federation, defenses=(ClassBalanced(),)).defenses


def test_refuses_momentum(federation: Federation) -> None:
    with pytest.raises(PlanError, match="plain SGD"):
        replace(federation, recipe=replace(federation.recipe, momentum=0.5))
