"""Every question compares the claims of findings with what might as well have been true."""

from dataclasses import replace

import numpy as np
import pytest

from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.core.scorer import Score
from overheard.core.seeds import Seed
from overheard.findings.finding import ArmRun, Cell, ClaimRow, Finding
from overheard.plans.registries import questions
from overheard.statistics.permutation_test import RePairedFits, adjusted_p_values
from tests.auditing.identity_findings import identity_run
from tests.auditing.shift_findings import peak_findings
from tests.report.user_audits import sender_findings
from tests.runs.audits import FITS_BEST, FITS_LIKE_ANY, shares_finding


def fits_of(question: str, findings: list[Finding], *runs: ArmRun) -> RePairedFits:
    return questions()[question].re_paired_fits(findings, runs, Seed(0))


def p_value(fits: RePairedFits) -> float:
    return float(adjusted_p_values(fits.fits).min())


def recorded(shares: np.ndarray, strength: float, *, seed: int = 0) -> list[Finding]:
    """A run whose claims have this part of the truth, and of a fixed claim for the rest."""
    even = np.full(shares.shape[1], 1 / shares.shape[1])
    return [
        shares_finding(
            "none", client(n), row, strength * row + (1 - strength) * even, seed=seed
        )
        for n, row in enumerate(shares)
    ]


SHARES = np.random.default_rng(0).dirichlet([0.5] * 4, 5)


def test_simulations_are_compared_with_redrawn_partitions_of_all_runs_together() -> None:
    findings = [
        shares_finding("none", client(0), SHARES[0], SHARES[0], seed=seed, fits=fits)
        for seed, fits in ((0, (1.0, 2.0, 3.0)), (1, (10.0, 20.0, 60.0)))
    ]
    found = fits_of("label_shares", findings)
    assert found.fits.tolist() == [[11.0], [22.0], [63.0]]
    assert found.smallest_p_value == pytest.approx(1 / 3)


def test_partitions_that_change_nothing_limit_the_p_value() -> None:
    # Partition 2 of 4 is the true one for both targets, partition 3 for the second one only.
    findings = [
        shares_finding("none", client(n), SHARES[n], SHARES[n], fits=fits)
        for n, fits in enumerate([(3.0, 1.0, 3.0, 2.0), (5.0, 4.0, 5.0, 5.0)])
    ]
    assert fits_of("label_shares", findings).smallest_p_value == 0.5


def test_attacks_have_columns_in_the_order_of_their_findings() -> None:
    weak = shares_finding("none", client(0), SHARES[0], SHARES[1], fits=FITS_LIKE_ANY)
    strong = shares_finding(
        "none", client(0), SHARES[0], SHARES[0], attack="strong", fits=FITS_BEST
    )
    p_values = adjusted_p_values(fits_of("label_shares", [weak, strong]).fits)
    assert p_values[1] == 0.005
    assert p_values[0] > 0.3


def test_clients_of_a_recording_are_permuted() -> None:
    found = fits_of("label_shares", recorded(SHARES, 0.5))
    assert found.smallest_p_value == pytest.approx(1 / 120)
    assert p_value(found) == pytest.approx(1 / 120)
    assert fits_of("label_shares", recorded(SHARES[:4], 0.5)).smallest_p_value > 0.025


def test_equal_claims_for_all_clients_tell_none_from_another() -> None:
    assert p_value(fits_of("label_shares", recorded(SHARES, 0.0))) == 1


def test_pseudonyms_of_one_client_are_one_unit() -> None:
    by_round = [
        replace(finding, targets=(Party(f"anon/{number}-{place}"),))
        for number in (0, 1)
        for place, finding in enumerate(recorded(SHARES, 0.5))
    ]
    assert fits_of("label_shares", by_round).smallest_p_value == pytest.approx(1 / 120)


def test_clients_that_send_in_one_round_are_not_one_client() -> None:
    # Four clients of each of two kinds: 70 orders that differ.
    findings = [
        replace(one, sent_rounds=(0, 1)) for one in recorded(np.repeat(SHARES[:2], 4, 0), 0.5)
    ]
    found = fits_of("label_shares", findings)
    assert found.smallest_p_value == pytest.approx(1 / 70)
    assert p_value(found) <= 0.025
    # Pseudonyms of two rounds are those of as many clients.
    by_round = [
        replace(finding, targets=(Party(f"anon/{number}-{place}"),), sent_rounds=(number,))
        for number in (0, 1)
        for place, finding in enumerate(findings)
    ]
    assert fits_of("label_shares", by_round).smallest_p_value == pytest.approx(1 / 70)


