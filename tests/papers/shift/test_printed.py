from overheard.papers.library.shift import ShiftPaper
from overheard.papers.shift.printed import sentences


def test_every_statement_gives_its_section_or_caption() -> None:
    for name in ShiftPaper().experiments():
        assert sentences(name)
        for statement in sentences(name).values():
            assert statement.endswith(")")
            assert "section" in statement or "caption" in statement
