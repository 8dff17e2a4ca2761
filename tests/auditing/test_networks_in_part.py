"""Networks that are known in part."""

import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from overheard.archive.reader import open_transcript
from overheard.auditing.folder import AuditFolder
from overheard.auditing.recorded_tensors.model_tensors import select_tensors
from overheard.auditing.recording import check_recording
from overheard.core.messages import Broadcast, Update
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.datasets.no_examples import NoExamples
from overheard.data.partition.candidates import CandidateSettings
from overheard.learning.models.custom import Own
from overheard.learning.models.unknown import Unknown
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, ThreatPlan, TrainingPlan
from overheard.plans.registries import ATTACKS
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard.questions.label_shares.attacks.ilrg import Ilrg
from overheard.questions.label_shares.attacks.llg import Llg
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.label_shares.attacks.ramakrishna import Ramakrishna
from overheard.questions.label_shares.attacks.zlg import Zlg
from overheard.questions.membership.attacks.fed_mia import FedMia
from overheard.questions.membership.attacks.glir import Glir
from overheard.questions.membership.attacks.gradient_membership import GradientMembership
from overheard.questions.membership.attacks.lira import Lira
from overheard.questions.membership.attacks.loss_membership import LossMembership
from overheard.questions.membership.attacks.projection_residual import ProjectionResidual
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.run_info import RunInfo
from tests.auditing.conftest import FinishedAudit, audit_here, inputs_for
from tests.auditing.plans import DATA, TINY, replace_tables

LAST_LAYER = (
    BiasInversion(),
    Decaf(),
    Ilrg(),
    Llg(),
    Ramakrishna(),
    Zlg(),
    ProjectionResidual(),
)
"""Attacks that read the last layer, or the first linear one."""


WHOLE = (
    MeanSoftmax(),
    FedMia(),
    FedMia(evidence="confidence"),
    Glir(),
    GradientMembership(models=8, trainings=0),
    Lira(models=8),
    LossMembership(),
)
"""Attacks that read all that is sent, or outputs."""


class Adapter(nn.Module):
    """A frozen matrix with an adapter, and no layer of torch's own."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.randn(outputs, inputs) / 8, requires_grad=False)
        self.reduce = nn.Parameter(torch.randn(2, inputs) / 8)
        self.expand = nn.Parameter(torch.zeros(outputs, 2))

    def forward(self, inputs: Tensor) -> Tensor:
        """Apply the matrix plus the product of the adapter."""
        outputs: Tensor = inputs @ (self.matrix + self.expand @ self.reduce).T
        return outputs


def normed(task: Task) -> nn.Module:
    """A batch norm between two layers."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, task.classes)
    )


def adapted(task: Task) -> nn.Module:
    """An adapter under a trained last layer."""
    return nn.Sequential(nn.Flatten(), Adapter(64, 8), nn.ReLU(), nn.Linear(8, task.classes))


def adapted_to_the_top(task: Task) -> nn.Module:
    """Adapters alone."""
    return nn.Sequential(nn.Flatten(), Adapter(64, 8), nn.ReLU(), Adapter(8, task.classes))


@pytest.mark.slow
@pytest.mark.parametrize("builder", ["normed", "adapted", "adapted_to_the_top"])
def test_each_attack_claims_something_or_names_the_last_layer(builder: str, tmp_path: Path):
    model = Own(f"tests.auditing.test_networks_in_part:{builder}")
    threats = (ThreatPlan(attacks=(*LAST_LAYER, *WHOLE), by_round=False),)
    training = TrainingPlan(model=model, rounds=1, rate=0.1, batch=10)
    data = DATA.model_copy(
        update={
            "candidates": CandidateSettings(members=5, outsiders=5),
            "auxiliary_per_class": 8,
        }
    )
    plan = replace_tables(TINY, data=data, training=training, threats=threats)
    found = audit_here(plan, tmp_path / "out")
    claimed = {one.cell.settings for one in found.findings}
    refused = {one.cell.settings: one.missing[0] for one in found.refusals}
    with_last_layer = set(map(repr, LAST_LAYER))
    if builder == "adapted_to_the_top":
        assert set(refused) == with_last_layer
        assert all("has no nn.Linear" in reason for reason in refused.values())
        assert claimed == set(map(repr, WHOLE))
    else:
        assert refused == {}
        assert claimed == with_last_layer | set(map(repr, WHOLE))


SHAPES = {"body.weight": (4, 6), "body.bias": (4,), "head.weight": (14, 4), "head.bias": (14,)}
"""Fourteen labels at once."""


TENSORS = tuple(f"{name} {'x'.join(map(str, shape))}" for name, shape in SHAPES.items())


CLIENTS = tuple(client(number) for number in range(3))


ROUNDS = 8


