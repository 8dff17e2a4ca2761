from overheard_studies.deanonymization.charts import (
    TradeOffPoint,
    frontier_figure,
    undominated_arms,
)

BARE = TradeOffPoint("none", 0.8, 1.0)
GOOD = TradeOffPoint("good", 0.2, 0.9)
BAD = TradeOffPoint("bad", 0.3, 0.8)


def test_a_dominated_arm_is_left_out() -> None:
    assert undominated_arms([BARE, GOOD, BAD]) == ("none", "good")


def test_an_arm_is_judged_by_the_strongest_attacker_on_it() -> None:
    # The adaptive attacker reaches 0.9 on the good arm: more than on "none", at lower utility.
    assert undominated_arms([BARE, GOOD, BAD, TradeOffPoint("good", 0.9, 0.9)]) == (
        "none",
        "bad",
    )


def test_the_figure_names_undominated_arms_and_has_a_row_per_arm_and_attacker() -> None:
    report_figure = frontier_figure(
        "Frontier", {"shadow": [BARE, GOOD, BAD], "adaptive": [GOOD]}
    )
    assert "none, good" in report_figure.note
    assert len(report_figure.table.rows) == 4
    assert "good" in report_figure.panels[0].drawing
