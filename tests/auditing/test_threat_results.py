"""Verdicts and joint claims."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from overheard.auditing import threat_results
from overheard.auditing.threat_results import NO_GUESS, with_verdicts
from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.core.scorer import Score
from overheard.findings.audit import Audit
from overheard.findings.document import read_findings
from overheard.findings.finding import ArmRun, Cell, ClaimRow, Finding
from overheard.findings.threat_verdict import ThreatVerdict
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
from tests.auditing.conftest import audit_here
from tests.auditing.joint_attack import AllTogether
from tests.auditing.plans import SECURE_AGGREGATION, TINY, replace_tables
from tests.runs.audits import FITS_BEST, FITS_LIKE_ANY, shares_finding

RUN = ArmRun("none", 0, (), {}, missing=0, answers=4)


def judged(audit: Audit) -> ThreatVerdict:
    return with_verdicts(audit).arm_results[0].threat_results[0].judgement


def audit_of(*findings: Finding, run: ArmRun = RUN) -> Audit:
    return Audit("Two clients", "2 clients", ("cat", "dog"), (run,), findings, (), "", {})


def pair(
    true: tuple[float, float],
    claimed: tuple[float, float],
    fits: tuple[float, ...],
    attack: str = "decaf",
) -> list[Finding]:
    """Equal claims about two clients, whose gains have no spread."""
    return [
        shares_finding("none", client(number), true, claimed, attack=attack, fits=fits)
        for number in (0, 1)
    ]


def test_a_leak_names_its_attack_and_the_p_value_that_is_adjusted() -> None:
    found = judged(
        audit_of(
            *pair((1.0, 0.0), (0.9, 0.1), FITS_BEST, "strong"),
            *pair((1.0, 0.0), (0.95, 0.05), FITS_LIKE_ANY, "lucky"),
        )
    )
    assert (found.verdict, found.attack) == ("leaks", "strong")
    # No other of 200 partitions fits the strong attack as well, or the lucky one better.
    assert found.p_value == found.smallest_p_value == 0.005
    # The gain is that of the attack that gains most: l1 is 1 for the guess, 0.1 for the claim.
    assert found.gain is not None
    assert found.gain.mean == pytest.approx(0.9)


def test_a_leak_needs_a_small_p_value_and_a_gain_of_the_same_attack() -> None:
    # l1 is 1 for the guess, 1.2 for the related claims, and 0.9 for those that fit like any.
    related = pair((1.0, 0.0), (0.4, 0.6), FITS_BEST, "related")
    gaining = pair((1.0, 0.0), (0.55, 0.45), FITS_LIKE_ANY, "gaining")
    found = judged(audit_of(*related, *gaining))
    assert (found.verdict, found.attack) == ("inconclusive", "related")
    assert found.p_value == 0.005
    assert found.is_related_without_gain
    # The p-value of a leak is that of an attack that gains.
    leaking = pair((1.0, 0.0), (0.55, 0.45), FITS_BEST, "leaking")
    both = judged(audit_of(*related, *leaking))
    assert (both.verdict, both.attack) == ("leaks", "leaking")
    assert not both.is_related_without_gain


def test_no_margin_hides_a_leak() -> None:
    audit = audit_of(*pair((1.0, 0.0), (0.9, 0.1), FITS_BEST))
    found = judged(replace(audit, margins={"l1": 1.5}))
    assert (found.verdict, found.is_below_margin) == ("leaks", True)
    assert not judged(audit).is_below_margin


def test_a_margin_of_the_plan_replaces_that_of_the_question() -> None:
    # The guess errs by 1, the claim by 0.8: a gain of 0.2.
    audit = audit_of(*pair((1.0, 0.0), (0.6, 0.4), FITS_LIKE_ANY))
    assert judged(audit).verdict == "inconclusive"
    assert judged(replace(audit, margins={"l1": 0.3})).verdict == "no leak above margin"


def test_every_attack_must_gain_less_than_the_margin() -> None:
    # l1 is 1 for the guess, 1.2 for these claims, and 0.8 for the better ones.
    worse = pair((1.0, 0.0), (0.4, 0.6), FITS_LIKE_ANY)
    assert judged(audit_of(*worse)).verdict == "no leak above margin"
    better = pair((1.0, 0.0), (0.6, 0.4), FITS_LIKE_ANY, "better")
    assert judged(audit_of(*worse, *better)).verdict == "inconclusive"


def test_nothing_can_be_read_if_the_guess_errs_by_less_than_the_margin() -> None:
    # The guess of 50 / 50 errs by 0.08, and the margin is 0.1.
    audit = audit_of(*pair((0.54, 0.46), (0.3, 0.7), FITS_LIKE_ANY))
    assert judged(audit).verdict == "nothing to read"


def test_the_cohort_has_a_margin_of_its_own() -> None:
    # The guess errs by 0.08: more than the 0.05 of a cohort.
    about = [
        replace(one, targets=(COHORT,)) for one in pair((0.54, 0.46), (0.3, 0.7), FITS_LIKE_ANY)
    ]
    runs = [
        replace(one, cell=replace(one.cell, seed=seed))
        for one, seed in zip(about, (0, 1), strict=True)
    ]
    found = judged(audit_of(*runs))
    assert found.margins == {"l1": 0.05}
    assert found.verdict != "nothing to read"


def test_without_a_guess_nothing_can_be_judged() -> None:
    claims = [
        replace(one, scores=tuple(replace(score, uninformed={}) for score in one.scores))
        for one in pair((1.0, 0.0), (0.9, 0.1), FITS_BEST)
    ]
    found = judged(audit_of(*claims))
    assert (found.verdict, found.why) == ("not enough to judge", NO_GUESS)


def test_too_few_clients_of_a_recording_say_what_is_reached() -> None:
    claims = [
        shares_finding("none", client(number), true, true)
        for number, true in enumerate([(1.0, 0.0), (0.0, 1.0), (0.5, 0.5)])
    ]
    found = judged(audit_of(*claims))
    # Three clients in six orders.
    assert found.verdict == "not enough to judge"
    assert found.smallest_p_value == pytest.approx(1 / 6)
    assert "no p-value can be below 0.17" in found.why
    assert not found.is_tested


def member_findings(scores: np.ndarray, is_member: np.ndarray, rate: float | None) -> Finding:
    """A claim about one client's records, with its AUC and perhaps a rate."""
    auc = float((scores[is_member][:, None] > scores[~is_member]).mean())
    values = {"membership_auc": (auc, 0.5)}
    if rate is not None:
        values["tpr_at_1_percent"] = (rate, 0.01)
    cell = Cell("none", 0, (SERVER,), "lira", "Lira()", "membership", (0, 1))
    return Finding(
        cell,
        (Party("client/0"),),
        ClaimRow(tuple(scores.tolist())),
        ClaimRow(tuple(np.where(is_member, 1.0, -1.0).tolist())),
        tuple(
            Score(name, value, "higher", {"a coin": uninformed}, {})
            for name, (value, uninformed) in values.items()
        ),
    )


