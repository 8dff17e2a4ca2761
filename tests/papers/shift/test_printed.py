from overheard.papers.library.shift import ShiftPaper
from overheard.papers.shift.printed import sentences


def test_every_figure_has_sentences_that_say_where_they_stand() -> None:
    for name in ShiftPaper().experiments():
        assert sentences(name)
        for says in sentences(name).values():
            assert says.endswith(")")
            assert "section" in says or "caption" in says
