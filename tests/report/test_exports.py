"""Files for machines give the figures as they are, and no text that acts as a command."""

import csv
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from overheard.archive.run_time import RunTime
from overheard.auditing.threat_results import with_verdicts
from overheard.core.defense import RunParameters
from overheard.core.parties import client
from overheard.core.scorer import Score
from overheard.defenses.dp_fedavg import DpFedavg
from overheard.epsilon.epsilon_results import epsilon_results
from overheard.epsilon.threshold_bound import GuessEvidence, ThresholdRates
from overheard.findings.audit import Audit
from overheard.findings.document import read_findings
from overheard.findings.document_rows import FindingRow
from overheard.findings.finding import ClaimRow
from overheard.findings.frame import COLUMNS
from overheard.findings.privacy.epsilon_rows import BoundByGuesses, BoundByThreshold
from overheard.findings.traffic import Traffic
from overheard.report.exports import (
    MAX_NUMBERS,
    as_csv,
    as_json,
    epsilon_row,
    findings_document,
)
from tests.auditing.epsilon_audits import LOCAL, audit_of, noisy_finding
from tests.report.shift_audits import SINCE, shift_audit, shift_findings
from tests.report.user_audits import identity_findings, user_audit
from tests.runs.audits import HOSTILE


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def test_the_document_gives_every_figure_back(small: Audit) -> None:
    document = json.loads(as_json(small), parse_constant=refuse)
    assert (document["format"], document["version"]) == ("overheard findings", 2)
    for stored, finding in zip(document["findings"], small.findings, strict=True):
        assert tuple(stored["claimed"]) == finding.claimed.numbers
        assert tuple(stored["true"]) == finding.true_numbers
        for figure, score in zip(stored["scores"], finding.scores, strict=True):
            assert figure == {
                "name": score.name,
                "value": score.value,
                "better": score.better,
                "blinds": score.uninformed,
                "references": score.references,
                "gain": score.gain,
            }
    row = next(row for row in document["summary"] if row["score"] == "linf")
    assert row["value"]["mean"] == pytest.approx(0.06)  # 0.10 and 0.02
    # Standard error 0.04, and Student's 97.5 % quantile for two clients is 12.706.
    assert row["value"]["low"] == 0.0  # no error is below 0
    assert row["value"]["high"] == pytest.approx(0.06 + 12.7062 * 0.04)
    assert (row["about"], row["targets"], row["seeds"]) == ("clients", 2, 1)
    assert document["arms"][1]["defenses"][0]["switched_off_by"] == "the client"
    assert document["plan"] == small.plan


def test_the_document_gives_verdicts_with_their_tests_back(small: Audit) -> None:
    leaks, none = findings_document(small).verdicts
    assert (leaks.arm, leaks.observers, leaks.question, leaks.about) == (
        "none", ("server",), "label_shares", "clients",
    )  # fmt: skip
    # No other of 200 partitions fits as well.
    assert (leaks.verdict, leaks.p_value, leaks.smallest_p_value) == ("leaks", 0.005, 0.005)
    assert (none.verdict, none.is_below_margin) == ("no leak above margin", True)
    assert none.margins == {"l1": 0.1}
    assert none.gain.mean == 0
    assert '"fits"' not in as_json(small)


def test_a_document_reads_as_it_was_before_it_was_written(rich: Audit, tmp_path: Path) -> None:
    first, *others = rich.findings
    undefined = tuple(replace(score, value=float("nan")) for score in first.scores)
    spoilt = (replace(first, scores=undefined), *others)
    document = findings_document(with_verdicts(replace(rich, findings=spoilt)))
    path = tmp_path / "findings.json"
    path.write_text(document.to_json(), encoding="utf-8")
    assert document.summary[0].value.mean is None
    # Claims are not read.
    assert read_findings(path) == document.model_copy(update={"findings": ()})
    held = [line for line in path.read_text().splitlines() if '"scores":' in line]
    rows = [FindingRow.model_validate_json(line.rstrip(",")) for line in held]
    assert tuple(rows) == document.findings


def test_the_document_has_bytes_and_seconds_of_runs(small: Audit) -> None:
    counted = replace(small.arms[0], traffic=Traffic(36, 72, 3, 6), seconds=RunTime(1.5, None))
    document = json.loads(as_json(replace(small, arms=(counted, small.arms[1]))))
    first, second = document["arms"]
    assert first["bytes"] == {"up": 36, "down": 72, "answers": 3, "heard": 6}
    assert first["seconds"] == {"wall": 1.5, "cores": None}
    assert second["bytes"] is second["seconds"] is None


def test_both_files_have_the_bounds_of_claims(small: Audit) -> None:
    bare, other = small.findings[:2]
    bounded = replace(other, claimed=replace(other.claimed, low=(0.1, 0.7), high=(0.3, 0.9)))
    audit = replace(small, findings=(bare, bounded))
    document = json.loads(as_json(audit))
    assert [(one["low"], one["high"]) for one in document["findings"]] == [
        (None, None),
        ([0.1, 0.7], [0.3, 0.9]),
    ]
    lines = list(csv.DictReader(StringIO(as_csv(audit))))
    assert (lines[0]["low"], lines[0]["high"]) == ("", "")
    assert (lines[-1]["low"], lines[-1]["high"]) == ("0.1 0.7", "0.3 0.9")


