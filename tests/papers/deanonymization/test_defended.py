from dataclasses import replace
from pathlib import Path

import pytest

from overheard.audit.plan import UNDEFENDED
from overheard.audit.simulate import Resources
from overheard.papers.deanonymization.defended import (
    ADAPTED,
    DefendedExperiment,
    Shielded,
)
from overheard.papers.deanonymization.world import WISDM, World


def test_every_published_setting_has_its_arm() -> None:
    names = [arm.name for arm in Shielded(WISDM, 24).arms()]
    # 4 + 3 + 3 of data, each twice, 5 + 5 of updates, and none.
    assert len(names) == 2 * 10 + 10 + 1
    assert {"bkg_repl 1", "rand_aug 2", "mm_aug 0.5", "dp_fedavg 1e-05", "noise 100"} < {*names}


def test_shadow_devices_follow_the_defense_in_adapted_arms_alone() -> None:
    for arm in Shielded(WISDM, 24).arms():
        assert arm.shadows_defended == arm.name.endswith(ADAPTED)


def test_full_replacement_hides_everyone_and_each_arm_has_its_utility(
    tiny: World, resources: Resources, tmp_path: Path
) -> None:
    world = replace(tiny, rounds=2, most_rounds=2)
    panels = (Shielded(world, 8, (0.5, 1.0), (), (), ()),)
    experiment = DefendedExperiment(panels, panels)
    run = experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    figures = {one.name: one for one in run}
    assert len(figures) == len(run)
    bare = figures["tiny_no_defense_simulated_mean_average_precision"].ours
    hidden = figures["tiny_bkg_repl_1_simulated_mean_average_precision"].ours
    assert bare is not None
    assert hidden is not None
    assert hidden < 0.75 * bare
    assert figures["tiny_no_defense_utility"].ours == pytest.approx(1)
    assert figures["tiny_bkg_repl_0.5_shadow_decrease"].published == 0.67
    assert figures["tiny_bkg_repl_1_shadow_decrease"].published is None
    adapted = figures["tiny_bkg_repl_0.5_adapted_shadow_adaptive_decrease"]
    assert adapted.published is None
    assert UNDEFENDED in (tmp_path / "figures.html").read_text(encoding="utf-8")
