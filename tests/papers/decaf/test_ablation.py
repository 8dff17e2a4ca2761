from pathlib import Path

import pytest

from overheard.auditing.supplies import Resources
from overheard.papers.decaf.ablation import AblationExperiment
from overheard.papers.decaf.benchmark import DecafBenchmark
from overheard.papers.decaf.plans import DecafSize
from overheard.questions.label_shares.attacks.decaf import Decaf


@pytest.mark.slow
def test_the_maimed_attack_stands_beside_the_whole_one(
    tiny_benchmark: DecafBenchmark, tiny_size: DecafSize, tmp_path: Path
) -> None:
    experiment = AblationExperiment(
        "figure9",
        "null removal",
        Decaf(null_removal=False),
        "table14",
        tiny_benchmark,
        reduced=tiny_size,
    )
    run = experiment.run(
        tmp_path, quick=True, resources=Resources(engine="sequential"), on_step=None
    )
    figures = {one.name: one for one in run}
    # Table XIV, user 10: all in one class, of which 63.48 % were found: 36.52 + 36.52 (of
    # which the classes claimed beside it sum to 36.52) = 73.04 per cent.
    assert figures["l1_user_10"].published == pytest.approx(0.7304, abs=1e-3)
    # A user of one class is found out by the null classes alone.
    assert figures["mean_l1"].ours > figures["whole_mean_l1"].ours
    assert figures["whole_mean_l1"].published == pytest.approx(0.1849, abs=1e-4)
