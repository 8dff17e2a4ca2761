from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard_studies.deanonymization.other_claims import attributes
from overheard_studies.deanonymization.setting import IdentityScenario
from overheard_studies.deanonymization.studies import Varied


@pytest.mark.slow
def test_an_attribute_without_a_trace_is_inferred_for_known_users_only(
    tiny: IdentityScenario, resources: Resources, tmp_path: Path
) -> None:
    panels = (Varied(tiny, {"kind": 6}),)
    experiment = attributes(panels, panels)
    run = experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    by_name = {one.name: one.value for one in run}
    # Kinds alternate and leave no other trace: only recognizing the user reveals them.
    known = by_name["tiny_known_kind_attribute_single"]
    strangers = by_name["tiny_strangers_kind_attribute_single"]
    assert known is not None
    assert strangers is not None
    assert known > 0.6 > strangers
    assert by_name["tiny_known_kind_identity_joint"] is not None
    assert by_name["tiny_known_identity_single"] is not None
