"""`overheard check`: its exit codes and output files."""

import json
from pathlib import Path
from xml.etree.ElementTree import parse

import pytest

from tests.cli.conftest import CPU, Command, assert_user_error
from tests.gate.documents import (
    JsonObject,
    document,
    refusal,
    run,
    summary_row,
    verdict_row,
    write_document,
)

AUC = '[[leaks]]\nname = "records"\nquestion = "membership"\nscore = "membership_auc"\n'


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text(f"{AUC}no_better_than = 0.6\n")
    return path


@pytest.mark.parametrize(
    ("content", "code", "word"),
    [
        (document(summary_row(0.5, 0.6)), 0, "pass: 1 pass"),
        (document(summary_row(0.7, 0.8)), 1, "fail: 1 fail"),
        (document(summary_row(0.5, 0.7)), 2, "inconclusive: 1 inconclusive"),
        (document(), 2, "inconclusive: 1 inconclusive"),
        (
            document(summary_row(), refusals=[refusal(attack="loss")]),
            2,
            "1 inconclusive, 1 pass",
        ),
        (
            document(summary_row(0.7, 0.8), summary_row(0, 1, attack="a")),
            1,
            "fail: 1 fail, 1 inconclusive",
        ),
    ],
    ids=["pass", "fail", "straddles", "no row", "refused", "fail before inconclusive"],
)
def test_the_exit_code_is_the_verdict(
    overheard: Command, policy: Path, tmp_path: Path, content: JsonObject, code: int, word: str
):
    said = overheard("check", write_document(tmp_path, content), "--policy", policy)
    assert (said.code, said.err) == (code, "")
    assert word in said.out
    assert "records: membership_auc" in said.out
    quiet = overheard("check", tmp_path / "findings.json", "--policy", policy, "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (code, "", "")


@pytest.mark.slow
def test_reads_the_findings_of_an_audit(overheard: Command, plan: Path, tmp_path: Path):
    out, policy = tmp_path / "out", tmp_path / "policy.toml"
    assert overheard("audit", plan, "--out", out, "--quiet", *CPU).code == 0
    shares = '[[leaks]]\nname = "shares"\nquestion = "label_shares"\nscore = "linf"\n'
    cost = '[[costs]]\nname = "bytes"\nbytes_at_most = 1e12\nseeds_at_least = 1\n'
    # No attack has an error below 0 or above 2; the intervals of three clients are wide.
    for limit, code in ((-20.0, 0), (20.0, 1)):
        policy.write_text(f"{shares}no_better_than = {limit}\n{cost}")
        said = overheard("check", out / "findings.json", "--policy", policy)
        assert (said.code, said.err) == (code, "")
        assert "bias_inversion" in "".join(said.out.split())
    asked = f"{shares}grows_at_most = 40.0"
    policy.write_text(asked)
    found = out / "findings.json"
    assert overheard("check", found, "--policy", policy, "--against", found).code == 0


def test_growth_over_earlier_findings(overheard: Command, policy: Path, tmp_path: Path):
    policy.write_text(f"{AUC}grows_at_most = 0.1\n")
    before = write_document(tmp_path, document(summary_row(0.5, 0.52)), "before.json")
    now = write_document(tmp_path, document(summary_row(0.7, 0.72), subject="faces"))
    said = overheard("check", now, "--policy", policy, "--against", before)
    assert said.code == 1
    assert "another subject" in said.out
    assert overheard("check", before, "--policy", policy, "--against", before).code == 0
    assert overheard("check", now, "--policy", policy).code == 2


def test_writes_junit_and_markdown_for_every_verdict(
    overheard: Command, policy: Path, tmp_path: Path
):
    found = write_document(tmp_path, document(summary_row(0.7, 0.8), title="<i>|\x1b[31m"))
    xml, page = tmp_path / "new" / "check.xml", tmp_path / "check.md"
    said = overheard(
        "check", found, "--policy", policy, "--junit", xml, "--markdown", page, "--quiet"
    )
    assert said.code == 1
    assert parse(xml).getroot().get("failures") == "1"
    assert page.read_text().startswith("## Overheard: fail")
    assert "\x1b" not in xml.read_text() + page.read_text()


def test_escapes_hostile_names_on_the_terminal(
    overheard: Command, policy: Path, tmp_path: Path
):
    name = "\x1b]0;owned\x07[bold red]a[/] \u202e\n"
    found = write_document(
        tmp_path, document(summary_row(0.7, 0.8, arm=name), arms=[run(name)])
    )
    said = overheard("check", found, "--policy", policy)
    assert said.code == 1
    shown = "".join(said.out.split())
    assert "\x1b]" not in shown
    assert "\u202e" not in shown
    assert "[boldred]a[/]" in shown


def test_refuses_files_that_are_no_findings(overheard: Command, policy: Path, tmp_path: Path):
    path = tmp_path / "findings.json"
    path.write_text('{"format": "overheard findings", "version": 9}')
    assert_user_error(overheard("check", path, "--policy", policy), "version 9", "audit again")
    path.write_text("{")
    assert_user_error(
        overheard("check", path, "--policy", policy), str(path), "overheard audit"
    )
    good = write_document(tmp_path, document(summary_row()))
    bad = overheard("check", good, "--policy", policy, "--against", tmp_path / "no.json")
    assert_user_error(bad, "no.json", "cannot be read")


def test_lists_the_mistakes_of_a_policy(overheard: Command, policy: Path, tmp_path: Path):
    policy.write_text(f"{AUC}no_beter_than = 1\n[[costs]]\n")
    said = overheard(
        "check", write_document(tmp_path, document(summary_row())), "--policy", policy
    )
    assert_user_error(
        said, "leaks.0.no_beter_than: Extra inputs", "costs.0.name: Field required"
    )


def test_refuses_unused_earlier_findings(overheard: Command, policy: Path, tmp_path: Path):
    found = write_document(tmp_path, document(summary_row()))
    said = overheard("check", found, "--policy", policy, "--against", found)
    assert_user_error(said, "grows_at_most", "--against")


@pytest.mark.parametrize("option", ["--junit", "--markdown"])
def test_refuses_to_overwrite_inputs(
    overheard: Command, policy: Path, tmp_path: Path, option: str
):
    found = write_document(tmp_path, document(summary_row()))
    before = found.read_bytes()
    assert_user_error(
        overheard("check", found, "--policy", policy, option, found), str(found), "given twice"
    )
    assert found.read_bytes() == before
    out = tmp_path / "out"
    both = overheard("check", found, "--policy", policy, "--junit", out, "--markdown", out)
    assert_user_error(both, "given twice")
    assert not out.exists()


def test_shows_the_usage_without_a_policy(overheard: Command, tmp_path: Path):
    said = overheard("check", write_document(tmp_path, document(summary_row())))
    assert said.code == 2
    assert "--policy" in said.err


def test_the_schema_of_policies_lists_every_table(overheard: Command):
    said = overheard("schema", "--policy")
    assert said.code == 0
    assert set(json.loads(said.out)["properties"]) == {
        "straddles", "verdicts", "leaks", "epsilons", "costs", "recording_incomplete",
            "exceptions", "sums",
    }  # fmt: skip


def test_prints_json_and_nothing_else(overheard: Command, policy: Path, tmp_path: Path):
    found = write_document(tmp_path, document(summary_row(0.7, 0.8)))
    said = overheard("check", found, "--policy", policy, "--json")
    told = json.loads(said.out)
    assert (said.code, told["exit_code"], told["status"]) == (1, 1, "fail")
    assert (told["policy"], told["verdicts"][0]["line"]) == ("policy.toml", 1)


def test_writes_sarif_that_points_to_the_rule(overheard: Command, policy: Path, tmp_path: Path):
    found = write_document(tmp_path, document(summary_row(0.7, 0.8)))
    policy.write_text("\n\n" + policy.read_text())
    sarif = tmp_path / "check.sarif"
    said = overheard("check", found, "--policy", policy, "--sarif", sarif, "--quiet")
    assert (said.code, said.out) == (1, "")
    (result,) = json.loads(sarif.read_text())["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == (
        "policy.toml",
        3,
    )


EXCEPTION = '[[exceptions]]\nrule = "records"\nreason = "ticket 12"\n'


def test_an_exception_is_shown_everywhere_until_it_expires(
    overheard: Command, policy: Path, tmp_path: Path
):
    found = write_document(tmp_path, document(summary_row(0.7, 0.8)))
    rules = policy.read_text()
    policy.write_text(f"{rules}{EXCEPTION}expires = 9999-12-31\n")
    xml, page, sarif = (tmp_path / name for name in ("c.xml", "c.md", "c.sarif"))
    outputs = ("--junit", xml, "--markdown", page, "--sarif", sarif)
    said = overheard("check", found, "--policy", policy, *outputs)
    assert said.code == 0
    assert "pass: 1 excepted" in said.out
    for text in (said.out, xml.read_text(), page.read_text(), sarif.read_text()):
        assert "ticket" in text
        assert "9999" in text
    assert parse(xml).getroot().get("skipped") == "1"
    policy.write_text(f"{rules}{EXCEPTION}expires = 2020-01-01\n")
    said = overheard("check", found, "--policy", policy)
    assert said.code == 1
    assert "expired" in said.out


def test_a_reference_makes_a_policy_that_is_kept(overheard: Command, tmp_path: Path):
    verdicts = [verdict_row(score="membership_auc")]
    before = write_document(
        tmp_path, document(summary_row(0.6, 0.7), verdicts=verdicts), "before.json"
    )
    worse = write_document(tmp_path, document(summary_row(0.9, 0.95), verdicts=verdicts))
    made = tmp_path / "made.toml"
    kept = overheard("check", before, "--like", before, "--write-policy", made)
    assert kept.code == 0
    assert "Made from before.json" in kept.out
    assert overheard("check", worse, "--policy", made).code == 1
    assert overheard("check", worse, "--like", before).code == 1
    assert overheard("check", tmp_path, "--like", tmp_path, "--quiet").code == 0
    assert overheard("check", worse, "--like", before, "--tolerance", "0.5").code == 0
    again = overheard("check", before, "--like", before, "--write-policy", made)
    assert_user_error(again, "made.toml: exists", "--policy")


def test_findings_that_were_not_checked_make_no_policy(overheard: Command, tmp_path: Path):
    verdicts = [verdict_row("unchecked", None)]
    found = write_document(tmp_path, document(verdicts=verdicts, arms=[run(has_truth=False)]))
    made = tmp_path / "made.toml"
    refused = overheard("check", found, "--like", found, "--write-policy", made)
    assert_user_error(refused, "makes no policy", "truth.json")
    assert not made.exists()


def test_a_rule_that_cannot_fail_is_told(overheard: Command, tmp_path: Path):
    verdicts = [verdict_row(score="membership_auc")]
    found = write_document(tmp_path, document(summary_row(0.7, 1.1), verdicts=verdicts))
    said = overheard("check", found, "--like", found)
    assert "cannot fail" in said.out


def test_tells_how_options_belong_together(overheard: Command, policy: Path, tmp_path: Path):
    found = write_document(tmp_path, document(summary_row()))
    for options, words in (
        (("--policy", policy, "--like", found), "either --policy FILE or --like FILE"),
        (("--policy", policy, "--tolerance", "0.1"), "belong to --like"),
        (("--policy", policy, "--write-policy", tmp_path / "p"), "belong to --like"),
    ):
        said = overheard("check", found, *options)
        assert said.code == 2
        assert words in " ".join(said.err.replace("│", " ").split())
