from dataclasses import replace

import pytest

from overheard.auditing.inputs import Resources
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.label_shares.attacks.ramakrishna import Ramakrishna
from overheard_studies.decaf.setting import DecafBenchmark, DecafSize, build_plan
from overheard_studies.protocol import protocol
from overheard_studies.values import ReproducedValue

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def values(
    tiny_benchmark: DecafBenchmark,
    tiny_size: DecafSize,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, ReproducedValue]:
    attacks = (MeanSoftmax(), Ramakrishna(form="auxiliary_gradient"))
    one = build_plan(tiny_benchmark, tiny_size, attacks)
    experiment = protocol("ppa", "top1", "", ("top1", "top3"), "higher")
    (panel,) = [each for each in experiment.panels if each.key == "mnist"]
    experiment = replace(experiment, panels=(replace(panel, plan=lambda quick: one),))
    run = experiment.run(
        tmp_path_factory.mktemp("top1"),
        quick=True,
        resources=Resources(engine="sequential"),
        on_step=None,
    )
    assert len({one.name for one in run}) == len(run)
    return {one.name: one for one in run}


def test_each_attack_has_values_over_all_rounds_and_per_round(
    values: dict[str, ReproducedValue],
) -> None:
    # 2 attacks, 2 scores, 2 rounds and both together; and 2 scores of the guess; 2 conclusions.
    assert len(values) == 16
    assert {
        "mnist_attack_1_mean_softmax_top1_all_rounds",
        "mnist_attack_2_ramakrishna_top3_round_2",
    } <= values.keys()


def test_only_the_first_attack_has_a_published_value(
    values: dict[str, ReproducedValue],
) -> None:
    published = {
        name: one.published
        for name, one in values.items()
        if one.published is not None and not name.startswith("reading_")
    }
    assert published == {"mnist_attack_1_mean_softmax_top1_all_rounds": 0.9}


def test_the_uninformed_guess_names_the_largest_of_ten_classes_by_chance(
    values: dict[str, ReproducedValue],
) -> None:
    # 1/10 if one class is the largest; users 1 and 10 have several, which is easier.
    assert 0.1 <= values["mnist_uniform_top1"].value < 0.3
