from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.quantity import Quantity
from overheard_studies.whispers.setting import (
    AG_NEWS,
    MNIST,
    dirichlet_scenarios,
    few_labels_scenario,
    iid_scenario,
)


def test_dirichlet_scenarios_have_the_alphas_of_their_data_set() -> None:
    assert [one.split for one in dirichlet_scenarios(MNIST)] == [
        Dirichlet(a) for a in (0.5, 1.0, 2.0)
    ]
    assert [one.key for one in dirichlet_scenarios(AG_NEWS)] == [
        "ag_news_alpha_0.1", "ag_news_alpha_0.4", "ag_news_alpha_1",
    ]  # fmt: skip


def test_few_labels_are_three_and_two_for_texts() -> None:
    assert few_labels_scenario(MNIST).split == Quantity(3, alpha=1.0)
    assert few_labels_scenario(AG_NEWS).split == Quantity(2, alpha=1.0)


def test_a_scenario_has_its_data_sets_key_by_default() -> None:
    assert iid_scenario(MNIST).key == "mnist"
    assert iid_scenario(MNIST, "mnist_iid").key == "mnist_iid"
