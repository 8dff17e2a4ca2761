from dataclasses import replace

import pytest

from overheard.auditing.inputs import Resources
from overheard_studies.deanonymization.setting import IdentityScenario
from overheard_studies.deanonymization.studies import Varied, reidentification
from overheard_studies.values import ReproducedValue

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def values(
    tiny: IdentityScenario, resources: Resources, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, ReproducedValue]:
    panels = (Varied(replace(tiny, paper="blog"), ("random",)),)
    experiment = reidentification(panels, panels)
    folder = tmp_path_factory.mktemp("table3")
    run = experiment.run(folder, quick=True, resources=resources, on_step=None)
    values = {one.name: one for one in run}
    assert len(values) == len(run)
    return values


@pytest.mark.parametrize(
    "attack", ["reidentify_svm", "reidentify_wccn", "reidentify_wccn_unlinked"]
)
@pytest.mark.parametrize("source", ["shadow", "simulated"])
def test_both_sources_identify_users_and_the_control_does_not(
    values: dict[str, ReproducedValue], source: str, attack: str
) -> None:
    name = f"tiny_random_update_{source}_{attack}"
    precision = values[f"{name}_mean_average_precision"].value
    chance, control = values[f"{name}_chance"].value, values[f"{name}_iid_control"].value
    assert precision is not None
    assert chance is not None
    assert control is not None
    assert precision > 0.6 > 2.5 * chance
    assert control < 0.4


def test_only_single_updates_with_shadow_devices_have_published_values(
    values: dict[str, ReproducedValue],
) -> None:
    published = {name for name, one in values.items() if one.published is not None}
    # Three attacks by four scores; Overheard's has none.
    assert len(published) == 12
    assert all(name.startswith("tiny_random_update_shadow_") for name in published)
    name = "tiny_random_update_shadow_reidentify_mlp_mean_average_precision"
    assert values[name].published == 0.529


def test_quick_and_full_runs_have_every_scenario() -> None:
    experiment = reidentification()
    for quick in (True, False):
        assert {name.partition("_")[0] for name in experiment.plans(quick=quick)} == {
            "blogs", "ages", "wisdm",
        }  # fmt: skip
