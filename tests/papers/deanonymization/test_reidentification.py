from dataclasses import replace
from pathlib import Path

from overheard.audit.simulate import Resources
from overheard.papers.deanonymization.reidentification import (
    Panel,
    ReidentificationExperiment,
)
from overheard.papers.deanonymization.world import World
from overheard.papers.experiment import Figure


def run(
    experiment: ReidentificationExperiment, folder: Path, on: Resources
) -> dict[str, Figure]:
    told = experiment.run(folder, quick=True, resources=on, on_step=None)
    figures = {one.name: one for one in told}
    assert len(figures) == len(told)
    return figures


def test_both_sources_tell_users_apart_and_the_control_nobody(
    tiny: World, resources: Resources, tmp_path: Path
) -> None:
    panels = (Panel(replace(tiny, paper="blog"), ("random",)),)
    figures = run(ReidentificationExperiment(panels, panels), tmp_path, resources)
    for source in ("shadow", "simulated"):
        name = f"tiny_random_update_{source}_reidentify_svm"
        told = figures[f"{name}_mean_average_precision"].ours
        chance, control = figures[f"{name}_chance"].ours, figures[f"{name}_iid_control"].ours
        assert told is not None
        assert chance is not None
        assert control is not None
        assert told > 0.6 > 2.5 * chance
        assert control < 0.4


def test_published_numbers_stand_beside_shadow_devices_and_single_updates_alone(
    tiny: World, resources: Resources, tmp_path: Path
) -> None:
    panels = (Panel(replace(tiny, paper="blog", rounds=2), ("random",)),)
    figures = run(ReidentificationExperiment(panels, panels), tmp_path, resources)
    beside = {name for name, one in figures.items() if one.published is not None}
    # Three attacks by four scores.
    assert len(beside) == 12
    assert all(name.startswith("tiny_random_update_shadow_") for name in beside)
    place = "tiny_random_update_shadow_reidentify_mlp_mean_average_precision"
    assert figures[place].published == 0.529


def test_the_full_size_has_every_world_and_the_quick_one_no_text() -> None:
    experiment = ReidentificationExperiment()
    assert set(experiment.plans(quick=True)) == {"wisdm_random", "wisdm_chronological"}
    assert {name.partition("_")[0] for name in experiment.plans(quick=False)} == {
        "blogs", "ages", "omniglot", "wisdm",
    }  # fmt: skip
