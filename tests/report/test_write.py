"""The report is complete, reproducible and free of injected markup."""

from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from overheard.auditing.threat_results import with_verdicts
from overheard.core.errors import OutputError
from overheard.core.parties import SERVER, client
from overheard.findings.audit import Audit
from overheard.findings.finding import Cell, Refusal
from overheard.report.write import write_interim_report, write_report
from tests.runs.audits import HOSTILE

FILES = {"findings.json", "findings.csv", "report.html", "digests.json"}


class Tags(HTMLParser):
    """Collects the elements of a page and their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names = Counter[str]()
        self.attributes: set[str] = set()
        self.headings: list[int] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names[tag] += 1
        self.attributes |= {name for name, _ in attrs}
        if len(tag) == 2 and tag[0] == "h" and tag[1].isdigit():
            self.headings.append(int(tag[1]))


def test_writes_all_files_completely(small: Audit, tmp_path: Path) -> None:
    write_report(small, tmp_path / "new")
    assert {path.name for path in (tmp_path / "new").iterdir()} == FILES


def test_a_report_so_far_removes_the_data_of_an_earlier_one(
    small: Audit, tmp_path: Path
) -> None:
    write_report(small, tmp_path)
    write_interim_report(with_verdicts(replace(small, title="so far")), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert "so far" in (tmp_path / "report.html").read_text()


def test_the_same_audit_gives_the_same_bytes(small: Audit, tmp_path: Path) -> None:
    for name in ("first", "second"):
        write_report(small, tmp_path / name)
    for name in FILES:
        assert (tmp_path / "first" / name).read_bytes() == (
            tmp_path / "second" / name
        ).read_bytes()


def test_says_what_to_do_where_nothing_can_be_written(small: Audit, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(OutputError, match="choose another folder"):
        write_report(small, tmp_path / "taken")


def test_no_name_brings_markup_or_control_characters_in(small: Audit, tmp_path: Path) -> None:
    nasty = f"{HOSTILE}\n\u202e\x1b[31m\x00$x$" + "long " * 200
    arm = replace(
        small.arms[0],
        arm=nasty,
        defenses=(replace(small.arms[1].defenses[0], settings=nasty, promise=nasty),),
    )
    cell = replace(small.findings[0].cell, arm=nasty, attack=nasty, settings=nasty)
    audit = replace(
        small,
        title=nasty,
        subject=nasty,
        class_names=(nasty, '"><img src=x onerror=alert(1)>'),
        arms=(*small.arms, arm),
        findings=tuple(replace(f, cell=cell) for f in small.findings[:2]) + small.findings,
        refusals=(Refusal(cell, client(0), (nasty,)),),
        plan=nasty,
        versions={nasty: nasty},
    )
    write_report(with_verdicts(audit), tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    tags = Tags(text)
    assert not set(tags.names) & {"img", "iframe", "object", "embed", "link"}
    # The page's own script, and its filter.
    assert (tags.names["script"], tags.names["form"]) == (1, 1)
    assert not tags.attributes & {"action", "formaction", "src"}
    assert not any(name.startswith("on") for name in tags.attributes)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert not set(text) & set("\u202e\x1b\x00")


def test_headings_never_skip_a_level(small: Audit, tmp_path: Path) -> None:
    write_report(small, tmp_path)
    levels = Tags((tmp_path / "report.html").read_text(encoding="utf-8")).headings
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_an_audit_without_results_still_has_a_report(small: Audit, tmp_path: Path) -> None:
    cell = Cell("none", 0, (SERVER,), "decaf", "Decaf()", "label_shares", (0, 1))
    untested = tuple(replace(run, accuracy={}) for run in small.arms)
    refused = replace(
        small, arms=untested, findings=(), refusals=(Refusal(cell, client(0), ("updates",)),)
    )
    write_report(with_verdicts(refused), tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Not measured does not mean that there is no leak." in text
    assert "The accuracy of the global model was not measured." in text
