"""The terms of the project: each once, in alphabetical order."""

from overheard.report.terms import read_terms


def test_terms_are_unique_and_in_order() -> None:
    names = [term.name.lower() for term in read_terms()]
    assert len(names) > 50
    assert names == sorted(set(names))
