import pytest

from overheard_studies.whispers.setting import METHODS, PUBLISHED, is_impossible
from overheard_studies.whispers.studies import read_published_rows

ALPHAS = {
    "mnist": ("0.5", "1", "2"),
    "fashion_mnist": ("0.5", "1", "2"),
    "fer2013": ("0.5", "1", "2"),
    "ag_news": ("0.1", "0.4", "1"),
}
TABLE_2 = [("table2", name) for name in ("mnist", "fashion_mnist", "ag_news")]
TABLE_3 = [("table3", f"{name}_alpha_{a}") for name, several in ALPHAS.items() for a in several]


@pytest.mark.parametrize(("table", "scenario"), TABLE_2 + TABLE_3)
def test_every_column_has_the_four_methods_of_the_paper(table: str, scenario: str) -> None:
    assert list(read_published_rows(table, scenario)) == [one.key for one in METHODS[:4]]


def test_two_cells_of_the_tables_cannot_be_right_and_no_others() -> None:
    # MNIST, alpha 2: W 0.0041 < 0.1026 / 2. AG-News, alpha 1: W 0.0067 < 0.1067 / 2.
    impossible = {
        (scenario, method)
        for table, scenario in TABLE_2 + TABLE_3
        for method, row in read_published_rows(table, scenario).items()
        if is_impossible(row)
    }
    assert impossible == {("mnist_alpha_2", "decaf"), ("ag_news_alpha_1", "whispers")}


def test_a_wasserstein_distance_below_half_of_l1_is_impossible() -> None:
    # All of class 0 claimed as class 1: W = 1 and L1 = 2, which is just possible.
    assert not is_impossible({"wasserstein": 1.0, "l1": 2.0})
    assert is_impossible({"wasserstein": 0.9, "l1": 2.0})


def test_distances_are_in_the_order_of_the_columns() -> None:
    row = read_published_rows("table2", "mnist")["decaf"]
    assert [row[score] for score in ("wasserstein", "kl", "js", "l1")] == [
        0.0441, 0.001, 0.0003, 0.0372,
    ]  # fmt: skip


def test_accuracies_fall_with_epsilon() -> None:
    falling = [
        float(PUBLISHED.find("table4", f"epsilon_{epsilon}", "accuracy"))
        for epsilon in (40, 10, 5, 2, 1)
    ]
    assert falling == [88.55, 87.78, 85.66, 77.25, 50.46]


def test_unpublished_settings_have_no_rows() -> None:
    assert read_published_rows("table4", "no_defense") == {}
    assert read_published_rows("figure3", "mnist") == {}
    assert list(read_published_rows("table4", "epsilon_1")) == ["whispers"]
