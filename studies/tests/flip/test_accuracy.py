from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.data.datasets.digits import Digits
from overheard.learning.distillation.methods.flip import Flip
from overheard.learning.models.mlp import Mlp
from overheard_studies.flip.setting import (
    PUBLISHED,
    QUICK_MNIST,
    FlipScenario,
    plain_descent_arm,
)
from overheard_studies.flip.studies import accuracy
from studies.tests.separate_arms import run_one_arm_then_all

TINY = replace(
    QUICK_MNIST,
    source=Digits(),
    model=Mlp(hidden=(16,)),
    examples=150,
    rounds=3,
    flip=Flip(batch=50, halve_every=0, first_rate=0.1, rate_rate=0.01),
    flip_rounds=20,
    samples=(2,),
    seeds=(0,),
    extra_arms=(plain_descent_arm(2, 10),),
)


@pytest.fixture(scope="module")
def tiny() -> FlipScenario:
    return TINY


def test_the_table_is_as_published() -> None:
    assert PUBLISHED.number("mnist", "conv_net", "fedavg", scale=100.0) == pytest.approx(0.9932)
    assert PUBLISHED.number("cifar10", "alexnet", "15") == 70.48
    assert PUBLISHED.number("mnist", "mlp", "10") is None


@pytest.mark.slow
def test_every_arm_has_an_accuracy_after_its_own_rounds(
    tiny: FlipScenario, tmp_path: Path
) -> None:
    experiment = accuracy(scenarios=(tiny,), reduced=(tiny,))
    values = {
        one.name: one
        for one in run_one_arm_then_all(
            experiment, "plain descent", tmp_path, Resources(workers=1)
        )
    }
    assert list(values) == [
        "mnist_fedavg_accuracy",
        "mnist_2_accuracy",
        "mnist_2_of_fedavg",
        "mnist_plain_descent_accuracy",
        "mnist_plain_descent_of_fedavg",
    ]
    flip, fedavg = values["mnist_2_accuracy"].value, values["mnist_fedavg_accuracy"].value
    assert values["mnist_2_of_fedavg"].value == pytest.approx(flip / fedavg)
    assert values["mnist_fedavg_accuracy"].setting.endswith("after 3 rounds")
    assert values["mnist_2_accuracy"].setting.endswith("after 20 rounds")
    # Ten digits: a guess has 0.1.
    assert fedavg > 0.3
    assert flip > 0.3
    assert all(figure.published is None for figure in values.values())


def test_differences_are_described_and_a_full_run_has_more_data_sets() -> None:
    experiment = accuracy()
    assert "inferred" in experiment.differences
    assert set(experiment.plans(quick=False)) == {"mnist", "cifar10"}
    (quick,) = experiment.plans(quick=True).values()
    assert [arm.name for arm in quick.arms] == ["FedAvg", "FLiP 10", "plain descent"]
    assert len(quick.seeds) == 3
