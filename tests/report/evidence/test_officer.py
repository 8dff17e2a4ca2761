"""The officer's words are read, preferred to the plan's, and never overwritten."""

import tomllib
from pathlib import Path

from overheard.report.evidence.officer import (
    EMPTY_FILE,
    OFFICER_FILE,
    RELEASE_TITLES,
    OfficerWords,
    read_officer_words,
    release_fields,
    write_officer_file,
)


def test_the_empty_file_has_every_field_and_states_nothing(tmp_path: Path) -> None:
    write_officer_file(tmp_path)
    assert set(tomllib.loads(EMPTY_FILE)) == set(OfficerWords.model_fields)
    words = read_officer_words(tmp_path)
    assert not any(str(value).strip() for value in words.model_dump().values())


def test_a_filled_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / OFFICER_FILE
    path.write_text('residual_risk = "Low: see the minutes."\n')
    write_officer_file(tmp_path)
    assert read_officer_words(tmp_path).residual_risk == "Low: see the minutes."
    assert path.read_text() == 'residual_risk = "Low: see the minutes."\n'


def test_without_a_file_nothing_is_stated(tmp_path: Path) -> None:
    assert read_officer_words(tmp_path) == OfficerWords()


def test_the_officers_words_replace_those_of_the_plan() -> None:
    words = OfficerWords(contact="dpo@example.org", purpose=" ")
    fields = release_fields(words, {"contact": "the plan's", "purpose": "triage"})
    assert list(fields) == [*RELEASE_TITLES, "license", "author"]
    assert (fields["contact"].text, fields["contact"].stated_in) == (
        "dpo@example.org",
        OFFICER_FILE,
    )
    assert (fields["purpose"].text, fields["purpose"].stated_in) == ("triage", "the plan")
    assert fields["people"].shown_text == "To be filled in by the controller."
