"""A recorded FedAvg run of Flower gives the same claims as Overheard's simulation.

Clients use the simulation's training function, recipe, examples and seeds; everything else is
Flower's.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg
from flwr.supercore.task_identity import TaskIdentity

from overheard.archive.reader import open_transcript
from overheard.archive.truth import write_truth
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import Resources, load_data, partition_for_plan
from overheard.auditing.run import audit
from overheard.auditing.simulate import build_federation
from overheard.core.messages import Broadcast, Weights, apply_update
from overheard.core.parties import Party, client
from overheard.core.seeds import Seed
from overheard.core.truth import Renaming
from overheard.data.datasets.digits import Digits
from overheard.data.partition.schedule import DataShift
from overheard.data.splits.dirichlet import Dirichlet
from overheard.federation.federation import Federation
from overheard.findings.finding import Finding
from overheard.learning.initialization import initial_weights
from overheard.learning.models.mlp import Mlp
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, ThreatPlan, TrainingPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard.questions.shift.attacks.shift_tracking import ShiftTracking
from overheard.recorders.flower import RecordingGrid
from tests.archive.stored_truth import read_truth
from tests.recorders.test_flower import Nodes

pytestmark = pytest.mark.slow

ROUNDS = 4
NODES = (7, 2**33 + 1, 2**63 + 5, 2**64 - 9)
"""Flower's node ids, in the order of the clients."""

# Sequential, as stacked training changes the last bits with the members of the stack.
HERE = Resources(device="cpu", workers=1, engine="sequential")

PLAN = Plan(
    data=DataPlan(
        source=Digits(),
        split=Dirichlet(alpha=0.5),
        clients=len(NODES),
        examples=(30, 60),
        auxiliary_per_class=12,
        test=60,
        shifts=(DataShift(client=1, round=2, shares=(1.0, *[0.0] * 9)),),
    ),
    training=TrainingPlan(
        model=Mlp(hidden=(16,)), rounds=ROUNDS, rate=0.05, momentum=0.9, epochs=2, batch=10
    ),
    threats=(
        ThreatPlan(
            # The last trains virtual clients. A network that is fitted in hundreds of steps,
            # as by amortised or ldia, makes a last bit of what it learns from visible.
            attacks=(BiasInversion(), Decaf(), ShiftTracking()),
            virtual=VirtualPlan(clients=60),
            by_round=False,
        ),
    ),
)


@dataclass(frozen=True)
class Simulated:
    """A federation, the folder of its run, and its findings."""

    federation: Federation
    run: Path
    findings: Sequence[Finding]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    folder = tmp_path_factory.mktemp("claims") / "simulated"
    found = audit(PLAN, folder, resources=HERE)
    assert not found.refusals
    dataset = load_data(PLAN, HERE)
    dealt = partition_for_plan(PLAN, dataset, PLAN.seeds[0])
    return Simulated(
        build_federation(PLAN, PLAN.arms[0], PLAN.seeds[0], dealt, dataset, HERE),
        AuditFolder(folder).run_path(PLAN.arms[0].name, PLAN.seeds[0]),
        [one for one in found.findings if not one.cell.is_control],
    )


def arrays_of(weights: Weights) -> ArrayRecord:
    return ArrayRecord({name: Array(tensor.numpy()) for name, tensor in weights.items()})


def app_of(federation: Federation, seed: Seed) -> ClientApp:
    """Make a client app that trains like the simulation's clients."""
    app = ClientApp()

    @app.train()
    def fit(asked: Message, context: Context) -> Message:
        number = int(asked.content["config"]["server-round"]) - 1
        place = int(context.node_config["partition-id"])
        arrays = asked.content["arrays"]
        start = {name: torch.tensor(array.numpy()) for name, array in arrays.items()}
        (learned,) = train_cohort(
            federation.build_model,
            start,
            federation.pool,
            [ClientTask(client(place), federation.rows[number][place])],
            federation.recipe,
            seed=seed.child("training"),
            round=number,
            engine="sequential",
        )
        metrics = MetricRecord({"num-examples": len(learned.client.rows), "loss": learned.loss})
        arrays = arrays_of(apply_update(start, learned.delta))
        return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=asked)

    return app


