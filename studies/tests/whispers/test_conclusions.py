import pytest

from overheard.core.parties import client
from overheard_studies.whispers.conclusions import (
    FAR_BELOW,
    NEGLIGIBLE,
    difference,
    excess,
    farther_rivals,
)
from overheard_studies.whispers.setting import DISTANCES, METHODS
from overheard_studies.whispers.studies import PAPER, read_published_rows

FIVE_RUNS = {(seed, client(0)): 0.1 * seed for seed in range(5)}


def test_distances_are_compared_client_by_client_over_runs() -> None:
    # The differences are 0.5 in all runs, which leaves no width, whatever the runs' means are.
    others = {key: one - 0.5 for key, one in FIVE_RUNS.items()} | {(5, client(0)): 9.0}
    lead = difference(FIVE_RUNS, others)
    assert lead is not None
    assert (lead.mean, lead.low, lead.high) == pytest.approx((0.5, 0.5, 0.5))
    assert lead.basis == "runs"


def test_what_was_not_run_has_no_difference() -> None:
    assert difference(FIVE_RUNS, {}) is None
    assert excess({}, 0.1) is None


def test_each_column_of_table_3_is_concluded_alone() -> None:
    table = PAPER.studies()["table3"]
    columns = {one.key for one in table.panels}
    for begin in ("closest", "as_close", "tells_more_than_uniform"):
        alone = [one for one in table.conclusions if one.key.startswith(begin)]
        assert {one.audits for one in alone} == {(column,) for column in columns}


def keys_of_rivals(table: str, scenario: str) -> tuple[list[str], list[str]]:
    rivals, scores = farther_rivals(METHODS, read_published_rows(table, scenario), DISTANCES)
    return [one.key for one in rivals], scores


def test_no_conclusion_is_refuted_by_the_papers_own_tables() -> None:
    studies, l1 = PAPER.studies(), dict[str, dict[str, float]]()
    for panel in studies["table2"].panels:
        # Dai et al. are closer on MNIST and AG-News, and by KL on Fashion-MNIST.
        assert keys_of_rivals("table2", panel.key) == (["ramakrishna", "ppa"], [*DISTANCES])
    for panel in studies["table3"].panels:
        rivals, scores = keys_of_rivals("table3", panel.key)
        assert rivals == ["decaf", "ramakrishna", "ppa"]
        is_wrong = panel.key in ("mnist_alpha_2", "ag_news_alpha_1")
        assert scores == [*DISTANCES][is_wrong:]
        rows = read_published_rows("table3", panel.key)
        l1[panel.key] = {method: row["l1"] for method, row in rows.items()}
    stated = {one.key: one for one in studies["table3"].conclusions}
    for panel, of_panel in l1.items():
        # No share of the largest is near the margin where the conclusion is stated.
        share = of_panel["whispers"] / max(of_panel.values())
        assert (f"order_of_magnitude_{panel}" in stated) == (share < FAR_BELOW / 2)
        assert ("ag_news" in panel) == (share >= FAR_BELOW / 2)
    for key, one in stated.items():
        if key.startswith(("uneven_is_harder", "withstands_unevenness")):
            uneven, even = (l1[panel] for panel in one.audits)
            assert uneven["ramakrishna"] > even["ramakrishna"]
            assert uneven["whispers"] - even["whispers"] < NEGLIGIBLE / 2
    # Of the others some do better where shares are more uneven.
    for method in ("decaf", "ppa", "whispers"):
        assert any(
            l1[f"{data}_{ends[0]}"][method] < l1[f"{data}_{ends[1]}"][method]
            for data, ends in {
                "mnist": ("alpha_0.5", "alpha_2"),
                "ag_news": ("alpha_0.1", "alpha_1"),
            }.items()
        )


def test_what_a_figure_shows_is_concluded_once() -> None:
    # Figures 3 and 5 have the audits of Tables 2 and 3.
    studies = PAPER.studies()
    for figure, table in (("figure3", "table2"), ("figure5", "table3")):
        assert studies[figure].plans(quick=False) == studies[table].plans(quick=False)
        assert studies[figure].conclusions == ()
    assert len(studies["figure4"].conclusions) == 4
