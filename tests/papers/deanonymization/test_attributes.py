from pathlib import Path

import pytest

from overheard.auditing.supplies import Resources
from overheard.papers.deanonymization.attributes import AskedAttribute, AttributesExperiment
from overheard.papers.deanonymization.world import IdentityScenario


@pytest.mark.slow
def test_an_attribute_of_known_users_is_told_and_one_of_strangers_by_no_mark_is_not(
    tiny: IdentityScenario, resources: Resources, tmp_path: Path
) -> None:
    panels = (AskedAttribute(tiny, ("kind",), 6),)
    experiment = AttributesExperiment(panels, panels)
    run = experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    told = {one.name: one.ours for one in run}
    # Kinds alternate and nothing else goes with them: only who is recognised is told.
    known = told["tiny_known_kind_attribute_single"]
    strangers = told["tiny_strangers_kind_attribute_single"]
    assert known is not None
    assert strangers is not None
    assert known > 0.7 > strangers
    assert told["tiny_known_kind_identity_joint"] is not None
    assert told["tiny_known_identity_single"] is not None
