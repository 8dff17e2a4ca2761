from pathlib import Path

import pytest

from overheard.auditing.supplies import Resources
from overheard.papers.deanonymization.prior_examples import (
    Counted,
    PriorExamplesExperiment,
)
from overheard.papers.deanonymization.world import IdentityScenario


@pytest.mark.slow
def test_more_prior_examples_tell_more(
    tiny: IdentityScenario, resources: Resources, tmp_path: Path
) -> None:
    panels = (Counted(tiny, (1,), ("shadow",)),)
    experiment = PriorExamplesExperiment(panels, panels)
    run = experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    told = {one.name: one.ours for one in run}
    one = told["tiny_records_1_shadow_reidentify_svm_mean_average_precision"]
    every = told["tiny_records_all_shadow_reidentify_svm_mean_average_precision"]
    assert one is not None
    assert every is not None
    assert every > one
