import sys
from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.supplies import Resources
from overheard.data.partition.candidates import Candidates
from overheard.papers.figure import Figure
from overheard.papers.flip.membership import ATTACKS, REDUCED_ATTACKS, MembershipExperiment
from overheard.questions.membership.attacks.lira import Lira
from overheard.questions.membership.attacks.lira_pooled import LiraPooled
from overheard.questions.membership.attacks.loss_membership import LossMembership
from overheard.questions.membership.attacks.shadow_membership import ShadowMembership
from tests.papers.flip.test_accuracy import TINY

pytestmark = pytest.mark.slow

WORLD = replace(TINY, examples=40, samples=(1,), flip_rounds=3, epochs=10, beside=())
ASKED = Candidates(members=40, outsiders=150)
RESOURCES = Resources(workers=1)
FEW = {
    "shadow": ShadowMembership(models=8, stumps=30),
    "lira": Lira(models=8),
    "lira_pooled": LiraPooled(models=8),
    "lira_offline": Lira(models=8, online=False),
    "loss": LossMembership(),
}


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Figure]:
    experiment = MembershipExperiment(WORLD, WORLD, FEW, FEW, ASKED, auxiliary=100)
    folder = tmp_path_factory.mktemp("membership")
    run = experiment.run(folder, quick=True, resources=RESOURCES, on_step=None)
    return {one.name: one for one in run}


def test_every_attack_listens_to_both_arms_in_all_rounds_and_in_each(
    figures: dict[str, Figure],
) -> None:
    # Of 150 of nobody one in a thousand cannot be told: three scores of all rounds, two rates
    # over records, and three scores of three rounds and of their mean.
    assert len(figures) == 2 * len(ATTACKS) * (3 + 2 + 3 * 4)
    for arm in ("fedavg", "flip"):
        for attack in ATTACKS:
            alone = [
                figures[f"{arm}_{attack}_membership_auc_round_{n}"].ours for n in (1, 2, 3)
            ]
            told = [value for value in alone if value is not None]
            mean = figures[f"{arm}_{attack}_membership_auc_mean_of_rounds"].ours
            assert mean == pytest.approx(sum(told) / 3)


def test_the_published_accuracy_stands_beside_the_mean_of_rounds(
    figures: dict[str, Figure],
) -> None:
    published = {name: one.published for name, one in figures.items() if one.published}
    assert published == {
        "fedavg_shadow_membership_accuracy_mean_of_rounds": 0.5914,
        "flip_shadow_membership_accuracy_mean_of_rounds": 0.4975,
    }


def test_overfitted_clients_are_found_out(figures: dict[str, Figure]) -> None:
    low = figures["fedavg_lira_membership_auc"].low
    assert low is not None
    assert low > 0.5


def test_rates_over_records_have_intervals_of_their_own(figures: dict[str, Figure]) -> None:
    over_clients = figures["fedavg_lira_tpr_at_1_percent"]
    over_records = figures["fedavg_lira_tpr_at_1_percent_by_record"]
    # Every client has as many records, so the means agree.
    assert over_records.ours == pytest.approx(over_clients.ours)
    assert over_records.low != over_clients.low


def test_the_arms_are_the_papers_two() -> None:
    for quick in (True, False):
        plan = MembershipExperiment().plans(quick=quick)["audit"]
        assert [arm.name for arm in plan.arms] == ["FedAvg", "FLiP 20"]


def test_by_full_size_the_attack_is_the_papers_own() -> None:
    assert ATTACKS.keys() == REDUCED_ATTACKS.keys()
    shadow = ATTACKS["shadow"]
    assert shadow == ShadowMembership(models=128, booster="catboost")
    plan = MembershipExperiment().plans(quick=False)["audit"]
    assert plan.threats[0].attacks == tuple(ATTACKS.values())
    assert plan.rounds_of(plan.arms[1]) == 100


def test_what_an_attack_lacks_is_told_and_the_others_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "catboost", None)
    tried = {"shadow": ShadowMembership(booster="catboost"), "loss": LossMembership()}
    experiment = MembershipExperiment(WORLD, WORLD, tried, tried, ASKED, auxiliary=100)
    run = experiment.run(tmp_path, quick=True, resources=RESOURCES, on_step=None)
    figures = {one.name: one for one in run}
    lacking = figures["fedavg_shadow_membership_accuracy"]
    assert lacking.ours is None
    assert "pip install 'overheard[membership]'" in lacking.setting
    assert figures["fedavg_loss_membership_auc"].ours is not None
