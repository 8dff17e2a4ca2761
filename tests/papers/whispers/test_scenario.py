from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.quantity import Quantity
from overheard.papers.whispers.benchmark import AG_NEWS, MNIST
from overheard.papers.whispers.scenario import alike, few_labels, uneven


def test_dirichlet_scenarios_have_the_alphas_of_their_data_set() -> None:
    assert [one.split for one in uneven(MNIST)] == [Dirichlet(a) for a in (0.5, 1.0, 2.0)]
    assert [one.key for one in uneven(AG_NEWS)] == [
        "ag_news_alpha_0.1", "ag_news_alpha_0.4", "ag_news_alpha_1",
    ]  # fmt: skip


def test_few_labels_are_three_and_two_for_texts() -> None:
    assert few_labels(MNIST).split == Quantity(3)
    assert few_labels(AG_NEWS).split == Quantity(2)


def test_a_scenario_has_its_data_sets_key_by_default() -> None:
    assert alike(MNIST).key == "mnist"
    assert alike(MNIST, "mnist_iid").key == "mnist_iid"
