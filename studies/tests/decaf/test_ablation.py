from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard_studies.decaf.setting import DecafBenchmark, DecafSize
from overheard_studies.decaf.studies import ablation


@pytest.mark.slow
def test_the_ablated_attack_is_compared_with_the_whole_one(
    tiny_benchmark: DecafBenchmark, tiny_size: DecafSize, tmp_path: Path
) -> None:
    experiment = ablation(
        "figure9",
        "null removal",
        Decaf(bases="published", null_removal=False),
        "table14",
        tiny_benchmark,
        sizes=(tiny_size, tiny_size),
    )
    run = experiment.run(
        tmp_path, quick=True, resources=Resources(engine="sequential"), on_step=None
    )
    values = {one.name: one for one in run}
    # Table XIV, user 10: all in one class, with a claim of 63.48 %: 36.52 + 36.52 (of
    # which the other claimed classes sum to 36.52) = 73.04 percent.
    assert values["l1_user_10"].published == pytest.approx(0.7304, abs=1e-3)
    # The null classes alone reveal the class of a user with one class.
    assert values["mean_l1"].value > values["whole_mean_l1"].value
    assert values["whole_mean_l1"].published == pytest.approx(0.1849, abs=1e-4)
