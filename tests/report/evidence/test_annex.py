"""The annex has every part that a data-protection file needs, and invents nothing."""

from dataclasses import replace
from pathlib import Path

from overheard.findings.audit import Audit
from overheard.findings.document import read_findings
from overheard.report.evidence.annex import make_annex
from overheard.report.evidence.digests import CheckedFile, CheckedFolder, check_folder
from overheard.report.evidence.officer import OfficerWords
from overheard.report.write import write_report
from tests.report.evidence.annexes import annex_of, read, section_of, text_of


def test_states_what_is_known_and_who_has_to_state_the_rest() -> None:
    words = OfficerWords(license="Internal use.", author="A. Person")
    text = section_of(annex_of(words), "Context of the release")
    assert "Use of this annex | Internal use. | officer.toml" in text
    assert "Author of the statements | A. Person | officer.toml" in text
    assert "Recorded or simulated | a recorded run" in text
    assert "Day of the audit | 2026-11-21" in text
    assert "Contact | dpo@example.org | the plan" in text
    assert "Whose data | To be filled in by the controller. | –" in text
    assert "simulated: they show" not in text
    assert "Some statements are open." in text
    stated = dict.fromkeys(OfficerWords.model_fields, "x")
    assert "are open" not in section_of(
        annex_of(OfficerWords(**stated)), "Context of the release"
    )


def test_the_officers_words_are_printed_as_paragraphs() -> None:
    words = OfficerWords(residual_risk="Low,\nas decided.\n\nSee the <b>minutes</b>.")
    annex = annex_of(words)
    (block,) = next(one for one in annex.sections if one.title == "Residual risk").blocks
    assert block.paragraphs == ("Low, as decided.", "See the <b>minutes</b>.")
    assert "To be filled in by the data-protection officer" in section_of(annex, "Decision")
    assert "what was not tested (“Tests”)" in section_of(annex_of(), "Residual risk")


def test_names_the_files_with_their_digests_and_state() -> None:
    files = (CheckedFile("findings.json", "as written", "a" * 64),)
    folder = CheckedFolder(Path("audit"), "b" * 64, files)
    annex = make_annex(read(), OfficerWords(), folder, "2026-11-22")
    text = section_of(annex, "Files and versions")
    assert f"findings.json | {'a' * 64} | as written" in text
    assert "overheard | 0.1.0" in text


def test_names_of_files_that_nobody_listed_are_made_printable() -> None:
    files = (CheckedFile("x\u202egpj.exe\udcff", "not listed"),)
    folder = CheckedFolder(Path("audit"), "b" * 64, files)
    annex = make_annex(read(), OfficerWords(), folder, "2026-11-22")
    text = section_of(annex, "Files and versions")
    assert r"x\u202egpj.exe\udcff | – | not listed" in text
    text.encode("utf-8")


def test_reads_what_a_report_writes(small: Audit, tmp_path: Path) -> None:
    write_report(replace(small, release={"contact": "dpo@example.org"}), tmp_path)
    findings, folder = read_findings(tmp_path / "findings.json"), check_folder(tmp_path)
    annex = make_annex(findings, OfficerWords(), folder, "2026-11-22")
    assert "Contact | dpo@example.org | the plan" in section_of(annex, "Context of the release")
    results = section_of(annex, "Results")
    assert "none. The server | " in results
    in_short = section_of(annex, "In short")
    assert "What leaks in the arm “none”\nThe server infers each client" in in_short
    assert "noise | LocalDP(clip=1.0, noise_multiplier=0.5) | client" in section_of(
        annex, "Threat model"
    )
    assert "report.html" in section_of(annex, "Files and versions")
    assert folder.is_as_written


def test_no_part_says_that_a_standard_is_met() -> None:
    text = " ".join(map(text_of, annex_of().sections)).lower()
    assert "complian" not in text
    assert "complies" not in text


def test_a_name_cannot_control_a_terminal_or_reverse_text() -> None:
    nasty = "a\x1b[31m\u202eb\nc"
    annex = annex_of(
        title=nasty, subject=nasty, versions={nasty: nasty}, release={"contact": nasty}
    )
    text = annex.title + " ".join(map(text_of, annex.sections))
    assert "\x1b" not in text
    assert "\u202e" not in text
