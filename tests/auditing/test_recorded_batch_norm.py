"""A recording of a model with batch norm is audited, with or without its running statistics."""

import shutil
from pathlib import Path

import pytest
from torch import nn

from overheard.archive.reader import open_transcript
from overheard.auditing.folder import AuditFolder
from overheard.auditing.recorded_tensors.model_tensors import select_tensors
from overheard.auditing.recording import check_recording
from overheard.auditing.run import audit
from overheard.core.parties import SERVER
from overheard.core.task import Task
from overheard.learning.models.own import Own
from overheard.plans.plan import ThreatPlan, TrainingPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.run_info import RunInfo
from tests.auditing.conftest import HERE, FinishedAudit, inputs_for
from tests.auditing.plans import TINY, replace_tables


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
    model=Own("tests.auditing.test_recorded_batch_norm:network"), rounds=2, rate=0.1, batch=10
)
THREAT = ThreatPlan(attacks=(BiasInversion(),), by_round=False)
PLAN = replace_tables(TINY, training=TRAINING, threats=(THREAT,))


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> FinishedAudit:
    folder = tmp_path_factory.mktemp("audits") / "normed"
    return FinishedAudit(audit(PLAN, folder, resources=HERE), folder, ())


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
    again = audit(PLAN, tmp_path / "out", recording=copy, resources=HERE)
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
    found = audit(PLAN, tmp_path / "out", recording=tmp_path / "recording", resources=HERE)
    assert len(found.findings) == 3
    assert found.refusals == ()
