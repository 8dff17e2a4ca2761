"""The first plan knows a network however its tensors were recorded, and an audit takes it."""

from pathlib import Path

import pytest
from torch import nn

from overheard.auditing.inputs import Resources
from overheard.planning.first_plan import FirstPlanRequest, write_first_plan
from overheard.planning.flower_app import FlowerApp
from overheard.planning.plan_check import check_plan
from overheard.planning.recorded_facts import read_recorded_facts
from tests.auditing.test_renamed_recording import copy_with_names

HERE = Resources(device="cpu", workers=1)


class Net(nn.Sequential):
    """A user's own network with the tensors of the recording."""

    def __init__(self) -> None:
        super().__init__(nn.Flatten(), nn.Linear(64, 10))


@pytest.mark.parametrize("name_of", ["1.{1}", "arr_{0}", "module.{1}", "réseau 2.{1}"])
@pytest.mark.parametrize("are_turned", [False, True])
def test_a_first_plan_has_the_network_that_an_audit_accepts(
    simulated: Path, tmp_path: Path, name_of: str, are_turned: bool
):
    copy = copy_with_names(
        simulated,
        tmp_path / "copy",
        lambda place, name: name_of.format(place, name.rpartition(".")[2]),
        are_turned=are_turned,
    )
    app = FlowerApp((f"{__name__}:Net",))
    written = write_first_plan(FirstPlanRequest(read_recorded_facts(copy), app), HERE)
    assert repr(written.plan.training.model) == f"Own(reference='{__name__}:Net')"
    assert check_plan(written.plan, HERE, copy, with_estimate=False).can_run
