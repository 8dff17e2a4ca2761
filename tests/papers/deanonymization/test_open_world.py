from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.papers.deanonymization.open_world import OpenWorldExperiment
from overheard.papers.deanonymization.scenarios import IdentityScenario


def test_the_share_of_seen_users_sets_the_number_of_unseen_ones(tiny: IdentityScenario) -> None:
    plans = OpenWorldExperiment((tiny,), (tiny,)).plans(quick=True)
    # Of 12 users 4 are held out; of the 8 others 2, 4, 6 and 8 are known.
    unseen = [plan.data.people.unseen for plan in plans.values() if plan.data.people]
    assert unseen == [6, 4, 2, 0]
    assert all(plan.data.clients == 8 for plan in plans.values())


@pytest.mark.slow
def test_false_positives_are_reported_with_unseen_users_and_senders_are_linked(
    tiny: IdentityScenario, resources: Resources, tmp_path: Path
) -> None:
    experiment = OpenWorldExperiment((tiny,), (tiny,), (50,), pairs=1000)
    run = experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    values = {one.name: one for one in run}
    assert "tiny_seen_50_reidentify_mlp_dir_at_1_percent" in values
    linked = values["tiny_seen_50_link_siamese_matching_auc"].value
    assert linked is not None
    assert linked > 0.6
    # A legend and a chart for each of two scores.
    page = (tmp_path / "figures.html").read_text(encoding="utf-8")
    assert page.count('role="img"') == page.count('class="keys"') == 2
