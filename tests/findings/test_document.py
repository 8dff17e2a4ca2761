"""Findings as a document."""

import json
from collections.abc import Iterable
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from overheard.core.errors import FindingsError
from overheard.findings.document import (
    FORMAT,
    VERSION,
    FindingsDocument,
    read_findings,
)
from overheard.findings.document_rows import IntervalEstimate, VerdictRow
from overheard.findings.privacy.epsilon_rows import EpsilonRow, EpsilonVerdict
from tests.gate.documents import (
    JsonObject,
    bound,
    document,
    epsilon_row,
    estimate,
    refusal,
    run,
    summary_row,
    verdict_row,
    write_document,
)
from tests.report.evidence.annexes import content


def test_reads_the_parts_that_a_gate_needs(tmp_path: Path):
    rows = (
        summary_row(),
        summary_row(attack="loss", gain=None, observers=["server", "client/1"]),
    )
    found = read_findings(
        write_document(
            tmp_path, document(*rows, refusals=[refusal(target="cohort")], later_key=[1])
        )
    )
    assert (found.title, found.subject) == ("Two clients", "digits")
    first, second = found.summary
    assert (first.value.low, first.value.high, first.seeds) == (0.5, 0.6, 2)
    assert second.gain is None
    assert second.key.observers == ("client/1", "server")
    assert found.refusals[0].key.about == "cohort"
    assert found.arms[0].accuracy == {0: 0.1, 1: 0.5, 2: 0.9}
    assert found.arm_names == ("bare",)


def test_missing_measurements_are_none(tmp_path: Path):
    bare = run(accuracy={"3": None}, bytes=None, seconds={"wall": None, "cores": None})
    found = read_findings(
        write_document(
            tmp_path, document(summary_row(None, None), arms=[bare, run("other", accuracy={})])
        )
    )
    assert found.summary[0].value.low is None
    assert (found.arms[0].accuracy, found.arms[0].bytes) == ({3: None}, None)
    assert found.arm_names == ("bare", "other")


def test_reads_bytes_and_seconds_that_were_not_measured(tmp_path: Path):
    unmeasured = run(bytes=None, seconds=None)
    (read,) = read_findings(write_document(tmp_path, document(arms=[unmeasured]))).arms
    assert (read.bytes, read.seconds) == (None, None)


def test_a_claimed_epsilon_is_read_and_claims_about_targets_are_skipped(tmp_path: Path):
    row = epsilon_row(claimed=2.0, claimed_for="run")
    large = {"claimed": [0.5, 0.5], "scores": [{"score": "l1"}]}
    content = document(summary_row(), epsilon=[row], findings=[large])
    found = read_findings(write_document(tmp_path, content))
    assert [(read.claimed, read.claimed_for) for read in found.epsilon] == [(2.0, "run")]
    assert found.findings == ()


@pytest.mark.parametrize("key", ["verdicts", "epsilon", "made_on"])
def test_refuses_a_file_of_another_format_that_lacks_a_part(tmp_path: Path, key: str):
    other = {name: value for name, value in document().items() if name != key}
    with pytest.raises(FindingsError, match=f"{key}: Field required.*run the audit again"):
        read_findings(write_document(tmp_path, other))


def test_accepts_two_equal_epsilon_rows(tmp_path: Path):
    found = read_findings(
        write_document(tmp_path, document(epsilon=[epsilon_row(), epsilon_row()]))
    )
    assert len(found.epsilon) == 2
    assert found.arm_names == ("bare", "noisy")


LOST = {"party": "client/0", "rounds": [0, 1], "is_unrecorded": True, "reason": "NaN"}


INVALID_SUMMARY = {
    "interval ends in the wrong order": (
        summary_row(value=estimate(0.9, 0.1)),
        "upper end 0.1 is below its lower end 0.9",
    ),
    "a text for a number": (
        summary_row(value={"mean": "0.5", "low": 0.0, "high": 1.0}),
        "summary.0.value.mean",
    ),
    "true for a count": (summary_row(seeds=True), "summary.0.seeds"),
    "a count below 0": (summary_row(targets=-1), "summary.0.targets"),
    "an unknown direction": (summary_row(better="Lower"), "summary.0.better"),
    "a mean outside of its interval": (
        summary_row(value=estimate(0.5, 0.6, mean=0.9)),
        "summary.0.value: the mean 0.9 is outside of its interval from 0.5 to 0.6",
    ),
    "a number that no float holds": (
        summary_row(value=estimate(0.5, 10**400, mean=0.5)),
        "more than 300 digits",
    ),
    "a guess that is none of the guesses": (
        summary_row(blind=0.1),
        "summary.0: `blind` is 0.1, which none of `blinds` is",
    ),
    "a gain over no guess": (summary_row(blind=None), "summary.0: `gain` is over a guess"),
    "no target": (summary_row(targets=0), "summary.0.targets"),
    "a round twice": (summary_row(rounds=[1, 1]), "'rounds' has a value twice"),
    "control characters": (summary_row(better="\x1b[2J\n"), "summary.0.better"),
}

