"""The plan of an audit that asks for nothing."""

from overheard.data.datasets.digits import Digits
from overheard.plans.built_in import built_in_plan


def test_needs_no_download_and_holds_defenses_against_none():
    plan = built_in_plan()
    assert plan.data.source == Digits()
    assert plan.arms[0].defenses == ()
    assert all(arm.defenses for arm in plan.arms[1:])
    assert len(plan.arms) >= 3


def test_is_small_enough_for_a_minute_and_large_enough_for_an_interval():
    plan = built_in_plan()
    work = len(plan.seeds) * len(plan.arms) * plan.training.rounds * plan.data.clients
    assert work <= 2000  # local trainings of a small net on 100 images: some 5 ms each
    assert len(plan.seeds) >= 2


def test_its_clients_and_attackers_find_enough_digits():
    plan = built_in_plan()
    assert plan.data.auxiliary_per_class is not None
    assert plan.data.clients * plan.data.sizes[1] + 10 * plan.data.auxiliary_per_class <= 1497