def run_by_flower(
    folder: Path, simulated: Simulated, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Run the federation with Flower's FedAvg; return the recording, with the ground truth."""
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
    # These seed the order in which FedAvg samples nodes, and so in which it sums.
    monkeypatch.setattr("flwr.serverapp.strategy.strategy_utils.random", random.Random(0))
    federation, recording = simulated.federation, folder / "recording"
    app = app_of(federation, seed)

    def answer(message: Message) -> Message:
        node = message.metadata.dst_node_id
        settings = {"partition-id": NODES.index(node)}
        return app(message, Context(1, node, settings, RecordDict(), {}))

    start = initial_weights(federation.build_model, federation.seed.child("initial"))
    grid = RecordingGrid(Nodes(answer, NODES), recording, recipe=federation.recipe)
    learned = FedAvg(fraction_evaluate=0.0).start(grid, arrays_of(start), num_rounds=ROUNDS)
    grid.finish(learned.arrays)
    assert grid.stopped is None
    copy_truth(simulated.run, recording)
    return recording


def as_node(party: Party) -> Party:
    """Return Flower's name of a client of the simulation."""
    return client(NODES[int(party.removeprefix("client/"))])


class NodeNames(Renaming):
    """Gives clients of the simulation the names that they have with Flower."""

    keeps_names = True

    def rename_parties(self, held):
        return {as_node(party): one for party, one in held.items()}

    def rename_by_round(self, held):
        return {(number, as_node(party)): one for (number, party), one in held.items()}


def copy_truth(source: Path, target: Path) -> None:
    write_truth(target, read_truth(source).renamed(NodeNames()))


def findings(folder: Path) -> Sequence[Finding]:
    """Audit the recording in this folder."""
    found = audit(PLAN, folder / "audit", recording=folder / "recording", resources=HERE)
    assert not found.refusals
    return found.findings


def broadcasts(folder: Path) -> list[Weights]:
    bodies = [message.body for message in open_transcript(folder).messages]
    return [body.weights for body in bodies if isinstance(body, Broadcast)]


def largest_difference(recorded: Finding, simulated: Finding) -> float:
    """Return the largest difference of any number in claims, intervals and scores."""
    pairs = [*zip(recorded.claimed.numbers, simulated.claimed.numbers, strict=True)]
    for ends, other_ends in (
        (recorded.claimed.low, simulated.claimed.low),
        (recorded.claimed.high, simulated.claimed.high),
    ):
        pairs += zip(ends or (), other_ends or (), strict=True)
    pairs += [
        (a.value, b.value) for a, b in zip(recorded.scores, simulated.scores, strict=True)
    ]
    return max(abs(a - b) for a, b in pairs)


def test_flowers_models_agree_with_the_simulation_up_to_rounding(
    simulated: Simulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = run_by_flower(tmp_path, simulated, simulated.federation.seed, monkeypatch)
    recorded, expected = broadcasts(recording), broadcasts(simulated.run)
    assert len(recorded) == len(expected) == ROUNDS + 1
    for name, first in expected[0].items():
        assert torch.equal(recorded[0][name], first)
        # Flower sums weights in float32, the simulation sums updates in float64: they differ by
        # about one last bit a round, for numbers below 2.
        for flower, expected_weights in zip(recorded[1:], expected[1:], strict=True):
            assert torch.allclose(flower[name], expected_weights[name], rtol=0, atol=5e-7)
            assert not torch.allclose(expected_weights[name], first, rtol=0, atol=1e-2)


def test_claims_about_flowers_run_agree_with_the_simulation(
    simulated: Simulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_by_flower(tmp_path, simulated, simulated.federation.seed, monkeypatch)
    found = findings(tmp_path)
    assert {one.cell.question for one in found} == {"label_shares", "shift"}
    for recorded, expected in zip(found, simulated.findings, strict=True):
        assert (recorded.cell.attack, recorded.target) == (
            expected.cell.attack,
            as_node(expected.target),
        )
        assert (recorded.cell.rounds, recorded.true_numbers) == (
            expected.cell.rounds,
            expected.true_numbers,
        )
        assert largest_difference(recorded, expected) <= 1e-6
        assert [(one.uninformed, one.references) for one in recorded.scores] == [
            (one.uninformed, one.references) for one in expected.scores
        ]
        assert (recorded.claimed.timeline is None) == (expected.claimed.timeline is None)
        if recorded.claimed.timeline is not None and expected.claimed.timeline is not None:
            assert recorded.claimed.timeline.alarm == expected.claimed.timeline.alarm
            assert recorded.claimed.timeline.since == expected.claimed.timeline.since
            assert recorded.true_since == expected.true_since
            # A likelihood ratio divides errors by small numbers.
            assert recorded.claimed.timeline.statistic == pytest.approx(
                expected.claimed.timeline.statistic, abs=1e-5
            )


def test_another_seed_gives_different_claims(
    simulated: Simulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_by_flower(tmp_path, simulated, Seed(1), monkeypatch)
    pairs = zip(findings(tmp_path), simulated.findings, strict=True)
    assert all(largest_difference(recorded, expected) > 1e-6 for recorded, expected in pairs)
