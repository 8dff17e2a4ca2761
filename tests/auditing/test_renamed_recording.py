"""A recording gives the same claims, however its tensors are named and turned."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from overheard.archive.reader import open_transcript
from overheard.auditing.folder import AuditFolder
from overheard.auditing.recorded_tensors.model_tensors import select_tensors
from overheard.core.errors import PlanError
from overheard.core.parties import SERVER
from overheard.findings.audit import Audit
from overheard.learning.models.mlp import Mlp
from overheard.plans.plan import ThreatPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.llg import Llg
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.run_info import RunInfo
from tests.auditing.conftest import audit_here
from tests.auditing.plans import TINY, replace_tables

ATTACKS = (BiasInversion(), Llg())
PLAN = replace_tables(TINY, threats=(ThreatPlan(attacks=ATTACKS, by_round=False),))


def copy_with_names(
    recorded: Path,
    folder: Path,
    name_of: Callable[[int, str], str],
    *,
    are_turned: bool = False,
) -> Path:
    """Write the messages of a run again, as another framework would have recorded them.

    Args:
        recorded: the recording.
        folder: the folder of the copy.
        name_of: the new name of a tensor, from its position and its name.
        are_turned: whether weights are stored as inputs x outputs.

    """
    transcript = open_transcript(recorded)
    shapes = {
        name: tensor.shape
        for name, tensor in transcript.seen_by(SERVER).broadcasts()[0].items()
    }
    names = {name_of(place, name): name for place, name in enumerate(shapes)}
    axes: Mapping[str, tuple[int, ...]] = {
        new: (1, 0) for new, name in names.items() if are_turned and len(shapes[name]) == 2
    }
    writer = AsyncWriter(folder, RunInfo("flwr 1.18"))
    for number in sorted({one.round for one in transcript.messages}):
        writer.begin_round([SERVER])
        for message in transcript.messages:
            if message.round == number:
                body = select_tensors(message, names, axes).body
                writer.write(message.sender, message.readers, lambda body=body: body)
        writer.commit()
    writer.close()
    return folder


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audits") / "named"
    audit_here(PLAN, folder)
    return AuditFolder(folder).run_path("no defense", 0)


@pytest.fixture(scope="module")
def named(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Audit:
    folder = tmp_path_factory.mktemp("copies")
    copy = copy_with_names(recorded, folder / "named", lambda _, name: name)
    return audit_here(PLAN, folder / "out", recording=copy)


def position(place: int, _: str) -> str:
    return f"arr_{place}"


@pytest.mark.parametrize(
    ("name_of", "are_turned", "note"),
    [
        (position, False, "named by position"),
        (lambda _, name: f"module.{name}", False, "the prefix 'module.' of its names"),
        (lambda _, name: name, True, "its kernels are inputs x outputs"),
        (position, True, "its kernels are inputs x outputs"),
    ],
    ids=["positions", "a wrapper", "transposed", "transposed positions"],
)
def test_a_recording_gives_the_claims_of_one_with_the_names_of_the_network(
    recorded: Path,
    named: Audit,
    tmp_path: Path,
    name_of: Callable[[int, str], str],
    are_turned: bool,
    note: str,
):
    copy = copy_with_names(recorded, tmp_path / "copy", name_of, are_turned=are_turned)
    again = audit_here(PLAN, tmp_path / "out", recording=copy)
    assert named.findings
    assert [one.claimed for one in again.findings] == [one.claimed for one in named.findings]
    assert note in again.subject
    assert note not in named.subject


def test_a_list_of_another_model_is_refused(recorded: Path, tmp_path: Path):
    listed = copy_with_names(recorded, tmp_path / "listed", position)
    training = PLAN.training.model_copy(update={"model": Mlp(hidden=(3,))})
    other = PLAN.model_copy(update={"training": training})
    with pytest.raises(
        PlanError, match=r"It broadcasts arr_0, arr_1, and .*set training.model"
    ):
        audit_here(other, tmp_path / "out", recording=listed)
