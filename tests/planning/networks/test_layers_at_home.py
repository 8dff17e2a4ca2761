"""Layers that clients keep are recognised by what a recording lacks of their network."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from overheard.algorithms.fed_bn import FedBn
from overheard.algorithms.partial_sharing import PartialSharing
from overheard.archive.weights import Shapes
from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.core.errors import PlanError
from overheard.core.messages import Broadcast, Update
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.learning.sent_tensors import sent_shapes
from overheard.planning.apps.federated_app import FederatedApp
from overheard.planning.first_plan.request import FirstPlanRequest
from overheard.planning.first_plan.writing import write_first_plan
from overheard.planning.networks.layers_at_home import find_layers_at_home
from overheard.planning.recorded_facts import read_recorded_facts
from overheard.plans.plan import parse_plan
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.run_info import RunInfo

HERE = Resources(device="cpu", workers=1)


class Personal(nn.Module):
    """A network with a shared body, a batch norm in it, and a head of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.head(self.body(inputs))
        return outputs


SENT = sent_shapes(Personal())


def only(keep: Callable[[str], bool], cut: str = "") -> Shapes:
    """Return the shapes of some tensors, without the first part of their names."""
    return {name.removeprefix(cut): one for name, one in SENT.items() if keep(name)}


def numbered(shapes: Shapes) -> Shapes:
    """Return the same shapes by their position."""
    return {str(place): one for place, one in enumerate(shapes.values())}


NO_NORMS = only(lambda name: not name.startswith("body.2"))
BODY = only(lambda name: name.startswith("body"))
NO_LAST = only(lambda name: not name.startswith("head.2"))

FED_PER = PartialSharing(("head.*",))


@pytest.mark.parametrize(
    ("recorded", "algorithm"),
    [
        (NO_NORMS, FedBn()),
        (numbered(NO_NORMS), FedBn()),
        (BODY, FED_PER),
        (numbered(BODY), FED_PER),
        ({name.removeprefix("body."): one for name, one in BODY.items()}, FED_PER),
        ({f"arrays/{name.removeprefix('body.')}": one for name, one in BODY.items()}, FED_PER),
        ({f"module.{name}": one for name, one in BODY.items()}, FED_PER),
        (NO_LAST, PartialSharing(("head",))),
        (
            only(lambda name: name.startswith("body.1")),
            PartialSharing(("body.2.*", "head.*")),
        ),
        (only(lambda name: name.startswith("head")), PartialSharing(("body.*",))),
    ],
)
def test_names_the_algorithm_by_what_is_missing(
    recorded: Shapes, algorithm: FedBn | PartialSharing
):
    found = find_layers_at_home(Personal(), recorded)
    assert found is not None
    assert found.algorithm == algorithm


def test_what_may_as_well_be_frozen_has_no_usual_name():
    head = find_layers_at_home(Personal(), only(lambda name: name.startswith("head")))
    body = find_layers_at_home(Personal(), BODY)
    assert head is not None
    assert body is not None
    assert head.usual == ""
    assert body.usual.startswith("FedPer")
    assert body.has_head
    assert body.outputs == 3


@pytest.mark.parametrize(
    "recorded",
    [
        SENT,
        only(lambda name: "running" not in name),  # parameters alone: buffers need not be sent
        SENT | {"more.weight": (2, 2)},
        {**BODY, "body.1.weight": (5, 7)},
        {"weight": (5, 5)},
    ],
    ids=["all", "parameters", "more", "other shape", "other"],
)
def test_other_recordings_lack_no_layers(recorded: Shapes):
    assert find_layers_at_home(Personal(), recorded) is None