def test_a_client_is_one_unit_under_its_name_and_its_pseudonyms() -> None:
    named = recorded(SHARES, 0.5)
    # In round 1 each client holds other data.
    by_round = [
        replace(finding, targets=(Party(f"anon/{number}-{place}"),), client=client(place))
        for number in (0, 1)
        for place, finding in enumerate(recorded(np.roll(SHARES, number, 1), 0.5))
    ]
    by_round = [replace(one, cell=replace(one.cell, attack="by round")) for one in by_round]
    for findings in (by_round, [*named, *by_round]):
        assert fits_of("label_shares", findings).smallest_p_value == pytest.approx(1 / 120)


@pytest.mark.parametrize(("runs", "smallest"), [(4, 1 / 24), (5, 1 / 120)])
def test_cohorts_that_cannot_be_drawn_anew_are_permuted_between_runs(
    runs: int, smallest: float
) -> None:
    findings = [
        replace(recorded(SHARES[[seed]], 0.9, seed=seed)[0], targets=(COHORT,))
        for seed in range(runs)
    ]
    found = fits_of("label_shares", findings)
    assert found.smallest_p_value == pytest.approx(smallest)
    assert p_value(found) == pytest.approx(smallest)


def test_unchecked_claims_have_no_test() -> None:
    findings = [replace(one, true=None) for one in recorded(SHARES, 0.5)]
    found = fits_of("label_shares", findings)
    assert found.why_none == "no claim was checked"
    assert found.smallest_p_value == 1


@pytest.mark.parametrize(("strength", "leaks"), [(3.0, True), (0.0, False)])
def test_users_are_permuted_with_all_their_updates(strength: float, leaks: bool) -> None:
    findings = [*identity_run(strength, seed=0), *identity_run(strength, seed=1)]
    found = fits_of("identity", findings)
    assert len(found.fits) == 1000
    assert (p_value(found) <= 0.025) is leaks


def test_users_whom_the_attacker_does_not_know_are_left_out() -> None:
    with_strangers = identity_run(3.0, all_users=3, strangers=4)
    assert fits_of("identity", with_strangers).smallest_p_value == pytest.approx(1 / 6)


@pytest.mark.parametrize(("strength", "leaks"), [(4.0, True), (0.0, False)])
def test_senders_are_permuted_within_rounds(strength: float, leaks: bool) -> None:
    findings = [
        replace(finding, sent_rounds=(int(number) % 4,))
        for number, finding in enumerate(
            sorted(
                sender_findings("none", "link", strength), key=lambda one: one.true_user or ""
            )
        )
    ]
    assert (p_value(fits_of("same_sender", findings)) <= 0.025) is leaks


def attribute_finding(user: int, probability: float, value: str, seed: int = 0) -> Finding:
    cell = Cell("none", seed, (SERVER,), "guess", "Guess()", "attribute", (0,))
    truth = (float(value == "a"), float(value == "b"))
    return Finding(
        cell,
        (client(user),),
        ClaimRow((probability, 1 - probability), candidates=("a", "b")),
        ClaimRow(truth),
        (Score("accuracy", 1.0, "higher", {"uniform": 0.5}, {}),),
        true_user=f"user {user}",
    )


def test_people_are_permuted_with_their_attributes_alike_in_all_runs() -> None:
    findings = [
        attribute_finding(user, 0.9 if user % 2 else 0.1, "ab"[user % 2 == 0], seed)
        for seed in (0, 1)
        for user in range(8)
    ]
    found = fits_of("attribute", findings)
    # 8 users, 4 of each value: 70 different ways, however many runs.
    assert found.smallest_p_value == pytest.approx(1 / 70, rel=0.01)
    assert p_value(found) < 0.03