INVALID_EPSILON = {
    "an unknown verdict": (epsilon_row("kept"), "epsilon.0.verdict"),
    "an epsilon below 0": (epsilon_row("not tested", ceiling=-1), "epsilon.0.ceiling"),
    "a text for an epsilon": (epsilon_row("not tested", ceiling="2"), "epsilon.0.ceiling"),
    "a bound below 0": (
        epsilon_row(measured=bound(-0.1)),
        "epsilon.0.measured.guesses.at_least",
    ),
    "a delta of 1": (epsilon_row(delta=1), "epsilon.0.delta"),
    "a verdict that contradicts its numbers": (
        epsilon_row("not tested", measured=bound(1)),
        "epsilon.0: verdict 'not tested' contradicts",
    ),
    "a share above 1": (epsilon_row(sampling_rate=7.5), "epsilon.0.sampling_rate"),
    "more right guesses than guesses": (
        epsilon_row(measured=bound(0.5) | {"right": 21}),
        "21 of 20 guesses are right about 60 canaries",
    ),
    "more guesses than canaries": (
        epsilon_row(measured=bound(0.5) | {"members": 5, "outsiders": 5}),
        "20 guesses are right about 10 canaries",
    ),
    "more recorded rounds than rounds": (
        epsilon_row(recorded_rounds=3),
        "epsilon.0: `recorded_rounds` is 3, above `rounds`, 2",
    ),
    "a claim for nothing": (
        epsilon_row(claimed=2.0),
        "epsilon.0: `claimed` states an epsilon, but `claimed_for`",
    ),
    "a false claim that was not made": (
        epsilon_row("false", claimed=None),
        "epsilon.0: verdict 'false' contradicts `claimed`",
    ),
    "a recomputed epsilon that was not recomputed": (
        epsilon_row(pld=1.0),
        "epsilon.0: `is_recomputed` is false",
    ),
}

INVALID_VERDICT = {
    "an observer twice": (
        verdict_row(observers=["server", "server"]),
        "verdicts.0: 'observers' has a value twice",
    ),
    "a verdict beside a reason that forbids it": (
        verdict_row("no leak above margin", why="too few targets"),
        "verdicts.0: verdict 'no leak above margin' contradicts `why`",
    ),
    "a verdict that was withheld": (
        verdict_row("nothing to read", withheld="it failed"),
        "verdicts.0: verdict 'nothing to read' contradicts `withheld`",
    ),
    "a gain above the margin that it is said to be below": (
        verdict_row("no leak above margin", gain=estimate(-0.1, 0.3)),
        "verdicts.0: `is_below_margin` contradicts the gain of at most 0.3",
    ),
    "a gain below no margin": (
        verdict_row("no leak above margin", margins={}),
        "verdicts.0: `is_below_margin` contradicts",
    ),
    "a measured gain without a measurement": (
        verdict_row("unmeasured", gain=estimate(0.1, 0.2)),
        "verdicts.0: verdict 'unmeasured' contradicts `gain`",
    ),
    "a p-value without a test": (
        verdict_row(smallest_p_value=None),
        "verdicts.0: `p_value`, `smallest_p_value` and `attack` require each other",
    ),
    "a verdict on an arm that was not run": (
        verdict_row(arm="other"),
        "verdicts.0: there is no run of the arm 'other'",
    ),
}

INVALID_RUN = {
    "an accuracy above 1": (run(accuracy={"0": 1.1}), "accuracy"),
    "an accuracy without a round number": (run(accuracy={"x": 0.1}), "accuracy"),
    "bytes below 0": (run(bytes={"up": -1, "down": 0}), "bytes.up"),
    "a control of a run that is none": (run(control_number=1), "arms.0: the run is no control"),
    "an unrecorded message that is not counted": (
        run(lost_replies=[LOST]),
        "arms.0: `unrecorded` is 0, but `lost_replies` lists 2",
    ),
}


