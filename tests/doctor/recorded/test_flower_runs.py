"""What the doctor says of runs of Flower's own wrappers and mods, as they are recorded."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.mod import LocalDpMod, fixedclipping_mod
from flwr.serverapp.strategy import (
    DifferentialPrivacyClientSideFixedClipping,
    DifferentialPrivacyServerSideFixedClipping,
    FedAvg,
)
from flwr.serverapp.strategy.strategy import Strategy
from flwr.supercore.task_identity import TaskIdentity

from overheard.auditing.doctor_targets import recording_evidence
from overheard.doctor.criticism import Diagnosis
from overheard.doctor.recorded.diagnose import diagnose_run
from overheard.recorders.flower import RecordingGrid
from tests.recorders.test_flower import Nodes

NODES = tuple(range(1, 5))

SHAPE = (40, 30)

Counts = Callable[[int], int]


@pytest.fixture(autouse=True)
def a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


def recorded(
    folder: Path,
    strategy: Strategy,
    defenses: Sequence[object],
    mods: Sequence[object] = (),
    counts: Counts = lambda node: 100,
) -> Diagnosis:
    """Run three rounds of clients that learn at random, and diagnose the recording."""
    app = ClientApp(mods=list(mods))

    @app.train()
    def fit(asked: Message, context: Context) -> Message:
        start = asked.content["arrays"]["weight"].numpy()
        moved = start + np.random.default_rng().normal(0, 0.05, SHAPE)
        return Message(
            RecordDict(
                {
                    "arrays": ArrayRecord({"weight": Array(moved.astype(np.float32))}),
                    "metrics": MetricRecord({"num-examples": counts(context.node_id)}),
                }
            ),
            reply_to=asked,
        )

    def answer(message: Message) -> Message:
        node = message.metadata.dst_node_id
        return app(message, Context(1, node, {}, RecordDict(), {}))

    grid = RecordingGrid(
        Nodes(answer, NODES),
        folder,
        strategy=strategy,
        defenses=defenses,
        rounds=3,
        participation=1.0,
    )
    start = ArrayRecord({"weight": Array(np.zeros(SHAPE, np.float32))})
    learned = strategy.start(grid, start, num_rounds=3)
    grid.finish(learned.arrays)
    assert grid.stopped is None
    return diagnose_run(recording_evidence(folder))


def ids(found: Diagnosis) -> set[str]:
    return {one.rule.id for one in found.alarms}


def averaging() -> FedAvg:
    return FedAvg(fraction_evaluate=0.0, min_available_nodes=4, min_train_nodes=4)


def test_the_wrapper_with_clipping_at_the_server(tmp_path: Path):
    def wrapped(cohort: int = 4) -> DifferentialPrivacyServerSideFixedClipping:
        return DifferentialPrivacyServerSideFixedClipping(averaging(), 1.0, 1.0, cohort)

    equal, strategy = tmp_path / "equal", wrapped()
    good = recorded(equal, strategy, [strategy])
    assert good.alarms == ()
    assert {"noise-too-small", "noise-repeats"} <= {rule.id for rule in good.passed}

    strategy = wrapped()
    unequal = recorded(
        tmp_path / "unequal", strategy, [strategy], counts=lambda node: 50 * node
    )
    assert ids(unequal) == {"weights-by-counts"}

    strategy = wrapped(cohort=20)
    # As in fl-dp-sa: the noise is for 20 clients, and four reply.
    assert ids(recorded(tmp_path / "few", strategy, [strategy])) == {"cohort-too-small"}


def test_the_wrapper_with_clipping_at_the_client(tmp_path: Path):
    def wrapped() -> DifferentialPrivacyClientSideFixedClipping:
        return DifferentialPrivacyClientSideFixedClipping(averaging(), 1.0, 1.0, 4)

    strategy = wrapped()
    good = recorded(tmp_path / "good", strategy, [strategy], [fixedclipping_mod])
    assert good.alarms == ()
    strategy = wrapped()
    # The client's mod is forgotten, so nobody clips.
    unclipped = recorded(tmp_path / "bad", strategy, [strategy])
    assert ids(unclipped) == {"clip-exceeded"}


def test_local_differential_privacy_by_the_mod(tmp_path: Path):
    stated = LocalDpMod(1.0, 1.0, 0.9, 1e-5)
    good = recorded(tmp_path / "good", averaging(), [stated], [stated])
    assert good.alarms == ()
    weaker = LocalDpMod(1.0, 1.0, 5.0, 1e-5)
    # Another mod is in force than is stated.
    assert "noise-too-small" in ids(recorded(tmp_path / "bad", averaging(), [stated], [weaker]))

    def seeded(asked: Message, context: Context, call_next: Callable[..., Message]) -> Message:
        # Another user's seed, which the mod's generator takes over.
        np.random.seed(7)  # noqa: NPY002
        return call_next(asked, context)

    again = recorded(tmp_path / "again", averaging(), [stated], [seeded, stated])
    assert "noise-repeats" in ids(again)