class Twins(nn.Module):
    """A network of two equal parts."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(3, 3)
        self.two = nn.Linear(3, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.two(self.one(inputs))
        return outputs


def test_a_lost_name_that_two_parts_could_have_is_not_guessed():
    assert find_layers_at_home(Twins(), {"weight": (3, 3), "bias": (3,)}) is None


def record(
    folder: Path,
    shapes: Shapes,
    absent: tuple[str, ...] = (),
    algorithm: str = "",
    rounds: int = 8,
) -> Path:
    """Record three clients and some rounds of a network with these tensors."""
    clients = [client(number) for number in range(3)]
    generator = Seed(0).generator()

    def draw() -> dict[str, torch.Tensor]:
        return {name: torch.randn(one, generator=generator) for name, one in shapes.items()}

    writer = AsyncWriter(folder, RunInfo("flower", algorithm=algorithm))
    for _ in range(rounds):
        writer.begin_round([SERVER])
        writer.write(SERVER, frozenset(clients), lambda: Broadcast(draw()))
        for one in clients:
            writer.write(one, frozenset({SERVER}), lambda: Update(draw(), 9, absent=absent))
        writer.commit()
    writer.close()
    return folder


APP = FederatedApp((f"{__name__}:Personal",))


@pytest.mark.slow
def test_a_first_plan_names_the_algorithm_and_what_cannot_be_asked(tmp_path: Path):
    lost = {name.removeprefix("body."): one for name, one in BODY.items()}
    folder = record(tmp_path / "recording", lost, algorithm="FedAvg(mean='equal')")
    written = write_first_plan(FirstPlanRequest(read_recorded_facts(folder), APP), HERE)
    assert written.plan.training.algorithm == PartialSharing(("head.*",), mean="equal")
    assert len(written.plan.data.source.load(None).task.class_names) == 3
    assert written.attacks == ("shift",)
    assert "taken for FedPer" in written.notes[0]
    # Not even listed records could be asked about.
    assert "membership of records and their source are not asked" in written.notes[0]
    assert "the last layer of the model, which stays with each client" in written.missing["llg"]


@pytest.mark.slow
def test_label_shares_are_asked_of_the_layers_that_are_sent(tmp_path: Path):
    folder = record(tmp_path / "recording", BODY, rounds=2)
    spare = tmp_path / "spare.npz"
    inputs = np.random.default_rng(0).normal(size=(150, 6)).astype(np.float32)
    np.savez(spare, x=inputs, y=np.arange(150) % 3)
    request = FirstPlanRequest(read_recorded_facts(folder), APP, data=str(spare))
    written = write_first_plan(request, HERE)
    assert written.attacks == ("class_geometry",)
    stays = "the last layer of the model, which stays with each client"
    assert stays in written.missing["mean_softmax"]
    quick = "{ kind = 'class_geometry', clients = 16, most_rounds = 1 }".replace("'", '"')
    text = written.text.replace('"class_geometry"', quick)
    found = audit(parse_plan(text, "plan"), tmp_path / "out", recording=folder, resources=HERE)
    assert {one.cell.part for one in found.findings} == {"class_geometry"}
    assert not found.refusals


@pytest.mark.slow
def test_a_refusal_asks_for_nothing_that_was_found(tmp_path: Path):
    folder = record(tmp_path / "recording", BODY, rounds=2)
    app = FederatedApp(("torch.nn:Bilinear", *APP.networks))
    with pytest.raises(PlanError, match="taken for FedPer") as refused:
        write_first_plan(FirstPlanRequest(read_recorded_facts(folder), app), HERE)
    told = str(refused.value)
    assert "give labelled examples that no client holds (--data FILE --label COLUMN). " in told
    assert "shift needs 8 consecutive rounds" in told
    assert "--candidates" not in told
    # The network was found, so neither it nor those that are other networks matter.
    assert "--flower" not in told
    assert "is not taken" not in told


@pytest.mark.slow
def test_tensors_that_no_client_sends_back_stay_at_home(tmp_path: Path):
    absent = tuple(name for name in SENT if name not in NO_NORMS)
    folder = record(tmp_path / "recording", SENT, absent)
    written = write_first_plan(FirstPlanRequest(read_recorded_facts(folder), APP), HERE)
    assert written.plan.training.algorithm == FedBn()
    assert "llg" in written.attacks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shapes", "algorithm", "told"),
    [
        (NO_NORMS, "FedAdam()", "states the algorithm fed_adam. A plan cannot state both"),
        (
            only(lambda name: name.startswith("head")),
            "",
            'algorithm = { kind = "partial_sharing", stays = ["body.*"] } in the plan. If '
            "nobody trains them, give them requires_grad = False",
        ),
    ],
)
def test_says_why_a_network_is_not_taken_without_layers(
    tmp_path: Path, shapes: Shapes, algorithm: str, told: str
):
    folder = record(tmp_path / "recording", shapes, algorithm=algorithm)
    request = FirstPlanRequest(read_recorded_facts(folder), APP)
    try:
        found = str(dict(write_first_plan(request, HERE).networks))
    except PlanError as error:
        found = str(error)
    assert told in found
