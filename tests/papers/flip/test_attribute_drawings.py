from overheard.papers.figure import Figure
from overheard.papers.flip.attribute_drawings import LINES, attribute_plate
from overheard.papers.flip.attribute_tests import OTHER_START, TESTS


def test_every_row_has_a_chart_with_a_line_a_test() -> None:
    figures = [
        Figure(
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
    plate = attribute_plate("Table II", {"row 1": figures})
    (panel,) = plate.panels
    assert panel.heading == "row 1"
    assert all(f">{name}<" in panel.drawing for name in LINES.values())
    # What is not drawn, such as early rounds, stands in the table.
    assert len(plate.table.lines) == len(TESTS)