def joint_claim(*targets: object, target: str = "cohort") -> JsonObject:
    names = {"observers": ["client/0"], "target": target, "targets": [*targets]}
    return {**names, "scores": []}


INVALID: dict[str, tuple[JsonObject, str]] = {
    "a joint claim about one client twice": (
        document(findings=[joint_claim("client/1", "client/1")]),
        "the file is damaged: 'targets' has a value twice",
    ),
    "a joint claim about the server": (
        document(findings=[joint_claim("client/1", "server")]),
        "'targets' names server, which is no client under attack",
    ),
    "a joint claim about an observer": (
        document(findings=[joint_claim("client/1", "client/0")]),
        "'targets' names client/0, which is no client under attack",
    ),
    "a joint claim about no name of a client": (
        document(findings=[joint_claim("client/1", "../x")]),
        "the party name '../x' must have the form",
    ),
    "a joint claim about one client": (
        document(findings=[joint_claim("client/1")]),
        "'targets' names clients of a claim that is not about several",
    ),
    "a joint claim that is about a single target": (
        document(findings=[joint_claim("client/1", "client/2", target="client/1")]),
        "'targets' names clients of a claim that is not about several",
    ),
    "a joint claim about a number": (
        document(findings=[joint_claim("client/1", 2)]),
        "must be lists of names",
    ),
    "another format": (document(format="figures"), "format is not"),
    "no format": ({"version": 1}, "format is not"),
    "an earlier version": (
        document(version=1),
        "version 1, but this overheard reads version 2",
    ),
    "a later version": (document(version=3), "version 3"),
    "version true": (document(version=True), "version True"),
    "no summary": ({k: v for k, v in document().items() if k != "summary"}, "summary"),
    "two rows with one key": (document(summary_row(), summary_row(0.1, 0.2)), "two rows"),
    "the same with observers in another order": (
        document(summary_row(observers=["a", "b"]), summary_row(observers=["b", "a"])),
        "two rows",
    ),
    "two runs of one seed": (document(arms=[run(), run()]), "two runs"),
    "no ceiling": (
        document(epsilon=[{k: v for k, v in epsilon_row().items() if k != "ceiling"}]),
        "epsilon.0.ceiling",
    ),
    "two lines of one mechanism": (
        document(epsilon=[epsilon_row(), epsilon_row("violated")]),
        "two different rows for the same mechanism",
    ),
    "two rows of one mechanism, observers in another order": (
        document(
            epsilon=[
                epsilon_row(observers=["a", "b"]),
                epsilon_row("violated", observers=["b", "a"]),
            ]
        ),
        "two different rows for the same mechanism",
    ),
    "no leak although an attack failed": (
        document(
            verdicts=[verdict_row("no leak above margin")], refusals=[refusal(kind="failed")]
        ),
        "verdicts.0: verdict 'no leak above margin' contradicts a refusal",
    ),
    "no leak in a recording that contradicts itself": (
        document(
            verdicts=[verdict_row("nothing to read")],
            is_recorded=True,
            recording={
                **{"outcome": "contradicts", "reason": None, "sentences": [], "mend": ""},
                **{"accepted": " ", "faults": []},
            },
        ),
        "verdicts.0: verdict 'nothing to read' contradicts the check of the recording",
    ),
    "two verdicts on one question": (
        document(verdicts=[verdict_row(), verdict_row("inconclusive")]),
        "two verdicts on the same question",
    ),
    "a day that is none": (document(made_on="2026-02-30"), "made_on is '2026-02-30'"),
    "a recording of a simulated run": (
        document(
            recording={
                **{"outcome": "follows", "reason": None, "sentences": [], "mend": ""},
                **{"accepted": "", "faults": []},
            }
        ),
        "there is a check of a recording, but is_recorded is false",
    ),
    "findings of another form": (document(findings=-1), "findings: it is no list of objects"),
    **{name: (document(row), words) for name, (row, words) in INVALID_SUMMARY.items()},
    **{
        name: (document(epsilon=[row]), words) for name, (row, words) in INVALID_EPSILON.items()
    },
    **{
        name: (document(verdicts=[row]), words)
        for name, (row, words) in INVALID_VERDICT.items()
    },
    **{name: (document(arms=[row]), words) for name, (row, words) in INVALID_RUN.items()},
}
"""Files by what is wrong with them, each with the words of its refusal."""


