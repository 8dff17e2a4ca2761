from dataclasses import replace
from pathlib import Path

from overheard.audit.simulate import Resources
from overheard.data.candidates import Candidates
from overheard.papers.flip.membership import ATTACKS, MembershipExperiment
from tests.papers.flip.test_accuracy import TINY


def test_every_attack_listens_to_both_arms_and_one_figure_is_published(tmp_path: Path) -> None:
    world = replace(TINY, examples=40, samples=(1,), flip_rounds=3, epochs=10)
    asked = Candidates(members=40, outsiders=150)
    experiment = MembershipExperiment(world, world, asked, auxiliary=100)
    run = experiment.run(tmp_path, quick=True, resources=Resources(workers=1), on_step=None)
    figures = {one.name: one for one in run}
    # Of 150 of nobody one in a thousand cannot be told.
    assert len(figures) == 2 * len(ATTACKS) * 3
    published = {name: one.published for name, one in figures.items() if one.published}
    assert published == {
        "fedavg_shadow_membership_accuracy": 0.5914,
        "flip_shadow_membership_accuracy": 0.4975,
    }
    learned = figures["fedavg_lira_membership_auc"].ours
    assert learned is not None
    assert learned > 0.55
