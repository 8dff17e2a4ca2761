"""Public set-ups, rebuilt small and run with the recorder: what the doctor says of each."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("flwr", reason="the extra flower is not installed")
pytest.importorskip("opacus", reason="the extra opacus is not installed")

import torch
from flwr.app import ArrayRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg
from flwr.serverapp.strategy.strategy import Strategy
from flwr.supercore.task_identity import TaskIdentity

from overheard.archive.manifest import DefenseRecord
from overheard.auditing.doctor_targets import recording_evidence
from overheard.core.mechanism import Mechanism
from overheard.doctor.criticism import Diagnosis
from overheard.doctor.recorded.diagnose import diagnose_run
from overheard.doctor.source.diagnose import diagnose_source
from overheard.recorders.flower import RecordingGrid
from tests.doctor.public_cases.cases_data import Net
from tests.recorders.test_flower import Nodes

pytestmark = [pytest.mark.nightly, pytest.mark.filterwarnings("ignore")]

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


def diagnose(
    folder: Path, case: ModuleType, strategy: Strategy, defenses: Sequence[object], nodes: int
) -> Diagnosis:
    """Run three rounds of a case's client app, recorded, and diagnose the recording."""
    app: ClientApp = case.app
    numbers = range(1, nodes + 1)

    def answer(message: Message) -> Message:
        node = message.metadata.dst_node_id
        return app(message, Context(1, node, {"partition-id": node}, RecordDict(), {}))

    torch.manual_seed(0)
    grid = RecordingGrid(
        Nodes(answer, tuple(numbers)), folder, strategy=strategy, defenses=defenses, rounds=3
    )
    learned = strategy.start(grid, ArrayRecord(Net().state_dict()), num_rounds=3)
    grid.finish(learned.arrays)
    assert grid.stopped is None
    return diagnose_run(recording_evidence(folder))


def critical(found: Diagnosis) -> set[str]:
    return {one.rule.id for one in found.alarms}


def opacus(noise_multiplier: float = 1.0, stated: float | None = None) -> DefenseRecord:
    """Return DP-SGD with batches of 8 of 40 records, one epoch a round."""
    mechanism = Mechanism(
        noise_multiplier, 1.0, 1e-5, "client", "client", moves=1.0, unit="record", steps=5,
        record_sampling="poisson", record_rate=0.2, stated=stated,
    )  # fmt: skip
    return DefenseRecord("Opacus DP-SGD", "Opacus DP-SGD", "client", "each client", mechanism)


def averaging() -> FedAvg:
    return FedAvg(min_train_nodes=2, min_evaluate_nodes=2, min_available_nodes=2)


def case(name: str) -> ModuleType:
    return import_module(f"tests.doctor.public_cases.{name}")


def source(name: str) -> set[str]:
    return critical(diagnose_source(HERE / f"{name}.py"))


def test_the_opacus_example_of_flower_states_the_epsilon_of_one_round(tmp_path: Path):
    found = diagnose(tmp_path, case("flower_opacus"), averaging(), [opacus()], 2)
    assert critical(found) == {"accountant-per-round"}
    assert source("flower_opacus") == {"accountant-per-round", "epsilon-of-one-round"}


def test_fl_dp_sa_scales_noise_to_a_cohort_that_is_not_there(tmp_path: Path):
    built = case("fl_dp_sa")
    strategy = built.make_strategy()
    found = diagnose(tmp_path, built, strategy, [strategy], 10)
    assert critical(found) == {"cohort-too-small"}
    assert source("fl_dp_sa") >= {"cohort-too-small"}


def test_instance_level_privacy_of_fl4health_raises_no_alarm(tmp_path: Path):
    built = case("fl4health_instance_level")
    built.CLIENTS.clear()
    found = diagnose(tmp_path, built, averaging(), [opacus()], 2)
    assert critical(found) == set()
    assert source("fl4health_instance_level") == set()


def test_truxify_clips_weights_and_not_what_clients_change(tmp_path: Path):
    built = case("truxify")
    # Noise of deviation 0.01 on each client's weights: of all four, twice that in their sum.
    stated = Mechanism(0.02, 1.0, 1e-5, "server", "server")
    record = DefenseRecord("Truxify", "Truxify", "server", "the server", stated)
    server = built.ClippingServer(
        min_train_nodes=4, min_available_nodes=4, fraction_evaluate=0.0
    )
    found = diagnose(tmp_path, built, server, [record], 4)
    assert critical(found) == set()
    # A server of its own is no FedAvg, so that its messages tell nothing of its noise.
    assert {one.rule.id for one in found.unseen} >= {"noise-too-small", "clip-exceeded"}
    assert source("truxify") == {"weights-clipped"}