def member_finding(target: int, owners: np.ndarray, scores: np.ndarray) -> Finding:
    cell = Cell("none", 0, (SERVER,), "lira", "Lira()", "membership", (0,))
    truth = np.select([owners == target, owners < 0], [1.0, -1.0], 0.0)
    score = Score("membership_auc", 0.6, "higher", {"a coin": 0.5}, {})
    claimed, true = ClaimRow(tuple(scores)), ClaimRow(tuple(truth))
    return Finding(cell, (client(target),), claimed, true, (score,))


OWNERS = np.repeat([0, 1, -1], [40, 40, 120])
LABELS = np.random.default_rng(0).integers(0, 3, 200)


def member_findings(of_member: float, of_label: float) -> list[Finding]:
    """Claims about two clients; members have other labels than non-members."""
    random = np.random.default_rng(1)
    labels = np.where(OWNERS >= 0, 0, LABELS)
    return [
        member_finding(
            target,
            OWNERS,
            of_member * (target == OWNERS) + of_label * (labels == 0) + random.normal(size=200),
        )
        for target in (0, 1)
    ]


def run_with(exchange: str) -> ArmRun:
    labels = tuple(np.where(OWNERS >= 0, 0, LABELS).tolist())
    return ArmRun(
        "none",
        0,
        (),
        {},
        0,
        2,
        record_labels=labels,
        record_exchange=exchange,  # type: ignore[arg-type]
    )


def test_owners_of_canaries_are_permuted_among_all_records() -> None:
    found = fits_of("membership", member_findings(1.5, 0.0), run_with("all"))
    assert p_value(found) <= 0.025


def test_owners_of_other_records_are_permuted_within_labels() -> None:
    by_label = member_findings(0.0, 3.0)
    found = fits_of("membership", by_label, run_with("same label"))
    assert p_value(found) > 0.025
    # Labels alone give members higher ranks: that much is common to all pairings.
    assert found.common_gains[0] > 0.15
    assert p_value(fits_of("membership", by_label, run_with("all"))) <= 0.025
    by_member = member_findings(1.5, 3.0)
    assert p_value(fits_of("membership", by_member, run_with("same label"))) <= 0.025


def test_what_labels_gain_is_an_auc_also_with_several_clients() -> None:
    # Each client, and the non-members, have a label of their own. The claims rank the target's
    # label first and that of the non-members last: an AUC of 1 by labels alone.
    labels = np.where(OWNERS < 0, 2, OWNERS)
    claims = [
        member_finding(target, OWNERS, 2.0 * (labels == target) + 1.0 * (labels == 1 - target))
        for target in (0, 1)
    ]
    run = replace(run_with("same label"), record_labels=tuple(labels.tolist()))
    assert fits_of("membership", claims, run).common_gains == pytest.approx((0.5,))


def test_records_that_belong_together_have_no_test() -> None:
    found = fits_of("membership", member_findings(3.0, 0.0), run_with("none"))
    assert found.why_none.endswith("take canaries")


def naturally(findings: list[Finding]) -> list[Finding]:
    return [
        replace(one, cell=replace(one.cell, control="natural" if one.cell.is_control else ""))
        for one in findings
    ]


def test_runs_with_a_shift_are_compared_with_natural_controls() -> None:
    peaks = [float(n) for n in range(6)]
    findings = naturally(peak_findings([10 + peak for peak in peaks], peaks))
    found = fits_of("shift", findings)
    assert p_value(found) == pytest.approx(1 / 64)
    five = [finding for finding in findings if finding.cell.seed < 5]
    assert fits_of("shift", five).smallest_p_value == pytest.approx(1 / 32)


def test_exact_controls_are_not_compared() -> None:
    found = fits_of("shift", peak_findings([5.0] * 6, [0.0] * 6))
    assert "natural controls" in found.why_none


@pytest.mark.parametrize("name", sorted(questions()))
def test_every_question_has_a_margin_for_its_headline(name: str) -> None:
    question = questions()[name]
    assert question.scorer.headline in question.margins_for("clients", {})
    scores = {score.removesuffix("_of_cohort") for score in question.margins}
    assert scores == set(question.margins_for("cohort", {}))


def test_a_stated_margin_replaces_that_of_its_target_only() -> None:
    shares = questions()["label_shares"]
    stated = {"l1": 0.3, "top1": 0.5}
    assert shares.margins_for("clients", stated) == {"l1": 0.3}
    assert shares.margins_for("cohort", stated) == {"l1": 0.05}
