from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.linkage.multi_head_mlp import TRAINING_STEPS
from overheard_studies.deanonymization import training_steps as search
from overheard_studies.deanonymization.setting import IdentityScenario
from overheard_studies.deanonymization.training_steps import CHOSEN, choose_steps
from overheard_studies.values import load_values

STORED = Path(__file__).parents[2] / "reproduced"


def test_every_network_must_have_enough_steps() -> None:
    enough, too_few = (0.5, 0.505, 0.5), (0.5, 0.52, 0.525)
    assert choose_steps({"one": enough}) == 1000
    assert choose_steps({"one": enough, "other": too_few}) == 3000
    # None of the numbers suffices: the largest is taken.
    assert choose_steps({"one": (0.1, 0.2, 0.3)}) == 10_000


def test_the_attacks_take_the_number_that_the_search_chose() -> None:
    stored = load_values(STORED / "deanonymization-steps").values
    assert [one.value for one in stored if one.name == CHOSEN] == [TRAINING_STEPS]


@pytest.mark.slow
def test_the_choice_is_reported_beside_what_it_rests_on(
    tiny: IdentityScenario,
    resources: Resources,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "COUNTS", (10, 30, 100))
    run = search.training_steps((tiny,), tiny).run(
        tmp_path, quick=True, resources=resources, on_step=None
    )
    by_name = {one.name: one.value for one in run}
    found = {
        source: [by_name[f"tiny_{source}_{steps}"] for steps in (10, 30, 100)]
        for source in ("shadow", "simulated")
    }
    assert by_name[CHOSEN] == choose_steps(found)
