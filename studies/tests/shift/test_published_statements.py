from overheard_studies.library.shift import ShiftPaper
from overheard_studies.shift.published_statements import read_statements


def test_every_statement_gives_its_section_or_caption() -> None:
    for name in ShiftPaper().experiments():
        assert read_statements(name)
        for statement in read_statements(name).values():
            assert statement.endswith(")")
            assert "section" in statement or "caption" in statement
