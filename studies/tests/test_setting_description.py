from overheard_studies.setting_description import describe_setting
from overheard_studies.whispers.setting import AG_NEWS, MNIST, build_plan, iid_scenario

FULL = build_plan(iid_scenario(MNIST), MNIST.full, quick=False)
QUICK = build_plan(iid_scenario(MNIST), MNIST.reduced, quick=True)


def test_the_setting_of_a_full_run_has_no_reductions() -> None:
    assert describe_setting("MNIST", FULL, FULL) == (
        "MNIST, 6 clients of 3000 to 5000 examples, 2000 auxiliary examples per class, "
        "10 rounds, seeds 0, 1, 2, 3, 4"
    )


def test_the_setting_of_a_quick_run_lists_every_reduction() -> None:
    description = describe_setting("MNIST", QUICK, FULL)
    for reduction in (
        "1 instead of 5 seeds",
        "3 instead of 10 rounds",
        "300 to 500 instead of 3000 to 5000 examples per client",
        "100 instead of 2000 auxiliary examples per class",
        "240 instead of 1200 virtual clients",
    ):
        assert reduction in description
    assert "clients of" in description
    assert "6 instead of 6" not in description


def test_the_setting_names_a_reduced_source() -> None:
    full, quick = (build_plan(iid_scenario(AG_NEWS), one, quick=False) for one in AG_NEWS.sizes)
    description = describe_setting("AG-News", quick, full)
    assert "ag_news(vocabulary=5000) instead of ag_news" in description


def test_participants_have_the_papers_name() -> None:
    description = describe_setting("MNIST", QUICK, FULL, word="users")
    assert "6 users of 300 to 500 examples" in description
    assert "examples per user" in description


def test_the_setting_gives_auxiliary_examples_and_another_rate() -> None:
    data = FULL.data.model_copy(update={"auxiliary_per_class": None, "auxiliary": 500})
    training = FULL.training.model_copy(update={"rate": 0.5})
    other = FULL.model_copy(update={"data": data, "training": training})
    description = describe_setting("MNIST", other, FULL)
    assert ", 500 auxiliary examples, 10 rounds" in description
    assert "rate 0.5 instead of 0.01" in description


def test_one_client_is_singular() -> None:
    alone = FULL.model_copy(update={"data": FULL.data.model_copy(update={"clients": 1})})
    assert describe_setting("MNIST", alone, alone).startswith("MNIST, 1 client of 3000 to 5000")