def test_both_files_have_timelines_and_controls() -> None:
    planned, control = shift_findings("none", "tracker", 9.0)
    audit = shift_audit([planned, control])
    document = json.loads(as_json(audit), parse_constant=refuse)
    first, second = document["findings"]
    assert (first["is_control"], second["is_control"]) == (False, True)
    assert (first["true_since"], second["true_since"]) == (SINCE, None)
    assert first["timeline"] == {
        "rounds": list(planned.claimed.timeline.rounds),
        "statistic": list(planned.claimed.timeline.statistic),
        "threshold": [3.02] * 20,
        "false_alarm_rate": 0.05,
        "alarm": planned.claimed.timeline.alarm,
        "since": planned.claimed.timeline.since,
    }
    assert [run["is_control"] for run in document["arms"]] == [False, True]
    lines = list(csv.DictReader(StringIO(as_csv(audit))))
    assert {line["is_control"] for line in lines} == {"true", "false"}
    assert lines[0]["true_since"] == str(SINCE)
    assert lines[0]["alarm"] == str(planned.claimed.timeline.alarm)
    assert (lines[-1]["true_since"], lines[-1]["score"]) == ("", "false_alarm")


def test_a_finding_without_scores_has_a_csv_line() -> None:
    _, control = shift_findings("none", "trend", 0.0, has_alarm=False)
    assert control.scores == ()
    (line,) = csv.DictReader(StringIO(as_csv(shift_audit([control]))))
    assert (line["score"], line["value"], line["is_control"]) == ("", "", "true")


def test_no_timeline_is_null(small: Audit) -> None:
    document = json.loads(as_json(small))
    assert {one["timeline"] for one in document["findings"]} == {None}


def test_candidates_are_in_the_document_and_the_top_one_in_the_csv() -> None:
    one, other = identity_findings("none", "ours", 3.0, has_controls=False)[:2]
    numbers = (0.0,) * len(other.claimed.numbers)
    tie = replace(other.claimed, numbers=numbers, none_of_them=None)
    tied = replace(other, claimed=tie)
    audit = user_audit([replace(one, true_user="=1+1"), tied], {"none": 0.8})
    first, second = json.loads(as_json(audit), parse_constant=refuse)["findings"]
    assert tuple(first["candidates"]) == one.claimed.candidates
    assert tuple(first["claimed"]) == one.claimed.numbers
    assert (first["true_user"], first["none_of_them"]) == ("=1+1", one.claimed.none_of_them)
    assert second["none_of_them"] is None
    lines = list(csv.DictReader(StringIO(as_csv(audit))))
    best = one.claimed.candidates[one.claimed.numbers.index(max(one.claimed.numbers))]
    assert (lines[0]["named"], lines[0]["true_user"]) == (best, "'=1+1")
    assert (lines[0]["claimed"], lines[0]["true"]) == ("", "")
    assert (lines[-1]["named"], lines[-1]["none_of_them"]) == ("a tie of 12", "")


def test_the_document_has_one_line_per_finding(small: Audit) -> None:
    lines = as_json(replace(small, arm_results=())).splitlines()
    held = [json.loads(line.rstrip(",")) for line in lines if line.startswith('  {"arm"')]
    assert len(held) == len(small.arms) + len(small.findings)


def test_nan_and_infinity_become_null(small: Audit) -> None:
    nothing = Score("kl", float("nan"), "lower", {"uniform": float("inf")}, {})
    audit = replace(small, findings=(replace(small.findings[0], scores=(nothing,)),))
    document = json.loads(as_json(audit), parse_constant=refuse)
    figure = document["findings"][0]["scores"][0]
    assert figure["value"] is figure["gain"] is figure["blinds"]["uniform"] is None


def test_the_csv_has_one_line_per_finding_and_score(small: Audit) -> None:
    lines = as_csv(small).splitlines()
    assert len(lines) == 1 + 4 * 2
    assert next(csv.reader(lines)) == list(COLUMNS)


@pytest.mark.parametrize(
    "name", ["=1+1", "+1", "-1", "@SUM(A1)", "  =1", "'=1", "＝1", "\t=1", "\n=1", "\ufeff=1"]
)
def test_no_text_cell_begins_a_formula(small: Audit, name: str) -> None:
    cell = replace(small.findings[0].cell, attack=name, settings=name)
    audit = replace(small, findings=(replace(small.findings[0], cell=cell),))
    _, first, *_ = csv.reader(StringIO(as_csv(audit)))
    for text in (first[list(COLUMNS).index("attack")], first[list(COLUMNS).index("settings")]):
        assert text[0] == "'" or text.startswith("\\")
        assert text.isprintable()


