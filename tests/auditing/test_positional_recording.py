"""A recording whose tensors have no names gives the claims of one in which they have."""

import shutil
from pathlib import Path

import pytest

from overheard.archive.reader import open_transcript
from overheard.auditing.folder import AuditFolder
from overheard.auditing.recorded_tensors.tensor_selection import select_tensors
from overheard.auditing.run import audit
from overheard.core.errors import PlanError
from overheard.core.parties import SERVER
from overheard.learning.models.mlp import Mlp
from overheard.plans.plan import ThreatPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.run_info import RunInfo
from tests.auditing.conftest import HERE
from tests.auditing.plans import TINY, replace_tables

PLAN = replace_tables(TINY, threats=(ThreatPlan(attacks=(BiasInversion(),), by_round=False),))


def copy_with_names(recorded: Path, folder: Path, *, are_positions: bool) -> Path:
    """Write the messages of a run again, as another framework would have recorded them."""
    transcript = open_transcript(recorded)
    named = list(transcript.seen_by(SERVER).broadcasts()[0])
    names = {str(place) if are_positions else name: name for place, name in enumerate(named)}
    writer = AsyncWriter(folder, RunInfo("flwr 1.18"))
    for number in sorted({one.round for one in transcript.messages}):
        writer.begin_round([SERVER])
        for message in transcript.messages:
            if message.round == number:
                body = select_tensors(message, names).body
                writer.write(message.sender, message.readers, lambda body=body: body)
        writer.commit()
    writer.close()
    return folder


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audits") / "named"
    audit(PLAN, folder, resources=HERE)
    return AuditFolder(folder).run_path("no defense", 0)


def test_positions_give_the_claims_of_names(recorded: Path, tmp_path: Path):
    named = copy_with_names(recorded, tmp_path / "named", are_positions=False)
    listed = copy_with_names(recorded, tmp_path / "listed", are_positions=True)
    assert list(open_transcript(listed).seen_by(SERVER).broadcasts()[0])[:2] == ["0", "1"]
    first, second = (
        audit(PLAN, tmp_path / f"{one.name}-out", recording=one, resources=HERE)
        for one in (named, listed)
    )
    assert first.findings
    assert [one.claimed for one in first.findings] == [one.claimed for one in second.findings]


def test_a_list_of_another_model_is_refused(recorded: Path, tmp_path: Path):
    listed = copy_with_names(recorded, tmp_path / "listed", are_positions=True)
    training = PLAN.training.model_copy(update={"model": Mlp(hidden=(3,))})
    other = PLAN.model_copy(update={"training": training})
    with pytest.raises(PlanError, match=r"It broadcasts 0, 1, and .*set training.model"):
        audit(other, tmp_path / "out", recording=listed, resources=HERE)
    shutil.rmtree(listed)