@pytest.mark.parametrize(("invalid", "words"), INVALID.values(), ids=INVALID)
def test_refuses_invalid_files_and_names_the_place(
    invalid: JsonObject, words: str, tmp_path: Path
):
    path = write_document(tmp_path, invalid)
    with pytest.raises(FindingsError) as refused:
        read_findings(path)
    message = str(refused.value)
    assert message.startswith(f"{path}: ")
    assert words in message
    assert message.isprintable()


WHOLE = json.dumps(document(summary_row()))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "Expecting value"),
        (WHOLE[:-20].encode(), "line 1"),
        (WHOLE.encode("utf-16"), "utf-8"),
        (b"\xef\xbb\xbf" + WHOLE.encode(), "BOM"),
        (b"[]", "it is not a JSON object"),
        (b"null", "it is not a JSON object"),
        (WHOLE.replace("0.6", "NaN").encode(), "NaN is not valid JSON"),
        (WHOLE.replace("0.6", "-Infinity").encode(), "-Infinity is not valid JSON"),
        (WHOLE.replace("0.6", "1e999").encode(), "Out of range"),
        (WHOLE.replace("0.6", "1" + "0" * 5000).encode(), "digits"),
        (WHOLE.replace('"arm": "bare"', '"arm": "a", "arm": "b"').encode(), "a duplicate key"),
        (WHOLE.replace("bare", r"\ud800").encode(), "hex escape"),
        (b'{"a": ' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
        (b"[" * 100_000, "nested too deeply"),
    ],
    ids=[
        *("empty", "cut", "utf-16", "bom", "list", "null", "nan", "infinity", "overflow"),
        *("digits", "twice", "surrogate", "deep objects", "deep lists"),
    ],
)
def test_refuses_invalid_json(content: bytes, words: str, tmp_path: Path):
    path = tmp_path / "findings.json"
    path.write_bytes(content)
    with pytest.raises(FindingsError, match="not valid findings of an audit") as refused:
        read_findings(path)
    assert words in str(refused.value)
    assert str(refused.value).isprintable()


def test_refuses_a_huge_file_without_reading_it(tmp_path: Path):
    path = tmp_path / "findings.json"
    with path.open("wb") as file:
        file.truncate(2**30 + 1)  # a hole: it takes no disk
    with pytest.raises(FindingsError, match="--max-unpacked 5GB"):
        read_findings(path)


@pytest.mark.parametrize("name", ["missing.json", "."], ids=["missing", "folder"])
def test_refuses_missing_files_and_folders(name: str, tmp_path: Path):
    with pytest.raises(FindingsError, match="cannot be read"):
        read_findings(tmp_path / name)


HOSTILE = st.sampled_from(
    (-1, 0, 1, 2, 0.5, -0.5, 7.5, 1e308, 10**400, True, False, None, "", "x", [], {}, [0, 0])
)


def replace_leaf(content: object, number: int, value: object) -> object:
    """Return a document with a value in place of the leaf of this number, in order."""
    if isinstance(content, dict):
        content = dict(content)
        items: Iterable[tuple[Any, object]] = list(content.items())
    elif isinstance(content, list):
        content = list(content)
        items = list(enumerate(content))
    else:
        return value
    for key, part in items:
        leaves = count_leaves(part)
        if number < leaves:
            content[key] = replace_leaf(part, number, value)
            return content
        number -= leaves
    return value


def count_leaves(content: object) -> int:
    if not isinstance(content, dict | list) or not content:
        return 1
    return sum(map(count_leaves, content.values() if isinstance(content, dict) else content))


LARGE = content()


@given(st.lists(st.tuples(st.integers(0, count_leaves(LARGE) - 1), HOSTILE), max_size=3))
def test_what_is_written_is_read_as_it_was_and_what_is_refused_is_never_written(
    changes: list[tuple[int, object]],
) -> None:
    changed: object = LARGE
    for number, value in changes:
        changed = replace_leaf(changed, number, value)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "findings.json"
        try:
            # As `FindingsDocument.of`, which audits write by, makes it.
            made = FindingsDocument.model_validate(changed, strict=False)
        except ValidationError:
            path.write_text(json.dumps(changed))
            with pytest.raises(FindingsError, match=r"not valid findings of an audit|version"):
                read_findings(path)
        else:
            path.write_text(made.to_json())
            if (made.format, made.version) == (FORMAT, VERSION):
                assert read_findings(path) == made


def read(verdict: str, **changes: object) -> EpsilonRow:
    return EpsilonRow.model_validate_json(json.dumps(epsilon_row(verdict, **changes)))


