"""`overheard records` lists the candidate records that an attack finds."""

import json
from pathlib import Path
from typing import Any

import pytest

from overheard.findings.document_rows import ClaimScore, FindingRow
from tests.cli.conftest import Command, assert_user_error

CLAIM = FindingRow.model_construct(
    arm="no defense",
    seed=3,
    observers=("server",),
    attack="lira(models=8)",
    settings="",
    question="membership",
    rounds=(0, 1),
    is_control=False,
    part="lira",
    label="lira",
    is_adaptive=False,
    control="",
    control_number=0,
    target="client/0",
    # Records 0 and 2 are above all 19 non-members, p = .05; the member 1 is below.
    claimed=(30.0, -1.0, 25.0, *map(float, range(19))),
    true=(1.0, 1.0, 1.0, *[-1.0] * 19),
    low=None,
    high=None,
    timeline=None,
    true_since=None,
    candidates=(),
    none_of_them=None,
    true_user=None,
    is_checked=True,
    blind={},
    doubt=None,
    learning_curve=None,
    scores=(),
)


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    rows: list[Any] = [CLAIM.model_dump(mode="json")]
    (tmp_path / "findings.json").write_text(json.dumps({"findings": rows}), encoding="utf-8")
    return tmp_path


def test_lists_numbers_of_records_and_nothing_else_of_them(
    audit: Path, overheard: Command
) -> None:
    said = overheard("records", audit, "--attack", "lira")
    assert said.code == 0
    assert said.out == (
        "no defense, seed 3, client/0, rounds 0, 1: 2 of 3 records: 0 (p 0.05), 2 (p 0.05)\n"
    )
    found = json.loads(
        overheard("records", audit, "--attack", "lira", "--rate", "0.01", "--json").out
    )
    assert [(one["target"], one["members"], one["records"]) for one in found] == [
        ("client/0", 3, [])
    ]


def test_refuses_a_rate_that_is_no_number(audit: Path, overheard: Command) -> None:
    said = overheard("records", audit, "--attack", "lira", "--rate", "nan")
    assert said.code == 2
    assert "give a share, such as 0.1" in said.err


def test_names_what_is_missing(audit: Path, overheard: Command) -> None:
    said = overheard("records", audit, "--attack", "rmia")
    assert_user_error(said, "no scored claim of 'rmia'", "name an attack of the audit's plan")


def test_refuses_claims_without_the_truth_of_every_record(
    audit: Path, overheard: Command
) -> None:
    damaged = CLAIM.model_copy(update={"true": CLAIM.true[:5]}).model_dump(mode="json")
    (audit / "findings.json").write_text(json.dumps({"findings": [damaged]}), encoding="utf-8")
    said = overheard("records", audit, "--attack", "lira")
    assert_user_error(said, "has damaged claims", "run `overheard audit` again")


def test_warns_where_labels_alone_tell_members(audit: Path, overheard: Command) -> None:
    assert "labels" not in overheard("records", audit, "--attack", "lira").err
    score = ClaimScore(
        name="membership_auc_within_labels",
        value=0.6,
        better="higher",
        blinds={},
        references={},
        gain=0.1,
    )
    skewed = CLAIM.model_copy(update={"scores": (score,)}).model_dump(mode="json")
    (audit / "findings.json").write_text(json.dumps({"findings": [skewed]}), encoding="utf-8")
    said = overheard("records", audit, "--attack", "lira", "--json")
    assert "the rate of false discoveries does not hold" in said.err
    assert json.loads(said.out)[0]["labels_differ"]
