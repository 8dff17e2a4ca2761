import pytest

from overheard_studies.whispers.methods import METHODS
from overheard_studies.whispers.published_rows import (
    PublishedRow,
    published_accuracy,
    read_published_rows,
)

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
        if row.is_impossible
    }
    assert impossible == {("mnist_alpha_2", "decaf"), ("ag_news_alpha_1", "whispers")}


def test_a_wasserstein_distance_below_half_of_l1_is_impossible() -> None:
    # All of class 0 claimed as class 1: W = 1 and L1 = 2, which is just possible.
    assert not PublishedRow((1.0, 0.0, 0.0, 2.0)).is_impossible
    assert PublishedRow((0.9, 0.0, 0.0, 2.0)).is_impossible


def test_refuses_a_row_without_all_four_distances() -> None:
    with pytest.raises(ValueError, match="4 distances"):
        PublishedRow((0.1, 0.2, 0.3))


def test_distances_are_in_the_order_of_the_columns() -> None:
    row = read_published_rows("table2", "mnist")["decaf"]
    assert [row.distance(score) for score in ("wasserstein", "kl", "js", "l1")] == [
        0.0441, 0.001, 0.0003, 0.0372,
    ]  # fmt: skip


def test_accuracies_are_fractions_and_fall_with_epsilon() -> None:
    falling = [published_accuracy(f"epsilon_{epsilon}") for epsilon in (40, 10, 5, 2, 1)]
    assert falling == pytest.approx([0.8855, 0.8778, 0.8566, 0.7725, 0.5046])
    assert published_accuracy("no_defense") is None


def test_unpublished_settings_have_no_rows() -> None:
    assert read_published_rows("table4", "no_defense") == {}
    assert read_published_rows("figure3", "mnist") == {}
    assert list(read_published_rows("table4", "epsilon_1")) == ["whispers"]
