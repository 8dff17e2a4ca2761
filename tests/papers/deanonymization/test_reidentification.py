from dataclasses import replace

import pytest

from overheard.auditing.supplies import Resources
from overheard.papers.deanonymization.reidentification import (
    ReidentificationExperiment,
    TablePanel,
)
from overheard.papers.deanonymization.world import IdentityScenario
from overheard.papers.figure import Figure

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def figures(
    tiny: IdentityScenario, resources: Resources, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Figure]:
    panels = (TablePanel(replace(tiny, paper="blog"), ("random",)),)
    experiment = ReidentificationExperiment(panels, panels)
    folder = tmp_path_factory.mktemp("table3")
    told = experiment.run(folder, quick=True, resources=resources, on_step=None)
    figures = {one.name: one for one in told}
    assert len(figures) == len(told)
    return figures


@pytest.mark.parametrize("attack", ["reidentify_svm", "reidentify_wccn"])
@pytest.mark.parametrize("source", ["shadow", "simulated"])
def test_both_sources_tell_users_apart_and_the_control_nobody(
    figures: dict[str, Figure], source: str, attack: str
) -> None:
    name = f"tiny_random_update_{source}_{attack}"
    told = figures[f"{name}_mean_average_precision"].ours
    chance, control = figures[f"{name}_chance"].ours, figures[f"{name}_iid_control"].ours
    assert told is not None
    assert chance is not None
    assert control is not None
    assert told > 0.6 > 2.5 * chance
    assert control < 0.4


def test_published_numbers_stand_beside_shadow_devices_and_single_updates_alone(
    figures: dict[str, Figure],
) -> None:
    beside = {name for name, one in figures.items() if one.published is not None}
    # Three attacks by four scores; none is of ours.
    assert len(beside) == 12
    assert all(name.startswith("tiny_random_update_shadow_") for name in beside)
    place = "tiny_random_update_shadow_reidentify_mlp_mean_average_precision"
    assert figures[place].published == 0.529


def test_the_full_size_has_every_world_and_the_quick_one_no_text() -> None:
    experiment = ReidentificationExperiment()
    assert set(experiment.plans(quick=True)) == {"wisdm_random", "wisdm_chronological"}
    assert {name.partition("_")[0] for name in experiment.plans(quick=False)} == {
        "blogs", "ages", "wisdm",
    }  # fmt: skip
