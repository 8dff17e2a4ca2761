from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard_studies.deanonymization.run_studies import utility
from overheard_studies.deanonymization.setting import IdentityScenario


@pytest.mark.slow
def test_both_models_are_better_than_chance(
    tiny: IdentityScenario, resources: Resources, tmp_path: Path
) -> None:
    experiment = utility((tiny,), (tiny,), ("random",))
    run = experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    by_name = {one.name: one.value for one in run}
    # Three labels.
    assert by_name["tiny_random_chance"] == 1 / 3
    federated, centralized = (
        by_name["tiny_random_federated"],
        by_name["tiny_random_centralised"],
    )
    assert federated is not None
    assert centralized is not None
    assert federated > 0.5
    assert centralized > 0.5
