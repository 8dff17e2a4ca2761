from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard_studies.deanonymization.setting import IdentityScenario
from overheard_studies.deanonymization.studies import iid


@pytest.mark.slow
def test_the_iid_control_hides_users_that_the_attack_identifies(
    tiny: IdentityScenario, resources: Resources, tmp_path: Path
) -> None:
    experiment = iid((tiny,), (tiny,))
    run = experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    by_name = {one.name: one.value for one in run}
    control, own_value = (
        by_name["tiny_simulated_control"],
        by_name["tiny_simulated_as_they_are"],
    )
    low, high = by_name["tiny_simulated_null_low"], by_name["tiny_simulated_null_high"]
    assert control is not None
    assert own_value is not None
    assert low is not None
    assert high is not None
    assert low < high < own_value
    assert control < own_value / 2
