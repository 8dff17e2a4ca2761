from overheard_studies.flip.attribute import TEST_LABELS, attribute_figure
from overheard_studies.flip.attribute_tests import OTHER_START, TESTS
from overheard_studies.values import ReproducedValue


def test_every_row_has_a_chart_with_one_line_per_test() -> None:
    values = [
        ReproducedValue(
            f"row1_{test}",
            "here; there",
            None if test == OTHER_START else 0.6,
            None,
            None,
            0.5,
            "higher",
        )
        for test in TESTS
    ]
    figure = attribute_figure("Table II", {"row 1": values})
    (panel,) = figure.panels
    assert panel.heading == "row 1"
    assert all(f">{name}<" in panel.drawing for name in TEST_LABELS.values())
    # The table also has what is not drawn, such as early rounds.
    assert len(figure.table.rows) == len(TESTS)
