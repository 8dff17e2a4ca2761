from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard_studies.deanonymization.run_studies import split_rounds, stages
from overheard_studies.deanonymization.setting import IdentityScenario


def test_ranges_contain_every_round_once() -> None:
    for rounds, count in ((24, 4), (10, 4), (3, 3)):
        parts = split_rounds(rounds, count)
        assert [number for part in parts for number in part] == list(range(rounds))


@pytest.mark.slow
def test_every_pair_of_ranges_has_a_value_and_is_drawn(
    tiny: IdentityScenario, resources: Resources, tmp_path: Path
) -> None:
    experiment = stages((tiny,), (tiny,), 2)
    run = experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    by_name = {one.name: one.value for one in run}
    # Two by two pairs, the mean of the diagonal, that of the rest, and their difference.
    assert len(by_name) == 7
    cells = [by_name[f"tiny_learned_{one}_told_{two}"] for one in (1, 2) for two in (1, 2)]
    assert all(cell is not None and cell > 0.3 for cell in cells)
    assert "training rounds" in (tmp_path / "figures.html").read_text(encoding="utf-8")
