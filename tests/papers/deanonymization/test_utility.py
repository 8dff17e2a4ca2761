from pathlib import Path

import pytest

from overheard.auditing.supplies import Resources
from overheard.papers.deanonymization.utility import UtilityExperiment
from overheard.papers.deanonymization.world import IdentityScenario


@pytest.mark.slow
def test_both_models_are_worth_more_than_chance(
    tiny: IdentityScenario, resources: Resources, tmp_path: Path
) -> None:
    experiment = UtilityExperiment((tiny,), (tiny,), ("random",))
    run = experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    told = {one.name: one.ours for one in run}
    # Three labels.
    assert told["tiny_random_chance"] == 1 / 3
    federated, whole = told["tiny_random_federated"], told["tiny_random_centralised"]
    assert federated is not None
    assert whole is not None
    assert federated > 0.5
    assert whole > 0.5
