from overheard_studies.shift.paper import PAPER


def test_every_statement_gives_its_section_or_caption() -> None:
    for study in PAPER.studies().values():
        assert study.conclusions
        for one in study.conclusions:
            assert one.statement.endswith(")")
            assert "section" in one.statement or "caption" in one.statement