@pytest.mark.parametrize("verdict", get_args(EpsilonVerdict))
def test_the_guaranteed_epsilon_depends_on_the_verdict(verdict: EpsilonVerdict):
    by_verdict = {
        "holds": 2.0,
        "not tested": 2.0,
        "refused": 2.0,
        "not exchangeable": 2.0,
        "unchecked": 2.0,
        "not confirmed": 2.0,
        "unaccounted": None,
        "contradicted": None,
        "estimate": None,
    }
    assert read(verdict).guaranteed_epsilon == by_verdict.get(verdict, inf)


@pytest.mark.parametrize(
    "verdict", ["holds", "not tested", "refused", "not exchangeable", "unchecked"]
)
def test_a_missing_ceiling_means_infinite_epsilon(verdict: str):
    assert read(verdict, ceiling=None).guaranteed_epsilon == inf


@pytest.mark.parametrize(
    ("changes", "guaranteed"),
    [
        ({"ceiling": 2.0}, 2.0),
        # No upper bound is known, or an infinite one.
        ({"ceiling": None, "is_recomputed": False}, None),
        ({"ceiling": None, "is_recomputed": True, "pld": None}, inf),
        ({"ceiling": None, "is_recomputed": True, "pld": 3.0}, None),
    ],
)
def test_an_unconfirmed_claim_guarantees_the_upper_bound(
    changes: dict[str, object], guaranteed: float | None
):
    row = read("not confirmed", claim="not confirmed", doubt="nobody told", **changes)
    assert (row.guaranteed_epsilon, row.reason) == (guaranteed, "nobody told")


def test_a_claim_that_an_older_version_called_too_small_is_not_confirmed():
    row = read("overclaimed", claimed=1.0, claimed_for="run")
    assert (row.verdict, row.claim) == ("not confirmed", None)
    assert row.reason.endswith("with an upper bound alone: audit again")
    assert (row.relation, row.record_sampling, row.rounds_text) == (None, None, "")


def test_says_of_how_many_planned_rounds_a_recording_has():
    assert read("holds", rounds=300, recorded_rounds=3).rounds_text == (
        "3 of 300 rounds recorded"
    )


PROVEN = bound(2.5)


@pytest.mark.parametrize(
    ("verdict", "changes"),
    [
        ("holds", {"measured": None}),
        ("violated", {"ceiling": 2.5}),
        ("violated", {"ceiling": None}),
        ("violated", {"measured": None}),
        ("contradicted", {"ceiling": 2.5}),
        ("not tested", {"measured": PROVEN}),
        ("refused", {"measured": PROVEN}),
        ("not exchangeable", {"measured": PROVEN}),
        ("unaccounted", {"ceiling": 2.0}),
        ("flawed", {"ceiling": 2.0}),
        ("outside guarantee", {"ceiling": 2.0}),
    ],
)
def test_refuses_a_verdict_that_contradicts_its_numbers(
    verdict: str, changes: dict[str, object]
):
    read(verdict)
    with pytest.raises(ValidationError, match="contradicts"):
        read(verdict, **changes)


@pytest.mark.parametrize("verdict", ["holds", "false"])
def test_the_lower_bound_may_exceed_the_ceiling_of_another_neighbouring_relation(verdict: str):
    assert read(verdict, measured=PROVEN).measured is not None  # 2.5, and the ceiling is 2


def stored_verdict(**changes: object) -> VerdictRow:
    row = {
        "arm": "none",
        "observers": ("server",),
        "question": "label_shares",
        "about": "clients",
        "verdict": "leaks",
        "attack": "decaf",
        "p_value": 0.005,
        "smallest_p_value": 0.005,
        "gain": IntervalEstimate(mean=0.2, low=0.1, high=0.3),
        "margins": {"l1": 0.1},
        "is_below_margin": False,
        "why": "",
        "score": "l1",
        "sentence": "Decaf reads the label shares.",
        "shared_gains": {},
    }
    return VerdictRow.model_validate({**row, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"p_value": 0.03},
        {"p_value": None},
        {"gain": None},
        {"gain": IntervalEstimate(mean=0.0, low=-0.1, high=0.1)},
        {"verdict": "no leak above margin"},
        {"verdict": "silent"},
        {"p_value": 1.5},
        {"margins": {"l1": -1.0}},
    ],
)
def test_refuses_a_verdict_on_a_threat_that_contradicts_its_test(
    changes: dict[str, object],
) -> None:
    assert stored_verdict().verdict == "leaks"
    with pytest.raises(ValidationError):
        stored_verdict(**changes)
