from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard_studies.whispers.setting import WhispersBenchmark
from overheard_studies.whispers.studies import sizes


@pytest.mark.slow
def test_updates_of_larger_clients_are_longer(tiny: WhispersBenchmark, tmp_path: Path) -> None:
    size = replace(tiny.reduced, clients=2, rounds=1, batch=64, virtual=8)
    experiment = sizes(replace(tiny, full=size, reduced=size), (300, 30))
    run = experiment.run(
        tmp_path, quick=True, resources=Resources(engine="sequential", workers=1), on_step=None
    )
    values = {one.name: one for one in run}
    # 5 steps against 1 from the same first weights.
    assert values["size_300_norm_round_1"].value > 2 * values["size_30_norm_round_1"].value
    # Only sizes of 500 x 2^k are possible: at best 250, with a score of log2(300 / 250) = 0.26.
    assert values["size_300_doubling_size_factor"].value > 0.2
    # Ten similar virtual clients of each size: closer than a factor of 2.
    assert values["size_300_bisection_size_factor"].value < 1


def test_the_attacker_does_not_know_the_size() -> None:
    for plan in sizes().plans(quick=False).values():
        (threat,) = plan.threats
        assert threat.virtual.examples == (100, 4000)
        assert {attack.size for attack in threat.attacks} == {"doubling", "bisection"}
