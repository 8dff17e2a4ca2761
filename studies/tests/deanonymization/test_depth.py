from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard_studies.deanonymization.setting import IdentityScenario
from overheard_studies.deanonymization.studies import Varied, depth


@pytest.mark.slow
def test_each_layer_has_its_own_precision_and_the_first_reveals_users(
    tiny: IdentityScenario, resources: Resources, tmp_path: Path
) -> None:
    panels = (
        Varied(replace(tiny, paper="blog"), {"embedding": 0, "output_bias": "last_bias"}),
    )
    experiment = depth("table5", panels, panels)
    run = experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    values = {one.name: one for one in run}
    first = values["tiny_simulated_embedding_mean_average_precision"].value
    bias = values["tiny_simulated_output_bias_mean_average_precision"].value
    assert first is not None
    assert bias is not None
    # The typical values of users are in columns that do not depend on the label.
    assert first > bias
    published = {name for name, one in values.items() if one.published is not None}
    assert published == {"tiny_shadow_embedding_mean_average_precision"}
