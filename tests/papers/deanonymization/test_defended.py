from pathlib import Path

import pytest

from overheard.auditing.supplies import Resources
from overheard.papers.deanonymization.defended import (
    DefendedIdentityExperiment,
    attackers,
    published_decrease,
)
from overheard.papers.deanonymization.shielded import Shielded
from overheard.papers.deanonymization.world import WISDM, IdentityScenario
from overheard.plans.plan import UNDEFENDED


def test_every_published_setting_has_its_arm() -> None:
    names = [arm.name for arm in Shielded(WISDM, 24).arms()]
    # 4 + 3 + 3 of data, 5 + 5 of updates, and none.
    assert len(names) == 10 + 10 + 1
    assert {"bkg_repl 1", "rand_aug 2", "mm_aug 0.5", "dp_fedavg 1e-05", "noise 100"} < {*names}


def test_shadow_devices_follow_the_defense_in_adapted_arms_alone() -> None:
    assert not any(arm.shadows_defended for arm in Shielded(WISDM, 24).arms())
    adapted = Shielded(WISDM, 24).adapted()
    assert [arm.shadows_defended for arm in adapted] == [False, *[True] * 10]


def test_every_attack_of_both_audits_is_an_attacker_by_name(tiny: IdentityScenario) -> None:
    panel = Shielded(tiny, 8)
    plain, adapted = DefendedIdentityExperiment((panel,), (panel,)).plans(quick=False).values()
    told = attackers(plain)
    # Who adapts differs in that alone from one who does not.
    assert "pieces" not in told["simulated"]
    assert "pieces=4" in told["pieces"]
    assert told["pieces_adaptive"] == f"{told['pieces']}, knowing the defenses"
    assert "knowing the defenses" in told["ours_adaptive"]
    assert "wccn" in told["ours"]
    assert attackers(adapted) == {"shadow_adaptive": told["shadow"]}


@pytest.mark.slow
def test_full_replacement_hides_everyone_and_each_arm_has_its_utility(
    tiny: IdentityScenario, resources: Resources, tmp_path: Path
) -> None:
    panels = (Shielded(tiny, 8, (1.0,), (), (), ()),)
    experiment = DefendedIdentityExperiment(panels, panels)
    run = experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    figures = {one.name: one for one in run}
    assert len(figures) == len(run)
    bare = figures["tiny_no_defense_simulated_mean_average_precision"].ours
    hidden = figures["tiny_bkg_repl_1_simulated_mean_average_precision"].ours
    assert bare is not None
    assert hidden is not None
    assert hidden < 0.75 * bare
    assert figures["tiny_no_defense_utility"].ours == pytest.approx(1)
    # The text tells of alpha 0.5 only.
    assert figures["tiny_bkg_repl_1_shadow_decrease"].published is None
    assert figures["tiny_adapted_bkg_repl_1_shadow_adaptive_decrease"].ours is not None
    page = (tmp_path / "figures.html").read_text(encoding="utf-8")
    # A legend, and a panel each for shadow devices, simulated updates, pieces and ours.
    assert page.count("<svg") == 5


def test_the_text_is_beside_its_alpha_alone() -> None:
    assert published_decrease("mm_aug 0.5") == 0.75
    assert published_decrease("bkg_repl 0.5") == 0.67
    assert published_decrease("bkg_repl 1") is None
    assert published_decrease("noise 0.5") is None
    assert published_decrease(UNDEFENDED) is None
