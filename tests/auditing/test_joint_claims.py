"""A joint claim is about all clients of a view together: stored, scored and told as one."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.run import audit
from overheard.core.parties import COHORT, client
from overheard.findings.audit import Audit
from overheard.findings.document import read_findings
from overheard.plans.plan import ArmPlan, ThreatPlan
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.report.exports import as_csv, as_json
from overheard.report.release.left_out import ReleaseSettings
from overheard.report.release.released_findings import (
    client_names,
    read_claims,
    release_findings,
)
from overheard.testing.attack import GENERAL_CHECKS
from overheard.testing.trial import AttackTrial, checks_of
from tests.auditing.conftest import HERE
from tests.auditing.joint_attack import AllTogether
from tests.auditing.plans import SECURE_AGGREGATION, TINY, replace_tables

EVERYONE = (client(0), client(1), client(2))

PLAN = replace_tables(
    TINY,
    arms=(ArmPlan(name="no defense"), SECURE_AGGREGATION),
    threats=(ThreatPlan(attacks=(AllTogether(), MeanSoftmax(), AllTogether(fewest=9))),),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("joint")


@pytest.fixture(scope="module")
def found(home: Path) -> Audit:
    return audit(PLAN, home, resources=HERE)


def test_there_is_one_claim_about_all_clients_in_each_cell(found: Audit) -> None:
    joint = [one for one in found.findings if one.cell.part == "all_together"]
    assert [one.cell.rounds for one in joint] == [(0, 1), (0,), (1,)]
    assert {(one.targets, one.target, one.target_kind) for one in joint} == {
        (EVERYONE, COHORT, "clients")
    }
    assert [one.sent_rounds for one in joint] == [one.cell.rounds for one in joint]
    truths = [one for one in found.findings if one.cell.rounds == (0,) and one not in joint]
    assert len(truths) == 3
    # Each client trains on as many labels as its share says: the whole is in between.
    assert all(
        min(shares) <= true <= max(shares)
        for true, *shares in zip(
            joint[1].true_numbers, *(one.true_numbers for one in truths), strict=True
        )
    )


def test_it_is_judged_with_the_claims_about_single_clients(found: Audit) -> None:
    (undefended, _) = found.arm_results
    (result,) = undefended.threat_results
    assert result.target_kind == "clients"
    assert {one.attack: one.headline_row.targets for one in result.attack_results} == {
        "all_together": 3, "mean_softmax": 3,
    }  # fmt: skip


def test_what_it_lacks_is_said_of_each_client(found: Audit) -> None:
    few = [one for one in found.refusals if one.missing == ("at least 9 clients",)]
    assert [one.target for one in few] == [*EVERYONE]
    hidden = [one for one in found.refusals if one.cell.arm == "secure aggregation"]
    assert {one.target for one in hidden} == {*EVERYONE}


def test_stored_claims_are_not_made_again(home: Path, found: Audit) -> None:
    assert audit(PLAN, home, resources=HERE).findings == found.findings


def test_files_name_whom_it_is_about(found: Audit) -> None:
    rows = json.loads(as_json(found))["findings"]
    assert [(one["target"], one["targets"]) for one in rows[:3]] == [
        ("cohort", [*EVERYONE])
    ] * 3
    assert rows[-1]["targets"] == [rows[-1]["target"]]
    assert ",cohort," in as_csv(found)
    assert "client 0, client 1 and client 2 together" in found.findings[0]._repr_html_()


def test_a_release_renames_whom_it_is_about(found: Audit, tmp_path: Path) -> None:
    path = tmp_path / "findings.json"
    recorded = replace(found, is_recorded=True)
    path.write_text(as_json(recorded).replace("client/1", "client/ward-7"))
    document, claims = read_findings(path), read_claims(path)
    assert "ward-7" in client_names(document, claims[:1])
    settings = ReleaseSettings(least_group=1, with_clients=True)
    kept = release_findings(document, claims, settings).document
    assert "ward-7" not in kept.to_json()
    assert len({*kept.findings[0].targets}) == 3


def test_the_contract_lets_a_joint_claim_depend_on_all_targets() -> None:
    trial = AttackTrial(AllTogether(), checks_of(AllTogether.claim_type))
    for check in GENERAL_CHECKS:
        check(trial)