@pytest.fixture(scope="module")
def many_labels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording whose messages also have a running mean."""
    folder = tmp_path_factory.mktemp("heads") / "recording"
    generator = Seed(0).generator()
    shapes = SHAPES | {"norm.running_mean": (4,)}

    def draw() -> dict[str, torch.Tensor]:
        return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}

    writer = AsyncWriter(folder, RunInfo("flower 1.41"))
    for _ in range(ROUNDS):
        writer.begin_round([SERVER])
        start = draw()
        writer.write(SERVER, frozenset(CLIENTS), lambda start=start: Broadcast(start))
        for party in CLIENTS:
            delta = draw()
            writer.write(party, frozenset({SERVER}), lambda delta=delta: Update(delta, 9))
        writer.commit()
    writer.close()
    return folder


def test_every_attack_on_it_runs_or_says_what_it_lacks(many_labels: Path, tmp_path: Path):
    names = [name for name in ATTACKS.plugins() if name != "distilled_labels"]
    attacks = tuple(ATTACKS.plugins()[name]() for name in names)
    threats = tuple(
        ThreatPlan(attacks=attacks, knows=("recipe",), by_round=False, pseudonyms=kept)
        for kept in ("run", "round")
    )
    plan = Plan(
        data=DataPlan(source=NoExamples(class_names=("a", "b"))),
        training=TrainingPlan(model=Unknown(tensors=TENSORS), rounds=ROUNDS, rate=0.1, batch=4),
        threats=threats,
    )
    found = audit_here(plan, tmp_path / "out", recording=many_labels)
    claimed = {one.cell.attack.partition(",")[0] for one in found.findings}
    refused = {one.cell.attack.partition(",")[0] for one in found.refusals}
    assert {"shift", "metadata_link"} <= claimed
    assert {"amortised", "bias_inversion", "lira"} <= refused - claimed
    assert {name for name in names if name not in claimed} <= refused
    assert all(reason.strip() for one in found.refusals for reason in one.missing)


def network(task: Task) -> nn.Module:
    """A network with a batch norm of images, and one of features."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(144, 8),
        nn.BatchNorm1d(8),
        nn.Linear(8, task.classes),
    )


STATISTICS = ("1.running_mean", "1.running_var", "5.running_mean", "5.running_var")


TRAINING = TrainingPlan(
    model=Own("tests.auditing.test_networks_in_part:network"), rounds=2, rate=0.1, batch=10
)


THREAT = ThreatPlan(attacks=(BiasInversion(),), by_round=False)


PLAN = replace_tables(TINY, training=TRAINING, threats=(THREAT,))


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> FinishedAudit:
    folder = tmp_path_factory.mktemp("audits") / "normed"
    return FinishedAudit(audit_here(PLAN, folder), folder, ())


@pytest.fixture(scope="module")
def recorded(simulated: FinishedAudit) -> Path:
    return AuditFolder(simulated.folder).run_path("no defense", 0)


def test_updates_of_a_simulation_have_the_running_statistics(recorded: Path):
    view = open_transcript(recorded).seen_by(SERVER)
    first, second = (view.broadcasts()[number] for number in (0, 1))
    assert set(STATISTICS) <= set(first)
    assert first["1.running_var"].tolist() == [1, 1, 1, 1]
    assert float(second["1.running_var"].min()) > 0
    assert second["1.running_var"].tolist() != [1, 1, 1, 1]


def test_a_recording_with_running_statistics_gives_the_claims_of_the_simulation(
    simulated: FinishedAudit, recorded: Path, tmp_path: Path
):
    copy = shutil.copytree(recorded, tmp_path / "recording")
    again = audit_here(PLAN, tmp_path / "out", recording=copy)
    assert [one.claimed for one in again.findings] == [
        one.claimed for one in simulated.audit.findings
    ]


def test_statistics_that_stay_at_home_are_those_of_a_fresh_model(
    recorded: Path, tmp_path: Path
):
    writer = AsyncWriter(tmp_path / "recording", RunInfo("flower 1.41"))
    transcript = open_transcript(recorded)
    for number in (0, 1):
        writer.begin_round([SERVER])
        for message in transcript.messages:
            if message.round == number:
                names = {
                    name: name
                    for name in transcript.seen_by(SERVER).broadcasts()[0]
                    if name not in STATISTICS
                }
                body = select_tensors(message, names).body
                writer.write(message.sender, message.readers, lambda body=body: body)
        writer.commit()
    writer.close()
    run = check_recording(PLAN, inputs_for(PLAN), tmp_path / "recording").open_run()
    assert not set(STATISTICS) & set(run.observed.transcript.seen_by(SERVER).broadcasts()[0])
    found = audit_here(PLAN, tmp_path / "out", recording=tmp_path / "recording")
    assert len(found.findings) == 3
    assert found.refusals == ()
