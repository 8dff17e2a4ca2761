from pathlib import Path

import pytest

from overheard.auditing.supplies import Resources
from overheard.papers.deanonymization.iid import IidExperiment
from overheard.papers.deanonymization.world import IdentityScenario


@pytest.mark.slow
def test_the_control_tells_nobody_where_users_as_they_are_are_told(
    tiny: IdentityScenario, resources: Resources, tmp_path: Path
) -> None:
    experiment = IidExperiment((tiny,), (tiny,))
    run = experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    told = {one.name: one.ours for one in run}
    control, own = told["tiny_simulated_control"], told["tiny_simulated_as_they_are"]
    low, high = told["tiny_simulated_null_low"], told["tiny_simulated_null_high"]
    assert control is not None
    assert own is not None
    assert low is not None
    assert high is not None
    assert low < high < own
    assert control < own / 2
