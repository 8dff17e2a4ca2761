from overheard.papers.setting import setting
from overheard.papers.whispers.benchmark import MNIST
from overheard.papers.whispers.plans import plan
from overheard.papers.whispers.scenario import alike

FULL = plan(alike(MNIST), MNIST.full, quick=False)
QUICK = plan(alike(MNIST), MNIST.reduced, quick=True)


def test_a_full_run_is_told_without_cuts() -> None:
    assert setting("MNIST", FULL, FULL) == (
        "MNIST, 8 clients of 3000 to 5000 examples, 1000 auxiliary examples a class, "
        "10 rounds, seeds 0, 1, 2"
    )


def test_every_cut_of_a_quick_run_is_told() -> None:
    told = setting("MNIST", QUICK, FULL)
    for cut in (
        "1 of 3 seeds",
        "3 of 10 rounds",
        "300 to 500 of 3000 to 5000 examples a client",
        "100 of 1000 auxiliary examples a class",
        "240 of 1200 virtual clients",
        "mnist(shrink=2) in place of mnist",
    ):
        assert cut in told
    assert "clients of" in told
    assert "8 of 8" not in told


def test_those_who_take_part_are_called_as_in_the_paper() -> None:
    told = setting("MNIST", QUICK, FULL, people="users")
    assert "8 users of 300 to 500 examples" in told
    assert "examples a user" in told


def test_examples_of_the_population_and_another_rate_are_told() -> None:
    data = FULL.data.model_copy(update={"auxiliary_per_class": None, "auxiliary": 500})
    training = FULL.training.model_copy(update={"rate": 0.5})
    other = FULL.model_copy(update={"data": data, "training": training})
    told = setting("MNIST", other, FULL)
    assert ", 500 auxiliary examples, 10 rounds" in told
    assert "rate 0.5 in place of 0.01" in told


def test_one_client_alone_is_not_several() -> None:
    alone = FULL.model_copy(update={"data": FULL.data.model_copy(update={"clients": 1})})
    assert setting("MNIST", alone, alone).startswith("MNIST, 1 client of 3000 to 5000")
