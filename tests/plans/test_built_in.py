"""The default plan."""

from overheard.data.datasets.digits import Digits
from overheard.plans.built_in import built_in_plan


def test_needs_no_download_and_has_undefended_and_defended_arms():
    plan = built_in_plan()
    assert plan.data.source == Digits()
    assert plan.arms[0].defenses == ()
    assert all(arm.defenses for arm in plan.arms[1:])
    assert len(plan.arms) >= 3


def test_is_fast_and_has_two_seeds_or_more():
    plan = built_in_plan()
    jobs = len(plan.seeds) * len(plan.arms) * plan.training.rounds * plan.data.clients
    assert jobs <= 2000  # local trainings of a small network on 100 images: some 5 ms each
    assert len(plan.seeds) >= 2


def test_the_data_set_is_large_enough():
    plan = built_in_plan()
    assert plan.data.auxiliary_per_class is not None
    assert plan.data.clients * plan.data.sizes[1] + 10 * plan.data.auxiliary_per_class <= 1497
