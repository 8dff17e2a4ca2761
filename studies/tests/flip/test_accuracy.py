from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.data.datasets.digits import Digits
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmRun
from overheard.learning.distillation.methods.flip import Flip
from overheard.learning.models.mlp import Mlp
from overheard.plans.plan import ArmPlan
from overheard_studies.flip.setting import OWN_RATES, PUBLISHED, QUICK_MNIST, FlipScenario
from overheard_studies.flip.studies import accuracies, accuracy
from overheard_studies.runs import StudyRuns
from studies.tests.separate_arms import run_one_arm_then_all

DISTILLATION = Flip(batch=50, halve_every=0, first_rate=0.1, rate_rate=0.01)

TINY = replace(
    QUICK_MNIST,
    source=Digits(),
    model=Mlp(hidden=(16,)),
    examples=150,
    rounds=3,
    flip=DISTILLATION,
    flip_rounds=20,
    samples=(2,),
    seeds=(0,),
    extra_arms=(ArmPlan(name=OWN_RATES, distillation=DISTILLATION, rounds=2),),
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
    experiment = accuracy("table1", "MLP, digits", tiny, tiny)
    values = {
        one.name: one
        for one in run_one_arm_then_all(experiment, OWN_RATES, tmp_path, Resources(workers=1))
        if not one.name.startswith("reading_")
    }
    assert list(values) == [
        "mnist_fedavg_accuracy",
        "mnist_2_accuracy",
        "mnist_2_of_fedavg",
        "mnist_rates_of_this_project_accuracy",
        "mnist_rates_of_this_project_of_fedavg",
    ]
    flip, fedavg = values["mnist_2_accuracy"].value, values["mnist_fedavg_accuracy"].value
    assert values["mnist_2_of_fedavg"].value == pytest.approx(flip / fedavg)
    assert values["mnist_fedavg_accuracy"].setting.endswith("after 3 rounds")
    assert values["mnist_2_accuracy"].setting.endswith("after 20 rounds")
    # Ten digits: a guess has 0.1.
    assert fedavg > 0.3
    assert flip > 0.3
    assert all(figure.published is None for figure in values.values())


def test_the_parts_of_the_table_are_separate_studies_of_five_runs() -> None:
    parts = {one.name: one for one in accuracies()}
    networks = {}
    for name, part in parts.items():
        assert "public code" in part.differences
        (plan,) = part.plans(quick=False).values()
        assert len(plan.seeds) == 5
        networks[name] = plan.training.model.name
        (quick,) = part.plans(quick=True).values()
        assert [arm.name for arm in quick.arms if arm.name != OWN_RATES] == [
            "FedAvg",
            "FLiP 10",
        ]
    assert networks == {
        "table1": "conv_net",
        "table1_cifar10": "conv_net",
        "table1_tiny_resnet": "tiny_resnet",
        "table1_alexnet": "alexnet",
    }


def test_gaps_are_those_of_the_same_seed() -> None:
    # FedAvg varies much more between seeds than FLiP lags behind it: by 1.98, 0.98 and 0 points
    # on average. The published gaps are 0.26, 0.13 and 0.13 points.
    study, fedavg = accuracies()[0], (0.9, 0.8, 0.95, 0.85, 0.99)
    lags = {"FedAvg": 0.0, "FLiP 10": 0.02, "FLiP 15": 0.01, "FLiP 20": 0.0}
    arms = tuple(
        ArmRun(arm, seed, (), {0: 0.1, 5: value - lag + 0.0001 * seed * (lag > 0)}, 0, 5)
        for arm, lag in lags.items()
        for seed, value in enumerate(fedavg)
    )
    audit = Audit("", "", ("0", "1"), arms, (), (), "", {})
    runs = StudyRuns({"mnist": audit}, study.plans(quick=False), Path())
    close, gap, samples = study.conclude(runs, ())
    assert (close.holds, gap.holds, samples.holds) == ("yes", "no", "yes")
    verdicts = gap.evidence.partition("yes: ")[2]
    assert verdicts.startswith("15 samples 0.0085 ")
    assert "no: 10 samples 0.017" in verdicts
    without = replace(audit, arms=tuple(run for run in arms if run.arm != "FLiP 20"))
    close, _, samples = study.conclude(replace(runs, audits={"mnist": without}), ())
    assert (close.holds, samples.holds) == ("undecided", "undecided")
