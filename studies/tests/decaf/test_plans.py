from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard_studies.decaf.setting import (
    FER2013,
    MNIST,
    SKIN_CANCER,
    DecafSize,
    build_plan,
    describe_setting,
)

SIZE = DecafSize(rounds=2, seeds=(0, 1))


def test_users_and_bases_both_take_one_step_a_round() -> None:
    # The union of the auxiliary examples is 7 x 50 = 350, more than a user's 280.
    for benchmark in (MNIST, FER2013, SKIN_CANCER):
        one = build_plan(benchmark, SIZE, (Decaf(),))
        assert one.data.auxiliary_per_class is not None
        union = one.data.auxiliary_per_class * len(benchmark.label_columns)
        assert one.training.recipe.steps(one.data.sizes[1]) == 1
        assert one.training.recipe.steps(union) == 1


def test_users_hold_the_shares_of_the_table() -> None:
    one = build_plan(MNIST, SIZE, (Decaf(),))
    assert one.data.clients == 10
    assert one.data.split.compositions[8] == (0, 0, 0, 41.67, 0, 8.33, 0, 0, 0, 50)


def test_the_setting_says_what_a_quick_run_leaves_out() -> None:
    full = build_plan(MNIST, DecafSize(rounds=5, seeds=(0, 1, 2)), (Decaf(),))
    quick = build_plan(MNIST, DecafSize(rounds=5, seeds=(0,), examples=240), (Decaf(),))
    assert describe_setting(MNIST.name, full, full).endswith("seeds 0, 1, 2")
    description = describe_setting(MNIST.name, quick, full)
    assert description.endswith(
        "(changed from the full size: 1 instead of 3 seeds, "
        "240 instead of 1200 examples per user)"
    )
    assert "rounds," in description
