from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard_studies.deanonymization.setting import IdentityScenario
from overheard_studies.deanonymization.studies import Varied, prior_examples


@pytest.mark.slow
def test_more_prior_examples_increase_precision(
    tiny: IdentityScenario, resources: Resources, tmp_path: Path
) -> None:
    panels = (Varied(tiny, (1,), ("shadow",)),)
    experiment = prior_examples(panels, panels)
    run = experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    by_name = {one.name: one.value for one in run}
    one = by_name["tiny_records_1_shadow_reidentify_svm_mean_average_precision"]
    all_updates = by_name["tiny_records_all_shadow_reidentify_svm_mean_average_precision"]
    assert one is not None
    assert all_updates is not None
    assert all_updates > one
