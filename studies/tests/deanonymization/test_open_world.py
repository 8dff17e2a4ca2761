from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.findings.audit import Audit
from overheard_studies.deanonymization.setting import PRECISION, IdentityScenario
from overheard_studies.deanonymization.studies import open_world
from overheard_studies.runs import StudyRuns
from overheard_studies.values import ReproducedValue


def test_the_share_of_seen_users_sets_the_number_of_unseen_ones(tiny: IdentityScenario) -> None:
    plans = open_world((tiny,), (tiny,)).plans(quick=True)
    # Of 12 users 4 are held out; of the 8 others 2, 4, 6 and 8 are known.
    unseen = [plan.data.people.unseen for plan in plans.values() if plan.data.people]
    assert unseen == [6, 4, 2, 0]
    assert all(plan.data.clients == 8 for plan in plans.values())


def test_the_figure_has_the_shares_that_were_run(
    tiny: IdentityScenario, tmp_path: Path
) -> None:
    experiment = open_world((tiny,), (tiny,))
    plans = {
        name: plan
        for name, plan in experiment.plans(quick=True).items()
        if name in {"tiny_seen_50", "tiny_seen_100"}
    }
    audits = {
        name: Audit("", "", (), (), (), (), plan.toml(), {}) for name, plan in plans.items()
    }
    values = [
        ReproducedValue(f"{name}_{attack.name}_{score}", "", 0.4, 0.3, 0.5, None, "higher")
        for name, plan in plans.items()
        for attack in plan.threats[0].attacks
        for score in (PRECISION, "matching_auc")
    ]
    figures = experiment.figures(StudyRuns(audits, plans, tmp_path), values)
    assert [one.title for one in figures] == [
        "Figure 6: Tiny, mean average precision",
        "Figure 6: Tiny, matching auc",
    ]
    assert list(experiment.figures(StudyRuns({}, {}, tmp_path), ())) == []


@pytest.mark.slow
def test_false_positives_are_reported_with_unseen_users_and_senders_are_linked(
    tiny: IdentityScenario, resources: Resources, tmp_path: Path
) -> None:
    experiment = open_world((tiny,), (tiny,), (50,), pairs=1000)
    run = experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    values = {one.name: one for one in run}
    assert "tiny_seen_50_reidentify_mlp_dir_at_1_percent" in values
    linked = values["tiny_seen_50_link_siamese_matching_auc"].value
    assert linked is not None
    assert linked > 0.6
    # A legend and a chart for each of two scores.
    page = (tmp_path / "figures.html").read_text(encoding="utf-8")
    assert page.count('role="img"') == page.count('class="keys"') == 2