def test_what_labels_alone_gain_is_subtracted_from_the_gain() -> None:
    labels = np.repeat([0, 0, 1, 1], 50)
    is_member = np.tile([True] * 4 + [False], 40) == (labels == 0)
    random = np.random.default_rng(0)
    finding = member_findings(1.0 * (labels == 0) + 0.1 * random.random(200), is_member, None)
    run = ArmRun(
        "none", 0, (), {}, 0, 2, record_labels=tuple(labels.tolist()),
        record_exchange="same label",
    )  # fmt: skip
    audit = audit_of(finding, run=run)
    headline = (
        with_verdicts(audit).arm_results[0].threat_results[0].attack_results[0].headline_row
    )
    found = judged(audit)
    assert headline.gain is not None
    assert headline.gain.mean > 0.2
    assert found.gain is not None
    assert abs(found.gain.mean) < 0.05
    assert found.verdict != "leaks"


def test_a_gain_ends_where_a_perfect_claim_does() -> None:
    # With two clients, Student's interval goes far beyond the guess's l1 of 1.
    found = judged(
        audit_of(
            shares_finding("none", client(0), (1.0, 0.0), (1.0, 0.0), fits=FITS_BEST),
            shares_finding("none", client(1), (1.0, 0.0), (0.7, 0.3), fits=FITS_BEST),
        )
    )
    assert found.gain is not None
    assert found.gain.low is not None
    assert found.gain.low < 0
    assert found.gain.high == pytest.approx(1.0)


def test_what_labels_alone_gain_makes_no_attack_the_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    audit = audit_of(
        *pair((1.0, 0.0), (0.9, 0.1), FITS_BEST, "by labels"),
        *pair((1.0, 0.0), (0.8, 0.2), FITS_BEST, "own"),
    )

    def best_first() -> list[str]:
        (result,) = with_verdicts(audit).arm_results[0].threat_results
        return [one.attack for one in result.attack_results]

    assert best_first() == ["by labels", "own"]
    # l1 is 0.2 and 0.4; without what labels alone gain, the first is 0.5.
    verdict = ThreatVerdict("inconclusive", shared_gains={"by labels": 0.3})
    monkeypatch.setattr(threat_results, "judge_attacks", lambda *_, **__: verdict)
    assert best_first() == ["own", "by labels"]


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
    return audit_here(PLAN, home)


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
    assert audit_here(PLAN, home).findings == found.findings


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