def test_long_claims_are_in_the_document_only(small: Audit) -> None:
    numbers = tuple(float(number) for number in range(MAX_NUMBERS + 1))
    long = replace(small.findings[0], claimed=ClaimRow(numbers), true=ClaimRow(numbers))
    few = replace(long, claimed=ClaimRow(numbers[1:]), true=ClaimRow(numbers[1:]))
    audit = replace(small, findings=(long, few))
    lines = list(csv.DictReader(StringIO(as_csv(audit))))
    scores = len(long.scores)
    assert {(one["claimed"], one["true"]) for one in lines[:scores]} == {("", "")}
    assert lines[scores]["claimed"].endswith(" 999 1000")
    assert len(json.loads(as_json(audit))["findings"][0]["claimed"]) == MAX_NUMBERS + 1


def test_a_figure_in_a_table_stays_a_number(small: Audit) -> None:
    lines = list(csv.DictReader(StringIO(as_csv(small))))
    assert float(lines[0]["value"]) == pytest.approx(0.2)  # |1 - 0.9| + |0 - 0.1|
    assert float(lines[0]["best guess"]) == 1.0
    assert float(lines[0]["gain"]) == pytest.approx(0.8)


def test_names_in_a_document_come_back_as_they_were(rich: Audit) -> None:
    few = replace(rich, findings=(), refusals=())
    document = json.loads(as_json(few))
    assert tuple(document["class_names"]) == rich.class_names
    assert HOSTILE in document["class_names"]


@pytest.mark.slow
def test_the_document_has_the_evidence_of_a_proven_epsilon() -> None:
    rates = audit_of(LOCAL, noisy_finding(1.0, members=60, outsiders=60))
    canaries = replace(rates, arms=tuple(replace(one, canary_odds=1.0) for one in rates.arms))
    for found, keys in (
        (rates, {"threshold", "found", "passed"}),
        (
            canaries,
            {
                *("above", "below", "said_in", "said_out", "right"),
                *("method", "level", "digest", "estimate"),
            },
        ),
    ):
        document = json.loads(as_json(with_verdicts(found)), parse_constant=refuse)
        told = [line["measured"] for line in document["epsilon"] if line["measured"]]
        assert [set(one) - {"at_least", "attack", "members", "outsiders"} for one in told] == [
            keys
        ]
        assert told[0]["members"] + told[0]["outsiders"] == 60
        assert told[0]["at_least"] > 0


def test_a_row_of_drawn_clients_has_the_epsilon_with_and_without_the_draw() -> None:
    central = DpFedavg(1.0, 4.0).mechanism()
    run = RunParameters(20, 0.1, sampling_rate=0.1, sampling="poisson")
    (_, readers) = epsilon_results(audit_of(central, run=run))
    found, row = readers.accounted.recomputed, epsilon_row(readers)
    assert found is not None
    assert (row.pld, row.rdp, row.drawn) == (found.pld, found.rdp, found.subsampled)
    assert row.drawn == row.ceiling < row.pld
    assert (row.client_sampling, row.sampling_rate, row.lower) == ("poisson", 0.1, None)


def test_a_row_says_why_a_claim_is_not_confirmed() -> None:
    unsure = replace(LOCAL, unproven="batches are not counted", stated=0.5)
    for stated, doubt in (
        (unsure, "batches are not counted"),
        (replace(LOCAL, stated=9.0), ""),
    ):
        row = epsilon_row(epsilon_results(audit_of(stated))[0])
        assert (row.claimed, row.claimed_for, row.doubt) == (stated.stated, "run", doubt)


def test_a_measured_bound_is_told_with_its_evidence() -> None:
    finding = noisy_finding(1.0, members=100, outsiders=200, observers=(client(1),))
    (_, plain) = epsilon_results(audit_of(LOCAL, finding))
    (_, canaries) = epsilon_results(audit_of(LOCAL, finding, are_canaries=True))
    assert plain.lower_bound is not None
    assert canaries.lower_bound is not None
    rates, row = plain.lower_bound.evidence, epsilon_row(plain).measured
    assert isinstance(rates, ThresholdRates)
    assert isinstance(row, BoundByThreshold)
    assert (row.at_least, row.attack, row.threshold, row.members, row.outsiders) == (
        plain.lower_bound.epsilon, "peek", rates.threshold, 50, 100,
    )  # fmt: skip
    assert row.found.mean == rates.true_positive_rate.mean
    assert row.passed.mean == rates.false_positive_rate.mean
    guesses, row = canaries.lower_bound.evidence, epsilon_row(canaries).measured
    assert isinstance(guesses, GuessEvidence)
    assert isinstance(row, BoundByGuesses)
    assert (row.at_least, row.attack) == (canaries.lower_bound.epsilon, "peek")
    assert [row.above, row.below] == [guesses.above, guesses.below]
    counts = guesses.counts
    assert (row.said_in, row.said_out, row.right) == (
        counts.guessed_in, counts.guessed_out, counts.right,
    )  # fmt: skip
