import sys
from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.data.partition.candidates import CandidateSettings
from overheard.questions.membership.attacks.lira import Lira, LiraPooled
from overheard.questions.membership.attacks.loss_membership import LossMembership
from overheard.questions.membership.attacks.shadow_membership import ShadowMembership
from overheard_studies.flip.studies import (
    MEMBERSHIP_ATTACKS,
    MEMBERSHIP_CONCLUSIONS,
    membership,
)
from overheard_studies.runs import StudyRuns
from overheard_studies.values import ReproducedValue
from studies.tests.flip.test_accuracy import TINY

ATTACKS, REDUCED_ATTACKS = MEMBERSHIP_ATTACKS

pytestmark = pytest.mark.slow

SCENARIO = replace(TINY, examples=40, samples=(1,), flip_rounds=3, epochs=10, extra_arms=())
CANDIDATES = CandidateSettings(members=40, outsiders=150)
RESOURCES = Resources(workers=1)
FEW_MODELS = {
    "shadow": ShadowMembership(models=8, stumps=30),
    "lira": Lira(models=8),
    "lira_pooled": LiraPooled(models=8),
    "lira_offline": Lira(models=8, online=False),
    "loss": LossMembership(),
}


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ReproducedValue]:
    experiment = membership(
        (SCENARIO, SCENARIO), (FEW_MODELS, FEW_MODELS), CANDIDATES, auxiliary=100
    )
    folder = tmp_path_factory.mktemp("membership")
    run = experiment.run(folder, quick=True, resources=RESOURCES, on_step=None)
    return {one.name: one for one in run}


@pytest.fixture
def scores(values: dict[str, ReproducedValue]) -> dict[str, ReproducedValue]:
    return {name: one for name, one in values.items() if not name.startswith("reading_")}


def test_every_attack_is_scored_in_both_arms_over_all_rounds_and_per_round(
    scores: dict[str, ReproducedValue],
) -> None:
    # 150 non-members do not allow a rate of 0.001: three scores over all rounds, two rates
    # over records, and three scores for each of three rounds and for their mean.
    assert len(scores) == 2 * len(ATTACKS) * (3 + 2 + 3 * 4)
    for arm in ("fedavg", "flip"):
        for attack in ATTACKS:
            alone = [
                scores[f"{arm}_{attack}_membership_auc_round_{n}"].value for n in (1, 2, 3)
            ]
            known = [value for value in alone if value is not None]
            mean = scores[f"{arm}_{attack}_membership_auc_mean_of_rounds"].value
            assert mean == pytest.approx(sum(known) / 3)


def test_only_the_mean_of_rounds_has_a_published_accuracy(
    scores: dict[str, ReproducedValue],
) -> None:
    published = {name: one.published for name, one in scores.items() if one.published}
    assert published == {
        "fedavg_shadow_membership_accuracy_mean_of_rounds": 0.5914,
        "flip_shadow_membership_accuracy_mean_of_rounds": 0.4975,
    }


def test_each_conclusion_reads_values_that_are_measured(
    values: dict[str, ReproducedValue], tmp_path: Path
) -> None:
    runs = StudyRuns({}, {}, tmp_path)
    read = [
        one.statistics(runs, tuple(values.values())) if one.statistics else {}
        for one in MEMBERSHIP_CONCLUSIONS
    ]
    assert [len(one) for one in read] == [1, 1, 3]
    assert all(estimate is not None for one in read for estimate in one.values())


def test_members_of_overfitted_clients_are_detected(values: dict[str, ReproducedValue]) -> None:
    low = values["fedavg_lira_membership_auc"].low
    assert low is not None
    assert low > 0.5


def test_rates_over_records_have_their_own_intervals(
    values: dict[str, ReproducedValue],
) -> None:
    over_clients = values["fedavg_lira_tpr_at_1_percent"]
    over_records = values["fedavg_lira_tpr_at_1_percent_by_record"]
    # Every client has as many records, so the means agree.
    assert over_records.value == pytest.approx(over_clients.value)
    assert over_records.low != over_clients.low


def test_the_arms_are_the_papers_two() -> None:
    for quick in (True, False):
        plan = membership().plans(quick=quick)["audit"]
        assert [arm.name for arm in plan.arms] == ["FedAvg", "FLiP 20"]


def test_a_full_run_has_the_papers_attack() -> None:
    assert ATTACKS.keys() == REDUCED_ATTACKS.keys()
    shadow = ATTACKS["shadow"]
    assert shadow == ShadowMembership(models=128, booster="catboost")
    plan = membership().plans(quick=False)["audit"]
    assert plan.threats[0].attacks == tuple(ATTACKS.values())
    assert plan.rounds_of(plan.arms[1]) == 100


def test_a_missing_extra_is_reported_and_other_attacks_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "catboost", None)
    attacks = {"shadow": ShadowMembership(booster="catboost"), "loss": LossMembership()}
    experiment = membership((SCENARIO, SCENARIO), (attacks, attacks), CANDIDATES, auxiliary=100)
    run = experiment.run(tmp_path, quick=True, resources=RESOURCES, on_step=None)
    values = {one.name: one for one in run}
    unmeasured = values["fedavg_shadow_membership_accuracy"]
    assert unmeasured.value is None
    assert "pip install '.[membership]'" in unmeasured.setting
    assert values["fedavg_loss_membership_auc"].value is not None
